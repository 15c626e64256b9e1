import pLimit, { type LimitFunction } from 'p-limit'
import { isProxmoxError } from './errors.ts'

/** Lets a call in when its turn comes; `where` is the node that carries it out, or whatever else it may overload. */
export type Admit = <T>(where: string, call: () => Promise<T>) => Promise<T>

// A node has three workers for all who ask it (pvedaemon, max_workers); twice as many calls keep them busy over a VPN.
const MOST_AT_ONCE = 6

/**
 * Bounds the calls that one process has in flight at a node. A node that does not answer in time, or whose locks do
 * not come free, gets half as many from then on, down to one; as many good answers in a row as calls are let in allow
 * one more.
 */
export function createAdmission(): Admit {
  const gates = new Map<string, { limit: LimitFunction; well: number }>()
  return (where, call) => {
    const gate = gates.get(where) ?? { limit: pLimit(MOST_AT_ONCE), well: 0 }
    gates.set(where, gate)
    return gate.limit(async () => {
      try {
        const data = await call()
        gate.well += 1
        if (gate.well >= gate.limit.concurrency && gate.limit.concurrency < MOST_AT_ONCE) {
          gate.limit.concurrency += 1
          gate.well = 0
        }
        return data
      } catch (error) {
        if (isOverloaded(error)) {
          gate.limit.concurrency = Math.ceil(gate.limit.concurrency / 2)
          gate.well = 0
        }
        throw error
      }
    })
  }
}

const isOverloaded = (error: unknown) =>
  isProxmoxError(error, 'Locked', 'NoWorker') ||
  (isProxmoxError(error, 'Unreachable') && error.sent === 'maybe')
