import * as z from 'zod'
import { type Catalogue, Continue, Resume } from '../../lib/events.ts'
import { Uid } from '../../lib/spec.ts'

/** A publisher wishes a proxy gone, for ever: its uid is not used again. */
export const ProxyDeletionRequested = z.strictObject({ type: z.literal('ProxyDeletionRequested'), uid: Uid })
export type ProxyDeletionRequested = z.infer<typeof ProxyDeletionRequested>

/** gc found a VM that bears a mark of ours and belongs to no row. */
export const Orphan = z.strictObject({
  type: z.literal('Orphan'),
  cluster: z.string(),
  vmid: z.int().min(100),
  uid: Uid,
})
export type Orphan = z.infer<typeof Orphan>

export type DeleteEvent = ProxyDeletionRequested | Orphan | Continue | Resume

/** Everything the delete queue carries. */
export const deleteEvents: Catalogue<DeleteEvent> = { ProxyDeletionRequested, Orphan, Continue, Resume }
