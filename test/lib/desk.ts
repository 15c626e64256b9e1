import type { OutcomeEvent } from '../../lib/events.ts'
import { leaseMs, type Surroundings, settleMs } from '../../lib/function.ts'
import type { LifeCycle, TaskState } from '../../lib/life-cycle.ts'
import type { Measurement } from '../../lib/metrics.ts'
import { done, type Outcome } from '../../lib/outcome.ts'
import { CREATE_STEPS, DELETE_STEPS, type Moment, type Row, type Side } from '../../lib/record.ts'
import type { Decision, Verdict } from '../../lib/worker.ts'
import { createMemoryClaims } from '../fakes/claims.ts'
import { createMemoryLedger } from '../fakes/ledger.ts'
import { createMemoryQueues, type MemoryQueues } from '../fakes/queues.ts'
import { createMemoryUserData } from '../fakes/user-data.ts'
import { workersOf } from '../fakes/workers.ts'
import { aConfig } from './a-config.ts'
import { NOW } from './a-row.ts'

export const DEADLINE_SECONDS = 600

/** What a test says the steps do. By default none is expected to run. */
export type Script = {
  run(row: Row & Moment): Outcome | Promise<Outcome>
  task(upid: string): TaskState | Promise<TaskState>
}

type Sent = { side: Side; message: unknown; delaySeconds: number }
type Act = 'send' | 'bury' | 'publish' | 'save' | 'release' | 'run'

/** The workers of both functions with nothing around them but fakes, steps that a test scripts, and a clock it moves. */
export type Desk = {
  script: Script
  clock: { now(): number; advance(ms: number): void }
  leaseMs: number
  settleMs: number
  stallMs: number
  ledger: ReturnType<typeof createMemoryLedger>
  claims: ReturnType<typeof createMemoryClaims>
  queues: MemoryQueues
  userData: ReturnType<typeof createMemoryUserData>
  outcomes: OutcomeEvent[]
  decisions: Decision[]
  measurements: Measurement[]
  sent: Sent[]
  /** What was done, in its order. */
  acts: Act[]
  /** Rows that steps were run with. */
  runs: (Row & Moment)[]
  /** The next act of this kind fails, before it has an effect. */
  breakNext(act: Act, error?: Error): void
  /** The process dies after the next act of this kind: nothing gets out any more, neither save nor release. */
  dieAfter(act: Act): void
  /** Another process is there. */
  revive(): void
  /** Puts a row in the table, at rest in its lease. */
  store(row: Row): Promise<void>
  row(uid?: string): Row | undefined
  isHeld(uid?: string): Promise<boolean>
  /** One delivery of a message, or of a body. */
  handle(message: object | string, how?: { side?: Side; receiveCount?: number }): Promise<Verdict>
  /** Called when the worker pauses for a message that overtook its sender's save. */
  onPause: () => Promise<void>
  /** How often it paused. */
  pauses: number
}

export function openDesk(config: Record<string, unknown> = {}): Desk {
  const settings = aConfig(config)
  let time = NOW
  const now = () => time
  const ledger = createMemoryLedger({ leaseMs: leaseMs(settings), settleMs: settleMs(settings), now })
  const claims = createMemoryClaims(now)
  const queues = createMemoryQueues(now, 360_000)
  const userData = createMemoryUserData()
  const broken = new Map<Act, Error>()
  let dead = false
  let lastAct: Act | undefined

  /** Notes an act, and fails it where a test wants that. */
  function act(kind: Act): void {
    if (dead && kind !== 'run') throw new Error('the process is dead')
    desk.acts.push(kind)
    const error = broken.get(kind)
    broken.delete(kind)
    if (error) throw error
    if (lastAct === kind) dead = true
  }

  const surroundings: Surroundings = {
    config: settings,
    claims,
    userData,
    ledger: {
      ...ledger,
      async save(row, token) {
        act('save')
        await ledger.save(row, token)
      },
      async release(uid, token) {
        act('release')
        await ledger.release(uid, token)
      },
    },
    queues: {
      ...queues,
      async send(side, message, options) {
        act('send')
        desk.sent.push({ side, message, ...options })
        await queues.send(side, message, options)
      },
      async bury(side, body, obituary) {
        act('bury')
        await queues.bury(side, body, obituary)
      },
    },
    async publish(event) {
      act('publish')
      desk.outcomes.push(event)
    },
    secrets: { read: async () => undefined, parameter: async () => undefined },
    probe: { http: () => never(), tcp: () => never() },
    countOn: () => never(),
    log: (decision) => void desk.decisions.push(decision),
    measure: (some) => void desk.measurements.push(...some),
    now,
    random: () => 1,
    async sleep() {
      desk.pauses += 1
      await desk.onPause()
    },
  }

  const cycle = (steps: readonly string[]): LifeCycle => ({
    rules(step) {
      if (!steps.includes(step)) return undefined
      const late = { code: 'AgentNeverUp', hint: 'look at its console' } as const
      return { deadlineSeconds: DEADLINE_SECONDS, ...(step === 'address' && { late }) }
    },
    async run(row) {
      if (!steps.includes(row.step ?? '')) throw new Error(`${row.step} is no step of this function`)
      act('run')
      desk.runs.push(row)
      return desk.script.run(row)
    },
    task: async (_, upid) => desk.script.task(upid),
  })
  const workers = workersOf(surroundings, { create: cycle(CREATE_STEPS), delete: cycle(DELETE_STEPS) })
  const invocation = { signal: new AbortController().signal, mutateUntilMs: Number.POSITIVE_INFINITY }

  const desk: Desk = {
    script: { run: () => done(), task: () => ({ running: true }) },
    clock: {
      now,
      advance(ms) {
        time += ms
      },
    },
    leaseMs: leaseMs(settings),
    settleMs: settleMs(settings),
    stallMs: settings.timings.stallSeconds * 1000,
    ledger,
    claims,
    queues,
    userData,
    outcomes: [],
    decisions: [],
    measurements: [],
    sent: [],
    acts: [],
    runs: [],
    pauses: 0,
    onPause: async () => {},
    breakNext: (kind, error = new Error(`${kind} failed`)) => void broken.set(kind, error),
    dieAfter(kind) {
      lastAct = kind
    },
    revive() {
      dead = false
      lastAct = undefined
    },
    async store(row) {
      const taken = await ledger.take(row.uid, { kind: 'event' })
      if (taken.kind !== 'taken') throw new Error(`the row is ${taken.kind}`)
      await ledger.save(row, taken.token)
    },
    row: (uid = 'a') => ledger.rows().find((row) => row.uid === uid),
    async isHeld(uid = 'a') {
      const taken = await ledger.take(uid, { kind: 'event' })
      if (taken.kind === 'taken') await ledger.release(uid, taken.token)
      return taken.kind !== 'taken'
    },
    handle(message, { side = 'create', receiveCount = 1 } = {}) {
      const body = typeof message === 'string' ? message : JSON.stringify(message)
      return workers[side]({ messageId: 'm', receiptHandle: 'r', body, receiveCount }, invocation)
    },
  }
  return desk
}

function never(): never {
  throw new Error('the stand-in steps need none of this')
}
