import type { SQSRecord } from 'aws-lambda'
import * as z from 'zod'
import { type Carrier, carriedBy } from './tracing.ts'

/** What SNS puts around a message for a queue that does not take it raw: the publisher's attributes are inside. */
const Notification = z.object({
  Type: z.literal('Notification'),
  MessageAttributes: z.record(z.string(), z.object({ Value: z.string() })),
})

/** The trace that a record is of, by its attributes or by those in an envelope of SNS; nothing where nobody would read it. */
export function carrierIn({
  messageAttributes,
  body,
}: Pick<SQSRecord, 'messageAttributes' | 'body'>): Carrier {
  const own = carriedBy((name) => messageAttributes[name]?.stringValue)
  if (own.traceparent !== undefined || !body.includes('"traceparent"')) return own
  const envelope = Notification.safeParse(jsonOf(body)).data?.MessageAttributes
  return carriedBy((name) => envelope?.[name]?.Value)
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined // What cannot be read is judged by the worker.
  }
}
