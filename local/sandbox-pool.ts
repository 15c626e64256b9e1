import type { Sandbox } from './sandbox.ts'

export type SandboxPool = {
  /** Runs the event in a warm environment, or in a new one when all are busy. How many run at once is the caller's to bound. */
  invoke(event: unknown): Promise<unknown>
  close(): Promise<void>
}

/** Keeps environments warm between events, the last used first, and lets those go that had nothing to do for a while. */
export function createSandboxPool(create: () => Sandbox, idleMs = 60_000): SandboxPool {
  const idle: { sandbox: Sandbox; sinceMs: number }[] = []
  const all = new Set<Sandbox>()

  function reap() {
    for (const entry of idle.filter(({ sinceMs }) => Date.now() - sinceMs > idleMs)) {
      idle.splice(idle.indexOf(entry), 1)
      all.delete(entry.sandbox)
      void entry.sandbox.close()
    }
  }
  const reaper = setInterval(reap, idleMs)
  reaper.unref()

  function take(): Sandbox {
    const warm = idle.pop()
    if (warm) return warm.sandbox
    const sandbox = create()
    all.add(sandbox)
    return sandbox
  }

  return {
    async invoke(event) {
      const sandbox = take()
      try {
        return await sandbox.invoke(event)
      } finally {
        if (sandbox.alive) idle.push({ sandbox, sinceMs: Date.now() })
        else all.delete(sandbox)
      }
    },
    async close() {
      clearInterval(reaper)
      await Promise.all([...all].map((sandbox) => sandbox.close()))
    },
  }
}
