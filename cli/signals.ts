/** Someone who presses Ctrl-C again wants out at once; npm and a terminal both pass on the same first one, within moments. */
const INSISTING_AFTER_MS = 1000

/** Aborts at the first SIGINT, SIGTERM or SIGHUP. Insisting ends the process there and then. */
export function untilSignal(): { signal: AbortSignal; release(): void } {
  const controller = new AbortController()
  let firstMs = 0
  const listener = () => {
    if (!controller.signal.aborted) {
      firstMs = Date.now()
      controller.abort()
    } else if (Date.now() - firstMs > INSISTING_AFTER_MS) {
      process.exit(130)
    }
  }
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
  for (const name of signals) process.on(name, listener)
  return {
    signal: controller.signal,
    release() {
      for (const name of signals) process.removeListener(name, listener)
    },
  }
}

/** Resolves once the signal is aborted. */
export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    // A promise alone keeps no process running: the servers do, and where there are none, this.
    const alive = setInterval(() => undefined, 60_000)
    signal.addEventListener('abort', () => {
      clearInterval(alive)
      resolve()
    })
  })
}
