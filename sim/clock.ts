import type { SimClock, VirtualClock } from './types.ts'

/** The machine's own clock. */
export function realClock(): SimClock {
  const after = (ms: number, what: () => void): (() => void) => {
    const timer = setTimeout(what, Math.max(0, ms))
    return () => clearTimeout(timer)
  }
  return { now: Date.now, after, sleep: (ms) => new Promise((wake) => after(ms, wake)) }
}

type Alarm = { dueMs: number; order: number; what: () => void }

/** A clock that stands still until a test moves it: hours of the cluster's life in milliseconds. */
export function createVirtualClock(startMs = Date.UTC(2026, 0, 1)): VirtualClock {
  let nowMs = startMs
  let order = 0
  const alarms = new Set<Alarm>()

  const after = (ms: number, what: () => void): (() => void) => {
    const alarm = { dueMs: nowMs + Math.max(0, ms), order: order++, what }
    alarms.add(alarm)
    return () => void alarms.delete(alarm)
  }

  const earliest = (): Alarm | undefined => {
    let first: Alarm | undefined
    for (const alarm of alarms) {
      if (!first || alarm.dueMs < first.dueMs || (alarm.dueMs === first.dueMs && alarm.order < first.order))
        first = alarm
    }
    return first
  }

  /** Rings the next alarm that is due by then. Whoever it wakes runs before the clock moves on; who was awake before has run. */
  const ringNext = async (untilMs: number): Promise<boolean> => {
    const alarm = earliest()
    if (!alarm || alarm.dueMs > untilMs) return false
    alarms.delete(alarm)
    nowMs = Math.max(nowMs, alarm.dueMs)
    alarm.what()
    await settle()
    return true
  }

  return {
    now: () => nowMs,
    after,
    sleep: (ms) => new Promise((wake) => after(ms, wake)),
    async advance(ms) {
      const untilMs = nowMs + ms
      await settle()
      while (await ringNext(untilMs));
      nowMs = untilMs
      await settle()
    },
    async runUntilIdle(limitMs = 24 * 3600_000) {
      const untilMs = nowMs + limitMs
      await settle()
      while (await ringNext(untilMs));
    },
    async until(promise, limitMs = 24 * 3600_000) {
      const untilMs = nowMs + limitMs
      let settled = false
      const mark = () => {
        settled = true
      }
      promise.then(mark, mark)
      await settle()
      while (!settled && (await ringNext(untilMs)));
      if (!settled) throw new Error(`nothing left that could settle the promise (clock at ${nowMs})`)
      return promise
    },
  }
}

/** Lets everything that is ready run: promises, and callbacks of the event loop such as file reads. */
function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
