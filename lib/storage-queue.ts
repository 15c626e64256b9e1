import { placeSeconds } from './backoff.ts'
import { type Claims, slotPartition } from './claims.ts'
import type { Cluster, Config } from './config.ts'
import { type Outcome, wait } from './outcome.ts'
import type { Moment, Place, Row } from './record.ts'

type Needs = { claims: Claims; config: Config; cluster: Cluster }

const CAP_SECONDS = 24 * 3600

/** The queue of those who would clone to a storage or destroy there. Both calls give what to do instead while it is full. */
export function storageQueue(
  row: Row & Moment,
  place: Place,
  purpose: 'clone' | 'destroy',
  { claims, config, cluster }: Needs,
) {
  const slot = [slotPartition(place, cluster), config.limits.clonesPerStorage, row.uid] as const
  const full = (seconds = placeSeconds(row)): Outcome =>
    wait(`waits for its turn to ${purpose} on ${place.storage}`, seconds, {
      capSeconds: CAP_SECONDS,
      why: 'place',
    })
  return {
    /** For who waits already: asks the claims alone, since hundreds may wait, and Proxmox has those to serve who got in. */
    async stillFull(): Promise<Outcome | undefined> {
      if (row.parkedAt === undefined) return undefined
      // Whom Proxmox does not answer must not keep a place open that another could use.
      const since = row.problem ? undefined : row.parkedAt
      const state = await claims.queueForSlot(...slot, since)
      return state === 'open' ? undefined : full(state === 'eldest' ? 1 : undefined)
    },
    enter: async (): Promise<Outcome | undefined> =>
      (await claims.takeSlot(...slot, row.parkedAt)) ? undefined : full(),
  }
}
