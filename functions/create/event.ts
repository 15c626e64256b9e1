import * as z from 'zod'
import type { Config } from '../../lib/config.ts'
import { type Catalogue, Continue, InvalidEvent, parseEvent, Resume } from '../../lib/events.ts'
import { ProxyName, Spec, Uid } from '../../lib/spec.ts'
import { wanted } from '../../lib/wanted.ts'
import { checkRequest } from '../../lib/wish.ts'

/** A publisher wishes for a proxy. The same uid and generation again is a duplicate; a higher generation replaces. */
export const ProxyRequested = z.strictObject({
  type: z.literal('ProxyRequested'),
  uid: Uid,
  generation: z
    .int(wanted('a whole number, 1 or more'))
    .min(1, wanted('a whole number, 1 or more'))
    .max(999_999_999, wanted('a whole number below a billion'))
    .default(1),
  name: ProxyName,
  spec: Spec,
})
export type ProxyRequested = z.infer<typeof ProxyRequested>

export type CreateEvent = ProxyRequested | Continue | Resume

/** Everything the create queue carries. */
const createEvents: Catalogue<CreateEvent> = { ProxyRequested, Continue, Resume }

/** Reads a message of the create queue. @throws {InvalidEvent} also for a zone or an image that this installation does not have */
export function parse(body: string, config: Config): CreateEvent {
  const message = parseEvent(body, createEvents)
  const complaints = message.type === 'ProxyRequested' ? checkRequest(message, config) : []
  if (complaints.length > 0) throw new InvalidEvent(complaints)
  return message
}

export const keyOf = ({ uid }: ProxyRequested) => uid
