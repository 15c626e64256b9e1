import { AWS_WAYS, NO_WAYS, SHORT_WAYS, type Ways } from './conditions.ts'
import { feed } from './feed.ts'
import { createFloor, type Made } from './floor.ts'
import { openInstallation } from './installation.ts'
import { EXACT, type Part, type Sheet } from './report.ts'
import { median, p95, sum } from './statistics.ts'

const COUNTS = [1, 10, 100]
/** One proxy alone is one sample: its node and its number make no difference, its uid does. */
const uidsOf = (count: number) => Array.from({ length: count }, (_, index) => `proxy-${index}`)

type Timed = { totals: number[]; stages: Record<string, number>[] }

/** From ProxyRequested to ProxyReady, against the least that Proxmox makes anybody wait. */
export const overhead: Part = {
  name: 'overhead',
  about: 'time to Ready against a straight-line script on the same simulator, on the virtual clock',
  async run(say) {
    const rows: Sheet['rows'] = []
    const figures = []
    const sheets: Sheet[] = []
    for (const [label, ways] of [
      ['no ways', NO_WAYS],
      ['ways of 1 ms', SHORT_WAYS],
      ['ways of AWS', AWS_WAYS],
    ] as const) {
      for (const count of COUNTS) {
        say(`${count} at once, ${label}`)
        const ours = await timeOurs(count, ways)
        const floor = await timeFloor(count, ways)
        const middle = median(ours.totals) / median(floor.totals)
        const late = p95(ours.totals) / p95(floor.totals)
        rows.push([
          label,
          count,
          seconds(median(floor.totals)),
          seconds(median(ours.totals)),
          middle,
          seconds(p95(floor.totals)),
          seconds(p95(ours.totals)),
          late,
        ])
        const isAimed = ways === SHORT_WAYS
        figures.push(
          {
            name: `${count} at once, median / floor (${label})`,
            value: middle,
            unit: '',
            noise: EXACT,
            ...(isAimed && count === 1 && { aim: 1.1 }),
          },
          {
            name: `${count} at once, p95 / floor (${label})`,
            value: late,
            unit: '',
            noise: EXACT,
            ...(isAimed && count === 100 && { aim: 1.25 }),
          },
        )
        if (isAimed) sheets.push(whereTimeGoes(count, ours, floor))
      }
    }
    const head = ['', 'at once', 'floor s', 'ours s', 'ratio', 'floor p95', 'ours p95', 'ratio p95']
    return { sheets: [{ title: 'From ProxyRequested to Ready', head, rows }, ...sheets], figures }
  },
}

const seconds = (ms: number) => ms / 1000

async function timeOurs(count: number, ways: Ways): Promise<Timed> {
  const installation = await openInstallation({ ways })
  const { lab, publishedAt } = installation
  try {
    const uids = uidsOf(count)
    const startedMs = lab.clock.now()
    for (const uid of uids) lab.request(uid)
    await feed(installation, () => publishedAt.size === count, { ways })
    // The save that follows the event.
    await lab.clock.advance(1000)
    const totals = uids.map((uid) => {
      const at = publishedAt.get(`ProxyReady ${uid}`)
      if (at === undefined) throw new Error(`${uid} did not get ready: ${JSON.stringify(lab.row(uid))}`)
      return at - startedMs
    })
    const stages = uids.map((uid, index) => {
      const row = lab.row(uid)
      const steps = Object.fromEntries((row?.timeline ?? []).map(({ step, ms }) => [step, ms]))
      // A step's own time leaves out the wait for a place.
      return { ...steps, 'waits for a place': (totals[index] ?? 0) - sum(Object.values(steps)) }
    })
    return { totals, stages }
  } finally {
    await installation.close()
  }
}

async function timeFloor(count: number, ways: Ways): Promise<Timed> {
  const installation = await openInstallation({ ways })
  try {
    const floor = createFloor(installation)
    const made: Made[] = await installation.lab.clock.until(Promise.all(uidsOf(count).map(floor.create)))
    return { totals: made.map(({ totalMs }) => totalMs), stages: made.map(({ stages }) => stages) }
  } finally {
    await installation.close()
  }
}

/** Rows by step; what the floor does in a step of ours, or as a step of its own. */
const STEPS: [title: string, ours: string[], floor: string[]][] = [
  ['reserve', ['reserve'], []],
  ['wait for a place to clone', ['waits for a place'], ['waits for a place']],
  ['clone', ['clone'], ['clone']],
  ['seed', ['seed'], ['seed']],
  ['configure', ['configure'], ['configure']],
  ['start and boot, to the address', ['start', 'address'], ['start', 'address']],
  ['verify', ['verify'], ['verify']],
]

function whereTimeGoes(count: number, ours: Timed, floor: Timed): Sheet {
  const mean = (stages: Record<string, number>[], names: string[]) =>
    stages.reduce((total, stage) => total + sum(names.map((name) => stage[name] ?? 0)), 0) /
    stages.length /
    1000
  return {
    title: `Where the time goes, ${count} at once (mean seconds)`,
    head: ['step', 'floor', 'ours', 'more'],
    rows: STEPS.map(([title, oursNames, floorNames]) => {
      const a = mean(ours.stages, oursNames)
      const b = mean(floor.stages, floorNames)
      return [title, b, a, a - b]
    }),
  }
}
