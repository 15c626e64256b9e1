import { inMemory, type Pace } from './in-memory.ts'
import { onEmulators } from './on-emulators.ts'
import { type Part, TIMED } from './report.ts'

/** Batches at once from each queue, and lives at once: more than the batches hold, so that waits of one overlap the work of others. */
const CROWDS = [
  { batches: 1, lives: 60 },
  { batches: 8, lives: 120 },
]

/** Lives a second with a Proxmox that takes no time: what our functions, and then AWS's clients, can carry. */
export const throughput: Part = {
  name: 'throughput',
  about: 'lives a second with an instant Proxmox, in memory and on the emulators',
  async run(say) {
    await inMemory(50)
    say('in memory')
    const short = await inMemory(200)
    const long = await inMemory(1000)
    const paces: [string, Pace][] = [
      ['in memory, 200 lives', short],
      ['in memory, 1,000 lives', long],
    ]
    for (const { batches, lives } of CROWDS) {
      say(`on the emulators, ${lives} lives, ${batches} batches at once a queue`)
      paces.push([`emulators, ${batches} batches at once, ${lives} lives`, await onEmulators(lives, batches)])
    }
    const rows = paces.map(([name, { lives, seconds, records, cpuMs, busy, emulators }]) => [
      name,
      lives / seconds,
      records / lives,
      cpuMs / lives,
      emulators ? emulators.cpuMs / lives : 0,
      busy,
      emulators ? emulators.busy : 0,
      (cpuMs + (emulators?.cpuMs ?? 0)) / 1000 / seconds,
      (1000 * lives) / Math.max(cpuMs, emulators?.cpuMs ?? 0),
    ])
    const best = Math.max(...paces.slice(2).map(([, { lives, seconds }]) => lives / seconds))
    const cpu = paces.at(-1)?.[1]
    return {
      sheets: [
        {
          title: 'Lives a second, made and deleted',
          head: [
            '',
            'lives / s',
            'records / life',
            'CPU ms / life: functions',
            'emulators',
            'loop busy: functions',
            'emulators',
            'cores in use',
            'lives / s at a core each',
          ],
          rows,
        },
      ],
      figures: [
        {
          name: 'in memory',
          value: long.lives / long.seconds,
          unit: 'lives/s',
          noise: TIMED,
          moreIsBetter: true,
        },
        { name: 'on the emulators', value: best, unit: 'lives/s', noise: TIMED, moreIsBetter: true },
        {
          name: 'CPU of a record, SDK and all',
          value: cpu ? cpu.cpuMs / cpu.records : Number.NaN,
          unit: 'ms',
          noise: TIMED,
        },
        {
          name: 'CPU of a life, 1,000 / 200',
          value: long.cpuMs / long.lives / (short.cpuMs / short.lives),
          unit: '',
          noise: TIMED,
          aim: 1.35,
        },
      ],
      notes: [
        'A loop that is busy all the time bounds the rest. Where it is so and got less than a core, the machine was shared.',
        'At a core each: what the slower of both processes could carry with one core to itself, by its CPU time alone.',
      ],
    }
  },
}
