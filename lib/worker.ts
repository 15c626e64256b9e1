import { heldSeconds, redeliverySeconds } from './backoff.ts'
import { type Continue, InvalidEvent, type Resume } from './events.ts'
import { asFailing, type FailureCode } from './failure.ts'
import { type Ledger, LostRace, type Unreadable } from './ledger.ts'
import type { Invocation } from './life-cycle.ts'
import { type Measure, type Measurement, measured } from './metrics.ts'
import type { Delivery, Queues } from './queue.ts'
import { type BlankRow, patched, type Row, type Side, sideOf } from './record.ts'
import { judgeResume, type Ruling } from './ruling.ts'
import type { Trouble } from './symptoms.ts'
import { tracedDelivery } from './traced-delivery.ts'
import type { Turn } from './turn.ts'
import type { UserDataStore } from './user-data.ts'

/** What became of a delivery: done with, or to be shown again. */
export type Verdict = { kind: 'acknowledge' } | { kind: 'back'; seconds: number }

/** What the log says of a delivery, one line each. */
export type Decision = {
  uid?: string
  turn?: number
  step?: string | undefined
  outcome: string
  reason?: string
  code?: string
}

export type Decided = Decision & { verdict: Verdict; measurements?: readonly Measurement[] }

export type Worker = (delivery: Delivery, invocation: Invocation) => Promise<Verdict>

type Event = { type: string }
type Ours = Continue | Resume

export type WorkerOptions<E extends Event> = {
  side: Side
  /** @throws {InvalidEvent} */
  parse(body: string): E | Ours
  /** The key of the row that an event is about. */
  keyOf(event: E): string
  /** Judges an event by the rules of generations and deletions; pure. */
  judge(event: E, row: Row | BlankRow, now: number): Ruling
  /** Runs the step of a row that a Continue was taken for. */
  turn: Turn
  ledger: Ledger
  queues: Queues
  userData: UserDataStore
  /** Gives back what the step that a row is about to leave had taken. */
  leave(row: Row): Promise<void>
  stallMs: number
  /** What a person can type about a message that is given up. */
  hint?: (trouble: Trouble, row: { uid?: string }) => string
  log(decision: Decision & { ms: number }): void
  measure: Measure
  now?: () => number
  random?: () => number
  sleep?: (ms: number) => Promise<void>
}

/** So many expired leases taken over in a row mean that the message kills whoever reads it. */
export const CRASHING_AFTER = 10
/** So often a message is shown to a version that cannot read its row: doubling from 1 s, some six to nine minutes. */
export const UNREADABLE_RECEIVES = 10
/** A message may overtake its sender's save by milliseconds, and the queue counts in seconds. */
const OVERTAKEN = { tries: 10, pauseMs: 25 }

/**
 * Takes one record through: parse, take the lease, judge the turn, act. Nothing else sends, waits or finishes. The same
 * record may come any number of times, at once, late and out of order.
 */
export function createWorker<E extends Event>(options: WorkerOptions<E>): Worker {
  const { side, parse, keyOf, judge, turn, ledger, queues, userData, leave, stallMs, log, measure } = options
  const { now = Date.now, random = Math.random, sleep = pause } = options

  return async (delivery, invocation) => {
    const startedAt = now()
    const message = read(delivery.body)
    const about =
      message instanceof InvalidEvent ? illegible : { type: message.type, continues: isOurs(message) }
    const decided = await tracedDelivery(side, delivery, about, () => decide(message, delivery, invocation))
    const { verdict, measurements = [], ...decision } = decided
    log({ ...decision, ms: now() - startedAt })
    measure([...ageOf(delivery, startedAt), ...measurements])
    return verdict
  }

  function read(body: string): E | Ours | InvalidEvent {
    try {
      return parse(body)
    } catch (error) {
      if (error instanceof InvalidEvent) return error
      throw error
    }
  }

  async function decide(
    message: E | Ours | InvalidEvent,
    delivery: Delivery,
    invocation: Invocation,
  ): Promise<Decided> {
    if (message instanceof InvalidEvent) {
      const code = 'InvalidEvent'
      const { message: reason } = message
      await bury(delivery, code, { reason })
      const measurements = [measured('EventsRefused', 1, { code })]
      return { outcome: 'dead letter', code, reason, verdict: acknowledge, measurements }
    }
    const uid = isOurs(message) ? message.uid : keyOf(message)
    const taken = await take(uid, message)
    if (taken.kind === 'held') {
      const seconds = heldSeconds(taken.until - now(), delivery.receiveCount, random)
      const measurements = [measured('LeaseHeld', 1, { queue: side })]
      return {
        uid,
        outcome: 'back',
        reason: 'the row is held',
        verdict: { kind: 'back', seconds },
        measurements,
      }
    }
    if (taken.kind === 'unreadable') return unreadable(taken, uid, delivery)
    if (taken.kind !== 'taken')
      return { uid, outcome: 'acknowledge', reason: taken.kind, verdict: acknowledge }
    const about = {
      uid,
      turn: taken.row.turn,
      ...(taken.row.phase === undefined ? {} : { step: taken.row.step }),
    }
    try {
      return { ...about, ...(await settle(message, taken.row, taken.token, delivery, invocation)) }
    } catch (error) {
      // AWS did not do as asked, or the row was saved by another. Nothing was acknowledged, so nothing is lost.
      // A turn that threw has seen to its lease itself.
      const letsGo = !isContinue(message) && !(error instanceof LostRace)
      if (letsGo) await ledger.release(uid, taken.token).catch(leaseRunsOut)
      const seconds = redeliverySeconds('Aborted', delivery.receiveCount, random)
      const { message: reason, code } = asFailing(error)
      const measurements = [
        error instanceof LostRace ? measured('LostRaces', 1, {}) : measured('Retries', 1, { code }),
      ]
      return { ...about, outcome: 'back', code, reason, verdict: { kind: 'back', seconds }, measurements }
    }
  }

  /**
   * A row that this version cannot read. It is left as it is. The version that can may be just on its way here, so the message
   * is shown again for some minutes before it becomes a dead letter.
   */
  async function unreadable(
    { turn, token, reason }: Unreadable,
    uid: string,
    delivery: Delivery,
  ): Promise<Decided> {
    const code = 'RowUnreadable'
    const isLast = delivery.receiveCount >= UNREADABLE_RECEIVES
    if (isLast) await bury(delivery, code, { reason }, { uid, turn })
    await ledger.release(uid, token)
    const about = { uid, turn, code, reason }
    if (isLast) {
      const measurements = [measured('EventsRefused', 1, { code })]
      return { ...about, outcome: 'dead letter', verdict: acknowledge, measurements }
    }
    const seconds = redeliverySeconds('Unexpected', delivery.receiveCount, random)
    const measurements = [measured('Retries', 1, { code })]
    return { ...about, outcome: 'back', verdict: { kind: 'back', seconds }, measurements }
  }

  /** A message whose row is ours for now. */
  async function settle(
    message: E | Ours,
    row: Row | BlankRow,
    token: string,
    delivery: Delivery,
    invocation: Invocation,
  ): Promise<Decided> {
    const letGo = async (reason: string) => {
      await ledger.release(row.uid, token)
      return { outcome: 'acknowledge', reason, verdict: acknowledge }
    }
    if (isOurs(message)) {
      if (row.phase === undefined) return letGo('the row is new')
      if (message.turn !== row.turn) return letGo(message.turn < row.turn ? 'stale' : 'ahead of its sender')
    }
    if (isContinue(message)) {
      if (row.phase === undefined || row.step === undefined) return letGo('the row is at rest')
      if (sideOf(row.step, row.failedStep) !== side) return letGo('the step is the other function’s')
      const lateness = measured('Lateness', Math.max(0, now() - row.dueAt) / 1000, { queue: side })
      const done = await turn(row, token, delivery, invocation)
      return { ...done, measurements: [lateness, ...(done.measurements ?? [])] }
    }
    const ruling = rule(message, row)
    if (ruling.kind === 'drop') return letGo(ruling.reason)
    if (ruling.kind === 'bury') {
      await bury(delivery, ruling.code, ruling, row)
      const { code } = ruling
      const measurements = [measured('EventsRefused', 1, { code })]
      return { ...(await letGo(ruling.reason)), outcome: 'dead letter', code, measurements }
    }
    if (row.phase !== undefined) await leave(row)
    if (ruling.userData !== undefined) await userData.put(row.uid, ruling.row.generation, ruling.userData)
    await goOn(ruling.row, row.turn + 1, token)
    return { outcome: 'next', reason: `${ruling.reason}, on to ${ruling.row.step}`, verdict: acknowledge }
  }

  function rule(message: E | Resume, row: Row | BlankRow): Ruling {
    if (row.deliveries >= CRASHING_AFTER) {
      return {
        kind: 'bury',
        code: 'Crashing',
        reason: `${row.deliveries} leases ran out in a row: who handles this row dies`,
      }
    }
    if (!isResume(message)) return judge(message, row, now())
    if (row.phase === undefined) return { kind: 'drop', reason: 'the row is new' }
    return judgeResume(message, row, { now: now(), stallMs })
  }

  function ageOf({ sentAtMs }: Delivery, takenAt: number): Measurement[] {
    if (sentAtMs === undefined) return []
    return [measured('MessageAge', Math.max(0, takenAt - sentAtMs) / 1000, { queue: side })]
  }

  /** Sends the message, then saves the row: a crash between leaves two messages, of which the turn lets one act. */
  async function goOn(row: Row, nextTurn: number, token: string) {
    if (row.step === undefined) throw new Error(`the row ${row.uid} was to go on without a step`)
    const message = { type: 'Continue', uid: row.uid, turn: nextTurn }
    await queues.send(sideOf(row.step, row.failedStep), message, { delaySeconds: 0 })
    const afresh = { parkedAt: undefined, parkedFor: undefined, failingSince: undefined }
    const moved = { turn: nextTurn, since: now(), dueAt: now() }
    await ledger.save(patched(row, { ...moved, ...afresh }), token)
  }

  function bury(
    delivery: Delivery,
    code: FailureCode,
    { reason, hint }: { reason: string; hint?: string },
    row?: { uid: string; turn: number },
  ) {
    const about = row ? { uid: row.uid, ...(Number.isNaN(row.turn) ? {} : { turn: row.turn }) } : {}
    const advice = hint ?? options.hint?.({ code, message: reason }, about)
    const problem = { reason, ...(advice === undefined ? {} : { hint: advice }) }
    return queues.bury(side, delivery.body, {
      code,
      ...about,
      failedAt: new Date(now()).toISOString(),
      problem,
    })
  }

  async function take(uid: string, message: E | Ours) {
    const demand = isOurs(message)
      ? ({ kind: 'turn', turn: message.turn } as const)
      : ({ kind: 'event' } as const)
    for (let tries = 1; ; tries++) {
      const taken = await ledger.take(uid, demand)
      const overtook = taken.kind === 'held' && demand.kind === 'turn' && demand.turn === taken.turn + 1
      if (!overtook || tries >= OVERTAKEN.tries) return taken
      await sleep(OVERTAKEN.pauseMs)
    }
  }
}

/** A delivery that is done with. */
export const decided = (
  outcome: string,
  reason: string,
  measurements: readonly Measurement[] = [],
): Decided => ({ outcome, reason, verdict: acknowledge, measurements })

const illegible = { type: 'message', continues: false }
const acknowledge: Verdict = { kind: 'acknowledge' }
const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms))
/** Without a release the lease ends by itself, and the delivery is back by then. */
export const leaseRunsOut = () => undefined

const isContinue = (message: Event): message is Continue => message.type === 'Continue'
const isResume = (message: Event): message is Resume => message.type === 'Resume'
const isOurs = (message: Event): message is Ours => isContinue(message) || isResume(message)
