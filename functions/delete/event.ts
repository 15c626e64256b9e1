import * as z from 'zod'
import { type Catalogue, Continue, parseEvent, Resume } from '../../lib/events.ts'
import { Uid } from '../../lib/spec.ts'
import { wanted } from '../../lib/wanted.ts'

/** A publisher wishes a proxy gone, for ever: its uid is not used again. */
export const ProxyDeletionRequested = z.strictObject({ type: z.literal('ProxyDeletionRequested'), uid: Uid })
export type ProxyDeletionRequested = z.infer<typeof ProxyDeletionRequested>

/** gc found a VM that bears a mark of ours and belongs to no row. */
export const Orphan = z.strictObject({
  type: z.literal('Orphan'),
  cluster: z.string().regex(/^[a-z][a-z0-9-]{0,31}$/, wanted('the name of a cluster')),
  vmid: z.int().min(100).max(999_999_999),
  uid: Uid,
})
export type Orphan = z.infer<typeof Orphan>

export type DeleteEvent = ProxyDeletionRequested | Orphan | Continue | Resume

/** Everything the delete queue carries. */
const deleteEvents: Catalogue<DeleteEvent> = { ProxyDeletionRequested, Orphan, Continue, Resume }

/** Reads a message of the delete queue. @throws {InvalidEvent} */
export const parse = (body: string) => parseEvent(body, deleteEvents)

/** An orphan has a row of its own, never the tombstone's. */
export const keyOf = (event: ProxyDeletionRequested | Orphan) =>
  event.type === 'Orphan' ? `orphan#${event.cluster}#${event.vmid}` : event.uid
