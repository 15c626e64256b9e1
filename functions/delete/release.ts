import { zonePartition } from '../../lib/claims.ts'
import { ownership } from '../../lib/mark.ts'
import { done, next, type Outcome, wait } from '../../lib/outcome.ts'
import type { Moment, Place, RowOf } from '../../lib/record.ts'
import { see } from '../../lib/sighting.ts'
import type { Deps } from './steps.ts'

type Releasing = RowOf['release'] & Moment
type Needs = Pick<Deps, 'vms' | 'vmsOf' | 'claims' | 'config' | 'cluster'>

/**
 * Proves absence once more when nothing can still be running, and gives back what was claimed. A VMID is given back only
 * after the row has let go of it, which takes a turn of its own. A VM that appeared after all goes back to `stop`.
 */
export async function release(row: Releasing, deps: Needs): Promise<Outcome> {
  const { vms, claims, config } = deps
  if (!row.settled) return wait('a call that was not answered may still run', 10)
  if (row.place) {
    const sight = await see(row, vms, config.deployment, 'nothing')
    if (sight.kind === 'unclear') return sight.outcome
    if (sight.kind === 'ours') return next('stop', { cloned: true })
    return wait('lets go of its place', 0, { patch: { place: undefined, cloned: undefined } })
  }
  for (const claim of await claims.vmidsOf(row.uid)) {
    const found = await stillOurs(row, claim, deps)
    if (found === 'unknown') return wait(`VMID ${claim.vmid} cannot be looked at now`, 5)
    if (found) return next('stop', { place: found, cloned: true })
    await claims.freeVmid(claim.cluster, claim.vmid, row.uid)
  }
  // A proxy that is made anew does not queue for its zone behind those who wait for a place there.
  const kept = row.wish === 'present' && row.spec ? zonePartition(row.spec.zone) : undefined
  await claims.freeAllButVmids(row.uid, kept)
  return row.wish === 'present' ? next('reserve', { ended: undefined, unsettledUntil: undefined }) : done()
}

/** Where a VM of ours stands at a number we claimed; undefined when none does. */
async function stillOurs(row: Releasing, claim: { cluster: string; vmid: number }, { vmsOf, config }: Needs) {
  const cluster = config.clusters[claim.cluster]
  const vms = vmsOf(claim.cluster)
  const [node] = Object.values(cluster?.images ?? {}).flatMap((byNode) => Object.keys(byNode))
  if (!cluster || !vms || node === undefined) return 'unknown'
  const place: Place = { ...claim, node, template: 0, storage: cluster.storage }
  const look = await vms.look(place, 'nothing')
  if (look.kind === 'unknown') return 'unknown'
  if (look.kind !== 'vm') return undefined
  const { kind } = ownership(look.config, { ...row, place }, config.deployment)
  return kind === 'foreign' || kind === 'nameless' ? undefined : { ...place, node: look.node }
}
