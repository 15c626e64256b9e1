import type { FailureCode } from './failure.ts'
import { hashNumber } from './names.ts'

const MAX_SECONDS = 300
const MAX_HELD_SECONDS = 60

/** Where the doubling starts. One second, but longer where asking again at once would only add to the load, or cost a 3 s penalty. */
const firstSeconds: Partial<Record<FailureCode, number>> = {
  Locked: 5,
  NoSpace: 30,
  Unauthorized: 15,
  NoQuorum: 5,
  NoWorker: 3,
}

/** Seconds until a failed delivery is shown again: doubles with its receives up to 300, jitter over the upper half. */
export function redeliverySeconds(code: FailureCode, receiveCount: number, random: () => number): number {
  const doubled = (firstSeconds[code] ?? 1) * 2 ** Math.min(receiveCount - 1, 20)
  const bounded = Math.min(doubled, MAX_SECONDS)
  return Math.max(1, Math.round(bounded / 2 + (bounded / 2) * random()))
}

/** Seconds until a delivery that found its row held is shown again: at most a minute, never longer than what is left of the lease. */
export function heldSeconds(leaseLeftMs: number, receiveCount: number, random: () => number): number {
  const left = Math.max(1, Math.ceil(leaseLeftMs / 1000))
  return Math.min(redeliverySeconds('Aborted', receiveCount, random), MAX_HELD_SECONDS, left)
}

/** How soon a running task is asked for again: 1 s, growing with its age to 5 s. */
export const taskPollSeconds = (ageMs: number) => Math.min(5, Math.max(1, Math.floor(ageMs / 4000)))

/**
 * How soon one who waits for a place in a queue asks again: 1 s to a bound that grows from 4 s to 20 s with the wait,
 * spread evenly. Those who began to wait together would else all ask in the same second, and leave a place that comes
 * free in the next one unused. By a clock that is behind the one of who entered the step, it has waited less than nothing.
 */
export function placeSeconds({
  uid,
  turn,
  waitedSeconds,
}: {
  uid: string
  turn: number
  waitedSeconds: number
}): number {
  const bound = Math.min(20, 4 + Math.floor(Math.max(0, waitedSeconds) / 15))
  return 1 + (hashNumber(`${uid}#${turn}`) % bound)
}
