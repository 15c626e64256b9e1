import { type Claim, type Claims, type Numbered, numberOf, zonePartition } from '../../lib/claims.ts'
import { ownership } from '../../lib/mark.ts'
import { done, next, type Outcome, wait } from '../../lib/outcome.ts'
import type { Moment, Place, Row, RowOf } from '../../lib/record.ts'
import { see } from '../../lib/sighting.ts'
import type { Deps } from './steps.ts'

type Releasing = RowOf['release'] & Moment
type Needs = Pick<Deps, 'vms' | 'vmsOf' | 'claims' | 'config' | 'cluster'>

/**
 * Proves absence once more when nothing can still be running, and gives back what was claimed. A VMID is given back only
 * after the row has let go of it, which takes a turn of its own. A VM that appeared after all goes back to `stop`. What is
 * given back is what was seen before the proof: who stands still in between leaves alone what was taken anew since.
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
  // A proxy that is made anew does not queue for its zone behind those who wait for a place there.
  const kept = row.wish === 'present' && row.spec ? zonePartition(row.spec.zone) : undefined
  for (const claim of await claimedFor(row, claims)) {
    if (claim.partition === kept) continue
    const number = numberOf(claim)
    if (number) {
      if (claim.leaving !== undefined && claim.leaving !== row.uid)
        return wait(`the VM at ${number.vmid} is being deleted as one that had lost its row`, 10)
      const found = await stillOurs(row, number, deps)
      if (found === 'unknown') return wait(`VMID ${number.vmid} cannot be looked at now`, 5)
      if (found && !(await claims.keep(claim))) return wait(CHANGED, 1)
      if (found) return next('stop', { place: found, cloned: true })
    }
    if (!(await claims.free(claim))) return wait(CHANGED, 1)
  }
  return row.wish === 'present' ? next('reserve', { ended: undefined, unsettledUntil: undefined }) : done()
}

const CHANGED = 'what was claimed has changed meanwhile'

/** What a row has claimed, numbers first. An orphan's number is claimed by the uid whose VM it deletes, and left to it. */
async function claimedFor({ uid, orphanOf }: Row, claims: Claims): Promise<Claim[]> {
  const left = orphanOf === undefined ? [] : await claims.claimsOf(orphanOf)
  const all = [...left.filter(({ leaving }) => leaving === uid), ...(await claims.claimsOf(uid))]
  const isNumber = (claim: Claim) => numberOf(claim) !== undefined
  return [...all.filter(isNumber), ...all.filter((claim) => !isNumber(claim))]
}

/** Where a VM of ours stands at a number we claimed; undefined when none does. */
async function stillOurs(row: Releasing, number: Numbered, { vmsOf, config }: Needs) {
  const cluster = config.clusters[number.cluster]
  const vms = vmsOf(number.cluster)
  const [node] = Object.values(cluster?.images ?? {}).flatMap((byNode) => Object.keys(byNode))
  if (!cluster || !vms || node === undefined) return 'unknown'
  const place: Place = { ...number, node, template: 0, storage: cluster.storage }
  const look = await vms.look(place, 'nothing')
  if (look.kind === 'unknown') return 'unknown'
  if (look.kind !== 'vm') return undefined
  const { kind } = ownership(look.config, { ...row, place }, config.deployment)
  return kind === 'foreign' || kind === 'nameless' ? undefined : { ...place, node: look.node }
}
