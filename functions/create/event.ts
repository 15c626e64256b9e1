import * as z from 'zod'
import { type Catalogue, Continue, Resume } from '../../lib/events.ts'
import { ProxyName, Spec, Uid } from '../../lib/spec.ts'
import { wanted } from '../../lib/wanted.ts'

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
export const createEvents: Catalogue<CreateEvent> = { ProxyRequested, Continue, Resume }

export const keyOf = ({ uid }: ProxyRequested) => uid
