import { type Claim, numberOf, zonePartition } from '../../lib/claims.ts'
import type { Config, Zone } from '../../lib/config.ts'
import { Failure } from '../../lib/failure.ts'
import { ownership } from '../../lib/mark.ts'
import { hashNumber, macOf, seedFile } from '../../lib/names.ts'
import { fail, next, type Outcome, wait } from '../../lib/outcome.ts'
import { byFewest, byHash } from '../../lib/placement.ts'
import { isProxmoxError } from '../../lib/proxmox/index.ts'
import type { Moment, Patch, Place, RowOf } from '../../lib/record.ts'
import { templatesOf } from '../../lib/wish.ts'
import { bySpread, groupOf, groupPartition } from './spread.ts'
import type { Deps } from './steps.ts'

type Reserving = RowOf['reserve'] & Moment
type Needs = Pick<Deps, 'vms' | 'claims' | 'config' | 'cluster' | 'countOn'>

const PROBES_A_TURN = 16
/** What says of a node that another one of its zone may do: its storage is away or not meant for it, or the node hangs. */
const UNFIT = ['StorageOffline', 'UnsupportedStorage', 'Unreachable'] as const
const ZONE_FULL_CAP_SECONDS = 24 * 3600
const SETTLING_CAP_SECONDS = 3600
const LEAVING_CAP_SECONDS = 3600

/**
 * Chooses a node and claims a VMID there. Repeatable: a claim of our own from an earlier try counts. But not while an
 * earlier try may still be at it: it would claim a number that nobody remembers, or give back the one that is used now.
 */
export async function reserve(row: Reserving, deps: Needs): Promise<Outcome> {
  if (!row.settled) return wait('an earlier try may still be at it', 10, { capSeconds: SETTLING_CAP_SECONDS })
  const zone = deps.config.zones[row.spec.zone]
  if (!zone) return fail('Misconfigured', `zone ${row.spec.zone} is not in the configuration`)
  if (!(await roomIn(row, deps))) {
    return wait(`zone ${row.spec.zone} is full`, 30, { capSeconds: ZONE_FULL_CAP_SECONDS, why: 'place' })
  }
  return reserveOnOne(row, zone, await candidatesOf(zone, row, deps), deps)
}

/** Takes the best of the candidates; one that shows itself unfit gives way to the next. */
async function reserveOnOne(
  row: Reserving,
  zone: Zone,
  candidates: Template[],
  deps: Needs,
): Promise<Outcome> {
  const template = await choose(zone, row, candidates, deps)
  if (!template) throw noNode(zone, row, deps.config)
  try {
    return await reserveOn(template, zone, row, deps)
  } catch (error) {
    const others = candidates.filter(({ node }) => node !== template.node)
    const isUnfit = isProxmoxError(error, ...UNFIT) && error.node === template.node
    if (!isUnfit || others.length === 0) throw error
    const group = groupOf(row, deps.config)
    if (group !== undefined)
      await deps.claims.freeSlots(groupPartition(zone.cluster, template.node, group), row.uid)
    return reserveOnOne(row, zone, others, deps)
  }
}

async function reserveOn(template: Template, zone: Zone, row: Reserving, deps: Needs): Promise<Outcome> {
  const placed = (vmid: number): Place => ({
    cluster: zone.cluster,
    node: template.node,
    vmid,
    template: template.vmid,
    storage: deps.cluster.storage,
  })

  const kept = await ownClaim(row, placed, deps)
  if (kept && 'kind' in kept) return kept
  if (kept) return next('clone', reserved(row, kept, deps))

  const { from, to } = zone.vmids ?? deps.cluster.vmids
  const size = to - from + 1
  const first = hashNumber(row.uid) + row.probed + PROBES_A_TURN * (row.problem?.times ?? 0)
  for (let probe = 0; probe < Math.min(PROBES_A_TURN, size); probe++) {
    const place = placed(from + ((first + probe) % size))
    if (row.littered?.includes(place.vmid)) continue
    const claim = await deps.claims.takeVmid(place.cluster, place.vmid, row.uid)
    // The index is late, or another process of ours is at it: the next look tells.
    if (claim === 'its own') return wait(CHANGED, 1)
    if (claim === 'another’s') continue
    if ((await deps.vms.isFree(place.vmid)) && (await hasNoDisk(place, deps)))
      return next('clone', reserved(row, place, deps))
    await deps.claims.free(claim)
  }
  const probed = row.probed + PROBES_A_TURN
  if (probed < size) return wait('looking for a free VMID', 0, { patch: { probed } })
  throw new Failure('RangeExhausted', `no free VMID in ${from} to ${to}`, { class: 'transient' })
}

async function roomIn(row: Reserving, { claims, config }: Needs): Promise<boolean> {
  const { proxiesPerZone } = config.limits
  return (
    proxiesPerZone === undefined || claims.takeSlot(zonePartition(row.spec.zone), proxiesPerZone, row.uid)
  )
}

type Template = { node: string; vmid: number }

/** The templates of the image on the nodes of the zone that are online. */
async function candidatesOf(zone: Zone, { spec }: Reserving, { vms, config }: Needs): Promise<Template[]> {
  const online = new Set(await vms.nodesOnline())
  return templatesOf(zone, spec.image, config).filter(({ node }) => online.has(node))
}

async function choose(
  zone: Zone,
  row: Reserving,
  candidates: Template[],
  deps: Needs,
): Promise<Template | undefined> {
  const group = groupOf(row, deps.config)
  if (group === undefined) return best(zone, row, candidates, deps)
  const ranked: Template[] = []
  for (let left = candidates; left.length > 0; left = left.filter((one) => !ranked.includes(one))) {
    const first = await best(zone, row, left, deps)
    if (first) ranked.push(first)
  }
  return bySpread(row.uid, ranked, (node) => groupPartition(zone.cluster, node, group), deps.claims)
}

async function best(zone: Zone, { uid }: Reserving, candidates: Template[], { config, countOn }: Needs) {
  if (config.placement === 'hash') return byHash(uid, candidates)
  const counts = new Map<string, number>()
  for (const { node } of candidates) counts.set(node, await countOn(zone.cluster, node))
  return byFewest(uid, candidates, counts)
}

function noNode(zone: Zone, { spec }: Reserving, config: Config): Failure {
  const nodes = templatesOf(zone, spec.image, config).map(({ node }) => node)
  const where = nodes.join(', ') || 'none is configured'
  const message = `no node of zone ${spec.zone} with image ${spec.image} is online (${where})`
  return new Failure('NoNode', message, { class: 'transient' })
}

const CHANGED = 'what was claimed earlier has changed meanwhile'

/**
 * A number we claimed in an earlier try and may use; numbers that turned out to be held by others, and all but one, are
 * given back. The row has settled, so nothing of ours can still appear at a number held by another. What is kept is
 * stamped anew: who stood still since an earlier try gives back only what he saw then.
 */
async function ownClaim(
  row: Reserving,
  placed: (vmid: number) => Place,
  { vms, claims, config }: Needs,
): Promise<Place | Outcome | undefined> {
  type Found = { claim: Claim; place: Place }
  const ours: Found[] = []
  const free: Found[] = []
  for (const claim of await claims.claimsOf(row.uid)) {
    const number = numberOf(claim)
    if (!number) continue
    if (claim.leaving !== undefined)
      return wait(`the VM that it had at ${number.vmid} is being deleted`, 10, {
        capSeconds: LEAVING_CAP_SECONDS,
      })
    const place = placed(number.vmid)
    // An earlier generation was to be elsewhere. `release` can look there, gives back what it finds and comes here again.
    if (number.cluster !== place.cluster) return next('release')
    if (row.littered?.includes(place.vmid)) {
      if (!(await claims.free(claim))) return wait(CHANGED, 1)
      continue
    }
    const look = await vms.look(place, 'nothing')
    if (look.kind === 'unknown') return wait('a VMID claimed earlier cannot be looked at now', 5)
    const isOurs =
      look.kind === 'vm' && ownership(look.config, { ...row, place }, config.deployment).kind === 'ours'
    if (isOurs) ours.push({ claim, place })
    else if (look.kind === 'absent' && (await hasNoDisk(place, { vms }))) free.push({ claim, place })
    else if (!(await claims.free(claim))) return wait(CHANGED, 1)
  }
  const [kept, ...spare] = [...ours, ...free]
  for (const one of spare) if (free.includes(one) && !(await claims.free(one.claim))) return wait(CHANGED, 1)
  if (kept && !(await claims.keep(kept.claim))) return wait(CHANGED, 1)
  return kept?.place
}

/** No disk of an earlier VM is left that a clone would trip over. */
async function hasNoDisk({ node, storage, vmid }: Place, { vms }: Pick<Needs, 'vms'>): Promise<boolean> {
  return (await vms.volumesOf({ node, storage, vmid })).length === 0
}

/** The row as it enters a place, with nothing remembered of an earlier one but where seeds may lie. */
function reserved(
  row: Reserving,
  place: Place,
  { config, cluster }: Pick<Needs, 'config' | 'cluster'>,
): Patch {
  return {
    place,
    mac: macOf(config.deployment, row.uid),
    seed: `${cluster.isoStorage}:iso/${seedFile(config.deployment, row.uid, row.generation)}`,
    seededOn: [...new Set([...(row.seededOn ?? []), place.node])],
    probed: 0,
    ended: undefined,
    cloned: undefined,
    unsettledUntil: undefined,
  }
}
