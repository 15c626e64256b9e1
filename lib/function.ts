import { type Claims, needsSlot, slotPartition } from './claims.ts'
import type { Cluster, Config } from './config.ts'
import type { Continue, Resume } from './events.ts'
import { hintFor, type Subject } from './hints.ts'
import type { Ledger } from './ledger.ts'
import type { Invocation, LifeCycle } from './life-cycle.ts'
import type { Measure } from './metrics.ts'
import type { Probe } from './probe.ts'
import type { Queues } from './queue.ts'
import type { BlankRow, Row, Side } from './record.ts'
import type { Ruling } from './ruling.ts'
import type { Secrets } from './secrets.ts'
import type { Trouble } from './symptoms.ts'
import type { Publish } from './topic.ts'
import { tracedPublish, tracedQueues } from './traced-queues.ts'
import { createTurn } from './turn.ts'
import type { UserDataStore } from './user-data.ts'
import { createWorker, type Decision, type Worker } from './worker.ts'

/** What tells one function from the other. */
export type Definition<E extends { type: string }> = {
  side: Side
  /** @throws {InvalidEvent} */
  parse(body: string, config: Config): E | Continue | Resume
  /** The key of the row that an event is about. */
  keyOf(event: E): string
  judge(event: E, row: Row | BlankRow, now: number, config: Config): Ruling
}

/** Everything outside that a function lives on, but for Proxmox. */
export type Surroundings = {
  config: Config
  ledger: Ledger
  claims: Claims
  queues: Queues
  userData: UserDataStore
  secrets: Secrets
  publish: Publish
  probe: Probe
  /** Rows placed on a node. */
  countOn(cluster: string, node: string): Promise<number>
  log(decision: Decision & { ms: number }): void
  measure: Measure
  now?: () => number
  random?: () => number
  sleep?: (ms: number) => Promise<void>
}

/** How a cluster is reached; lib/proxmox's `createProxmox` makes one. */
export type Connect<P> = (cluster: Cluster) => { with(invocation: Invocation): P }

/** Joins a function's definition and life cycle with its surroundings. */
export function assemble<E extends { type: string }>(
  definition: Definition<E>,
  cycle: LifeCycle,
  outside: Surroundings,
): Worker {
  const surroundings = {
    ...outside,
    queues: tracedQueues(outside.queues),
    publish: tracedPublish(outside.publish),
  }
  const { config, claims } = surroundings
  const { timings } = config
  const leave = (row: Row) => leaveSlot(row, claims, config)
  const hint = (trouble: Trouble, subject: Subject) => hintFor(trouble, subject, config)
  const turn = createTurn({
    ...surroundings,
    cycle,
    leave,
    hint,
    settleMs: settleMs(config),
    toleratedLateMs: (timings.maxClockSkewSeconds + 60) * 1000,
    tombstoneDays: timings.tombstoneDays,
    retryWindowSeconds: timings.retryWindowSeconds,
  })
  return createWorker<E>({
    ...surroundings,
    side: definition.side,
    parse: (body) => definition.parse(body, config),
    keyOf: definition.keyOf,
    judge: (event, row, now) => definition.judge(event, row, now, config),
    turn,
    leave,
    hint,
    stallMs: timings.stallSeconds * 1000,
  })
}

/** How long a lease lasts: longer than any invocation can run, clocks that disagree included. */
export const leaseMs = ({ timings }: Config) =>
  (timings.functionTimeoutSeconds + 30 + timings.maxClockSkewSeconds) * 1000

/** How long a call that was not answered may still run, as any of our clocks counts it: one writes the end, another reads it. */
export const settleMs = ({ timings }: Config) => (timings.settleSeconds + timings.maxClockSkewSeconds) * 1000

async function leaveSlot({ step, place, uid }: Row, claims: Claims, config: Config): Promise<void> {
  const cluster = place && config.clusters[place.cluster]
  if (needsSlot(step) && place && cluster) await claims.freeSlots(slotPartition(place, cluster), uid)
}
