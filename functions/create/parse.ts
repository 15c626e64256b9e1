import type { Config } from '../../lib/config.ts'
import { InvalidEvent, parseEvent } from '../../lib/events.ts'
import { refusals } from '../../lib/nocloud/index.ts'
import type { Complaint } from '../../lib/wanted.ts'
import { checkRequest } from '../../lib/wish.ts'
import { type CreateEvent, createEvents, type ProxyRequested } from './event.ts'

/**
 * Reads a message of the create queue.
 * @throws {InvalidEvent} also for a zone or image this installation does not have, and for what no seed can hold
 */
export function parse(body: string, config: Config): CreateEvent {
  const message = parseEvent(body, createEvents)
  if (message.type !== 'ProxyRequested') return message
  const complaints = [...checkRequest(message, config), ...seedComplaints(message)]
  if (complaints.length > 0) throw new InvalidEvent(complaints)
  return message
}

/** What of a request the disc its VM boots with cannot hold. */
function seedComplaints({ spec }: ProxyRequested): Complaint[] {
  const { proxy, userData } = spec
  const found = refusals({ allow: proxy?.allow ?? [], ...(userData === undefined ? {} : { userData }) })
  return found.map(({ field, index, got, wanted }) => ({
    path: field === 'allow' ? `spec.proxy.allow.${index}` : 'spec.userData',
    got,
    wanted,
  }))
}
