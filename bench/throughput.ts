import { inMemory, type Pace } from './in-memory.ts'
import { onEmulators } from './on-emulators.ts'
import { type Part, TIMED } from './report.ts'

const CONCURRENCIES = [1, 8]

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
    for (const concurrency of CONCURRENCIES) {
      say(`on the emulators, ${concurrency} batches at once a queue`)
      paces.push([`emulators, ${concurrency} batches at once`, await onEmulators(60, concurrency)])
    }
    const rows = paces.map(([name, pace]) => [
      name,
      pace.lives / pace.seconds,
      pace.records / pace.seconds,
      pace.records / pace.lives,
      pace.cpuMs / pace.records,
      pace.cpuMs / 1000 / pace.seconds,
      (pace.emulatorCpuMs ?? 0) / 1000 / pace.seconds,
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
            'records / s',
            'records / life',
            'CPU ms / record',
            'cores in use',
            'of the emulators',
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
    }
  },
}
