import { ChangeMessageVisibilityCommand, SendMessageCommand, type SQSClient } from '@aws-sdk/client-sqs'
import { asFailing } from './failure.ts'
import type { Side } from './record.ts'
import type { Carrier } from './tracing.ts'

/** SQS delays a message by at most this; a longer wait is several messages. */
export const MAX_DELAY_SECONDS = 900

/** A received message, as the worker needs it. */
export type Delivery = {
  messageId: string
  body: string
  receiptHandle: string
  receiveCount: number
  /** Epoch milliseconds; unknown where the queue does not say. */
  sentAtMs?: number
  /** The trace that it belongs to. */
  carrier?: Carrier
}

/** Why a message is dead: what an operator sees. `problem` holds the rest. */
export type Obituary = {
  code: string
  uid?: string
  turn?: number
  step?: string
  failedAt: string
  problem: Record<string, unknown>
  carrier?: Carrier
}

export type Queues = {
  /** At least once. `message` carries no state: a Continue or a Resume. */
  send(side: Side, message: object, options: { delaySeconds: number; carrier?: Carrier }): Promise<void>
  /** Puts a body, to the letter, among the side's dead letters. */
  bury(side: Side, body: string, obituary: Obituary): Promise<void>
  /** When the queue shows the delivery again. Best effort: without it, the queue's own time-out applies. */
  showAgainIn(side: Side, delivery: Delivery, seconds: number): Promise<void>
}

export function createQueues(options: {
  client: SQSClient
  urls: Record<Side, { queue: string; deadLetters: string }>
  onVisibilityFailure?: (error: Error) => void
}): Queues {
  const { client, urls, onVisibilityFailure } = options
  return {
    async send(side, message, { delaySeconds, carrier }) {
      await client.send(
        new SendMessageCommand({
          QueueUrl: urls[side].queue,
          MessageBody: JSON.stringify(message),
          DelaySeconds: Math.min(Math.max(Math.ceil(delaySeconds), 0), MAX_DELAY_SECONDS),
          ...(carrier && { MessageAttributes: textAttributes(carrier) }),
        }),
      )
    },

    async bury(side, body, obituary) {
      const { problem, carrier = {}, ...rest } = obituary
      const attributes = Object.entries(rest).filter(([, value]) => value !== undefined && value !== '')
      await client.send(
        new SendMessageCommand({
          QueueUrl: urls[side].deadLetters,
          MessageBody: body,
          MessageAttributes: {
            ...Object.fromEntries(attributes.map(([name, value]) => [name, text(String(value))])),
            problem: text(problemText(problem)),
            ...textAttributes(carrier),
          },
        }),
      )
    },

    async showAgainIn(side, { receiptHandle }, seconds) {
      const VisibilityTimeout = Math.min(Math.max(Math.ceil(seconds), 1), 43_200)
      const command = new ChangeMessageVisibilityCommand({
        QueueUrl: urls[side].queue,
        ReceiptHandle: receiptHandle,
        VisibilityTimeout,
      })
      // Not an error of the step: the message comes back all the same, only later.
      await client.send(command).catch((error: unknown) => onVisibilityFailure?.(asFailing(error)))
    },
  }
}

const text = (value: string) => ({ DataType: 'String', StringValue: value })
const textAttributes = (carrier: Carrier) =>
  Object.fromEntries(Object.entries(carrier).map(([name, value]) => [name, text(value)]))

const MAX_PROBLEM_BYTES = 4096

/** SQS refuses some characters and a terminal obeys some, and all attributes of a message count towards its size. */
function problemText(problem: Record<string, unknown>): string {
  const whole = textOf(problem)
  if (Buffer.byteLength(whole) <= MAX_PROBLEM_BYTES) return whole
  const reason = String(problem.reason ?? '')
  // Cut by code points, so that no half character is left.
  const short = textOf({
    ...problem,
    reason: `${[...reason].slice(0, 500).join('')}…`,
    hint: undefined,
  })
  return Buffer.byteLength(short) <= MAX_PROBLEM_BYTES ? short : textOf({ reason: 'too long to be shown' })
}

/** JSON whose texts hold no control characters; within JSON they would only be escaped, and come back when it is read. */
const textOf = (problem: Record<string, unknown>) =>
  JSON.stringify(problem, (_, value: unknown) => (typeof value === 'string' ? clean(value) : value))

const clean = (value: string) => value.replace(/(?![\t\n\r])[\p{Cc}\ufffe\uffff]/gu, ' ')
