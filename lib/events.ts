import * as z from 'zod'
import { FailureCode } from './failure.ts'
import { StepName } from './record.ts'
import { Uid } from './spec.ts'
import { type Complaint, parseWith, shown, wanted } from './wanted.ts'

const Instant = z.iso.datetime()
const Turn = z.int().min(0)
/**
 * The key of a row: a publisher's uid, or an orphan's of gc. Anything else never was one, and DynamoDB takes no key that is
 * empty or longer than 2 KiB.
 */
export const RowKey = z
  .string()
  .regex(
    /^(?:[a-z0-9][a-z0-9._-]{0,62}|orphan#[a-z0-9-]{1,32}#[0-9]{3,9})$/,
    wanted('a uid, or orphan#<cluster>#<vmid>'),
  )

/** "Act on your row again, if it still stands at this turn." Carries no state. */
export const Continue = z.strictObject({ type: z.literal('Continue'), uid: RowKey, turn: Turn })
export type Continue = z.infer<typeof Continue>

/** Moves a row that failed or stalled; with `to`, takes a Ready one up again. Sent by gc, check and redrive. */
export const Resume = z.strictObject({
  type: z.literal('Resume'),
  uid: RowKey,
  turn: Turn,
  to: z.enum(['start', 'stop']).optional(),
})
export type Resume = z.infer<typeof Resume>

/** `uid:generation:turn`: the same on every retry, so a consumer can drop what it has seen. */
const EventId = z.string()

export const ProxyReady = z.strictObject({
  type: z.literal('ProxyReady'),
  eventId: EventId,
  uid: Uid,
  generation: z.int(),
  name: z.string(),
  /** `http://address:port`, without credentials. */
  endpoint: z.string(),
  address: z.string(),
  vmid: z.int(),
  node: z.string(),
  cluster: z.string(),
  /** From the acceptance of this generation's request. */
  timeToReadyMs: z.int(),
})

export const ProxyFailed = z.strictObject({
  type: z.literal('ProxyFailed'),
  eventId: EventId,
  uid: Uid,
  generation: z.int(),
  code: FailureCode,
  reason: z.string(),
  hint: z.string().optional(),
  step: StepName.optional(),
  /** Whether sending it again may end otherwise without a change of the request. */
  retriable: z.boolean(),
})

export const ProxyChanged = z.strictObject({
  type: z.literal('ProxyChanged'),
  eventId: EventId,
  uid: Uid,
  generation: z.int(),
  endpoint: z.string(),
  address: z.string(),
  previousAddress: z.string(),
})

export const ProxyDeleted = z.strictObject({
  type: z.literal('ProxyDeleted'),
  eventId: EventId,
  uid: Uid,
  generation: z.int(),
  deletedAt: Instant,
})

/** What we tell the world, on the topic, at least once. */
export const OutcomeEvent = z.discriminatedUnion('type', [
  ProxyReady,
  ProxyFailed,
  ProxyChanged,
  ProxyDeleted,
])
export type OutcomeEvent = z.infer<typeof OutcomeEvent>

/** The message cannot be understood; its body goes to the dead letters as it came. */
export class InvalidEvent extends Error {
  override readonly name = 'InvalidEvent'
  readonly complaints: Complaint[]
  constructor(complaints: Complaint[]) {
    super(complaints.map(({ path, got, wanted }) => `${path}: got ${got}, wanted ${wanted}`).join('; '))
    this.complaints = complaints
  }
}

/** Types of message by the name in their `type`. */
export type Catalogue<T> = Readonly<Record<string, z.ZodType<T>>>

/**
 * Reads a queue message's body: the bare event (`{type, …}`), an EventBridge envelope (`{detail-type, detail}`), or an SNS
 * envelope (`{Type: Notification, Message}`) around either.
 * @throws {InvalidEvent} every complaint, by field
 */
export function parseEvent<T>(body: string, catalogue: Catalogue<T>): T {
  const { type, event } = unwrap(parseJson(body))
  const schema = typeof type === 'string' && Object.hasOwn(catalogue, type) ? catalogue[type] : undefined
  if (!schema) {
    const got = type === undefined ? 'nothing' : shown(type)
    throw new InvalidEvent([{ path: 'type', got, wanted: Object.keys(catalogue).join(' or ') }])
  }
  const parsed = parseWith(schema, event)
  if ('complaints' in parsed) throw new InvalidEvent(parsed.complaints)
  return parsed.value
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new InvalidEvent([{ path: '(document)', got: 'text that is not JSON', wanted: 'a JSON object' }])
  }
}

type Opened = { type: unknown; event: unknown }

function unwrap(document: unknown, depth = 0): Opened {
  if (!isObject(document)) {
    throw new InvalidEvent([
      {
        path: '(document)',
        got: Array.isArray(document) ? 'a list' : typeof document,
        wanted: 'a JSON object',
      },
    ])
  }
  if (document.Type === 'Notification' && typeof document.Message === 'string' && depth === 0) {
    return unwrap(parseJson(document.Message), 1)
  }
  if ('detail-type' in document && isObject(document.detail)) {
    return { type: document['detail-type'], event: { type: document['detail-type'], ...document.detail } }
  }
  return { type: document.type, event: document }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
