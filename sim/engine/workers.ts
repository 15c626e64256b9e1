export type Workers = ReturnType<typeof createWorkers>

const perNode = 3

/** The three workers of each node's pvedaemon. Each carries out one call at a time, and waits inside it. */
export function createWorkers() {
  const busy = new Map<string, number>()
  const queues = new Map<string, (() => void)[]>()

  const leave = (node: string): void => {
    const nextInLine = queues.get(node)?.shift()
    if (nextInLine) nextInLine()
    else busy.set(node, (busy.get(node) ?? 1) - 1)
  }

  return {
    /** Runs the call once a worker is free; `started` is told when that is. */
    async run<T>(node: string, call: () => Promise<T> | T, started?: () => void): Promise<T> {
      if ((busy.get(node) ?? 0) >= perNode) {
        await new Promise<void>((enter) => {
          const queue = queues.get(node) ?? []
          queue.push(enter)
          queues.set(node, queue)
        })
      } else {
        busy.set(node, (busy.get(node) ?? 0) + 1)
      }
      try {
        started?.()
        return await call()
      } finally {
        leave(node)
      }
    },
  }
}
