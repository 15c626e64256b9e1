import type { Message } from '@aws-sdk/client-sqs'
import * as z from 'zod'
import { Continue, Resume, RowKey } from './events.ts'
import type { Side } from './record.ts'
import { Uid } from './spec.ts'

/** What the letters that SQS itself gave up on are called: nobody wrote a code on them. */
export const UNDELIVERED = 'Undelivered'
/** … and what an operator reads about them; lib/symptoms.ts has the rest. */
export const undelivered = {
  symptom: 'SQS itself gave a message up: it was received a thousand times and never done with',
  hint:
    'whoever received it died each time, or the function was not there: look in its log and at its concurrency, mend that, ' +
    'then `egress dlq redrive <message id>`',
}

/** A dead letter, read. What is not on it is not known; nothing in it is to be trusted to be short or clean. */
export type Letter = {
  side: Side
  messageId: string
  receiptHandle: string
  body: string
  /**
   * `report`: a life cycle that failed, its row says all; `event`: what somebody published, kept to the letter;
   * `message`: one of our own between two steps that killed whoever read it.
   */
  kind: 'report' | 'event' | 'message'
  code: string
  uid?: string
  turn?: number
  step?: string
  /** Epoch milliseconds. */
  diedAt: number
  problem: Problem
  attributes: Readonly<Record<string, string>>
}

const Problem = z
  .object({
    reason: z.string(),
    hint: z.string(),
    zone: z.string(),
    cluster: z.string(),
    node: z.string(),
    vmid: z.number(),
    upid: z.string(),
  })
  .partial()
type Problem = z.infer<typeof Problem>

const Ours = z.union([Continue, Resume])

export function readLetter(side: Side, message: Message): Letter {
  const { MessageId: messageId = '', ReceiptHandle: receiptHandle = '', Body: body = '' } = message
  const attributes = Object.fromEntries(
    Object.entries(message.MessageAttributes ?? {}).map(([name, { StringValue = '' }]) => [
      name,
      StringValue,
    ]),
  )
  const { code = UNDELIVERED, step, failedAt } = attributes
  const document = jsonOf(body)
  const ours = Ours.safeParse(document).data
  // Anyone who may send to the queue may write attributes, and rows are looked up by this one.
  const uid = RowKey.safeParse(attributes.uid).data ?? ours?.uid ?? uidIn(document)
  const turn = attributes.turn === undefined ? ours?.turn : Number(attributes.turn || Number.NaN)
  const died = failedAt === undefined ? Number.NaN : Date.parse(failedAt)
  return {
    side,
    messageId,
    receiptHandle,
    body,
    // Only `report` names the step that failed.
    kind: step !== undefined ? 'report' : ours ? 'message' : 'event',
    code,
    diedAt: Number.isNaN(died) ? Number(message.Attributes?.SentTimestamp ?? 0) : died,
    problem:
      code === UNDELIVERED
        ? { reason: 'received so often that SQS gave it up', hint: undelivered.hint }
        : problemIn(attributes.problem),
    attributes,
    ...(uid === undefined ? {} : { uid }),
    ...(turn === undefined || !Number.isSafeInteger(turn) ? {} : { turn }),
    ...(step === undefined ? {} : { step }),
  }
}

/** Whether a person means this letter: by the uid, by the message's id, or by enough of its beginning. */
export const isMeant = ({ uid, messageId }: Letter, id: string) =>
  uid === id || messageId === id || (id.length >= 8 && messageId.startsWith(id))

const problemIn = (text: string | undefined): Problem => Problem.safeParse(jsonOf(text ?? '')).data ?? {}

/** Whose event it is, in whatever envelope it came; undefined when it does not say so in our way. */
function uidIn(document: unknown, depth = 0): string | undefined {
  const parsed = Envelope.safeParse(document).data
  if (!parsed || depth > 1) return undefined
  const { uid, detail, Message: message } = parsed
  if (uid !== undefined) return Uid.safeParse(uid).data
  return uidIn(detail ?? (message === undefined ? undefined : jsonOf(message)), depth + 1)
}

const Envelope = z.object({ uid: z.string(), detail: z.unknown(), Message: z.string() }).partial()

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined // A body that is not JSON is a letter too.
  }
}
