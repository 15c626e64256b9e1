import { type EventLoopUtilization, performance } from 'node:perf_hooks'

/** What a process has used since it began; two of them tell what it used in between. */
export type Usage = { cpuMs: number; loop: Pick<EventLoopUtilization, 'active' | 'idle'> }

export function usageNow(): Usage {
  const { user, system } = process.cpuUsage()
  const { active, idle } = performance.eventLoopUtilization()
  return { cpuMs: (user + system) / 1000, loop: { active, idle } }
}

/** CPU time, and the share of the time in which the event loop had something to do: near 1, the process is what bounds. */
export type Used = { cpuMs: number; busy: number }

export function used(before: Usage, after: Usage): Used {
  const active = after.loop.active - before.loop.active
  const idle = after.loop.idle - before.loop.idle
  // Who never came to the loop, as a module that awaits nothing but its own promises, never waited there either.
  const busy = active + idle === 0 ? 1 : active / (active + idle)
  return { cpuMs: after.cpuMs - before.cpuMs, busy }
}
