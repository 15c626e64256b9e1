import type { Delivery, Obituary, Queues } from '../../lib/queue.ts'
import type { Side } from '../../lib/record.ts'
import type { Carrier } from '../../lib/tracing.ts'

type Message = {
  messageId: string
  body: string
  visibleAt: number
  receiveCount: number
  receipt: string | undefined
  sentAtMs: number
  carrier: Carrier
}
export type DeadLetter = { side: Side; body: string; obituary: Obituary }

export type MemoryQueues = Queues & {
  /** Puts a body there as a publisher would. */
  publish(side: Side, body: string, carrier?: Carrier): void
  /** Everything visible now, at most ten, hidden for the visibility time-out. */
  receive(side: Side): Delivery[]
  acknowledge(side: Side, delivery: Delivery): void
  /** When the next message becomes visible; undefined when there is none. */
  nextAt(): number | undefined
  size(): number
  /** Everything in the queue is lost, whether it is visible or not. */
  purge(side: Side): void
  deadLetters: DeadLetter[]
}

/** SQS standard queues in memory, on a clock that tests drive: at least once, delays, visibility, receive counts. */
export function createMemoryQueues(now: () => number, visibilityMs: number): MemoryQueues {
  const queues: Record<Side, Map<string, Message>> = { create: new Map(), delete: new Map() }
  const deadLetters: DeadLetter[] = []
  let count = 0

  function put(side: Side, body: string, delayMs: number, carrier: Carrier = {}): void {
    const messageId = `m${++count}`
    queues[side].set(messageId, {
      messageId,
      body,
      visibleAt: now() + delayMs,
      receiveCount: 0,
      receipt: undefined,
      sentAtMs: now(),
      carrier,
    })
  }
  const held = (side: Side, { messageId, receiptHandle }: Delivery) => {
    const message = queues[side].get(messageId)
    return message?.receipt === receiptHandle ? message : undefined
  }

  return {
    publish: (side, body, carrier) => put(side, body, 0, carrier),
    async send(side, message, { delaySeconds, carrier }) {
      if (!Number.isFinite(delaySeconds)) throw new Error(`DelaySeconds cannot be ${delaySeconds}`)
      const delayMs = Math.min(Math.max(Math.ceil(delaySeconds), 0), 900) * 1000
      put(side, JSON.stringify(message), delayMs, carrier)
    },
    async bury(side, body, obituary) {
      deadLetters.push({ side, body, obituary })
    },
    async showAgainIn(side, delivery, seconds) {
      const message = held(side, delivery)
      if (message) message.visibleAt = now() + Math.max(1, seconds) * 1000
    },
    receive(side) {
      const visible = [...queues[side].values()].filter(({ visibleAt }) => visibleAt <= now()).slice(0, 10)
      return visible.map((message) => {
        message.receiveCount += 1
        message.visibleAt = now() + visibilityMs
        message.receipt = `r${++count}`
        const { messageId, body, receipt, receiveCount, sentAtMs, carrier } = message
        return { messageId, body, receiptHandle: receipt, receiveCount, sentAtMs, carrier }
      })
    },
    acknowledge(side, delivery) {
      if (held(side, delivery)) queues[side].delete(delivery.messageId)
    },
    nextAt() {
      const times = Object.values(queues).flatMap((queue) =>
        [...queue.values()].map(({ visibleAt }) => visibleAt),
      )
      return times.length === 0 ? undefined : Math.min(...times)
    },
    purge: (side) => queues[side].clear(),
    size: () => queues.create.size + queues.delete.size,
    deadLetters,
  }
}
