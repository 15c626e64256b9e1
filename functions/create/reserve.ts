import type { Zone } from '../../lib/config.ts'
import { Failure } from '../../lib/failure.ts'
import { ownership } from '../../lib/mark.ts'
import { hashNumber, macOf, seedFile } from '../../lib/names.ts'
import { fail, next, type Outcome, wait } from '../../lib/outcome.ts'
import { byFewest, byHash } from '../../lib/placement.ts'
import type { Moment, Patch, Place, RowOf } from '../../lib/record.ts'
import { templatesOf } from '../../lib/wish.ts'
import type { Deps } from './steps.ts'

type Reserving = RowOf['reserve'] & Moment
type Needs = Pick<Deps, 'vms' | 'claims' | 'config' | 'cluster' | 'countOn'>

const PROBES_A_TURN = 16
const ZONE_FULL_CAP_SECONDS = 24 * 3600

/** Chooses a node and claims a VMID there. Repeatable: a claim of our own from an earlier try counts. */
export async function reserve(row: Reserving, deps: Needs): Promise<Outcome> {
  const zone = deps.config.zones[row.spec.zone]
  if (!zone) return fail('Misconfigured', `zone ${row.spec.zone} is not in the configuration`)
  if (!(await roomIn(row, deps))) {
    return wait(`zone ${row.spec.zone} is full`, 30, { capSeconds: ZONE_FULL_CAP_SECONDS })
  }
  const template = await chooseTemplate(zone, row, deps)
  const placed = (vmid: number): Place => ({
    cluster: zone.cluster,
    node: template.node,
    vmid,
    template: template.vmid,
    storage: deps.cluster.storage,
  })

  const kept = await ownClaim(row, placed, deps)
  if (kept === 'unknown') return wait('a VMID claimed earlier cannot be looked at now', 5)
  if (kept) return next('clone', reserved(row, kept, deps))

  const { from, to } = zone.vmids ?? deps.cluster.vmids
  const size = to - from + 1
  const first = hashNumber(row.uid) + row.probed + PROBES_A_TURN * (row.problem?.times ?? 0)
  for (let probe = 0; probe < Math.min(PROBES_A_TURN, size); probe++) {
    const place = placed(from + ((first + probe) % size))
    if (!(await deps.claims.takeVmid(place.cluster, place.vmid, row.uid))) continue
    if ((await deps.vms.isFree(place.vmid)) && (await hasNoDisk(place, deps)))
      return next('clone', reserved(row, place, deps))
    await deps.claims.freeVmid(place.cluster, place.vmid, row.uid)
  }
  const probed = row.probed + PROBES_A_TURN
  if (probed < size) return wait('looking for a free VMID', 0, { patch: { probed } })
  throw new Failure('RangeExhausted', `no free VMID in ${from} to ${to}`, { class: 'transient' })
}

async function roomIn(row: Reserving, { claims, config }: Needs): Promise<boolean> {
  const { proxiesPerZone } = config.limits
  return proxiesPerZone === undefined || claims.takeSlot(`zone#${row.spec.zone}`, proxiesPerZone, row.uid)
}

/** @throws {Failure} NoNode when no node of the zone with the template is online */
async function chooseTemplate(zone: Zone, row: Reserving, { vms, config, countOn }: Needs) {
  const templates = templatesOf(zone, row.spec.image, config)
  const online = new Set(await vms.nodesOnline())
  const candidates = templates.filter(({ node }) => online.has(node))
  const chosen =
    config.placement === 'hash' ? byHash(row.uid, candidates) : await fewest(zone, row, candidates, countOn)
  if (chosen) return chosen
  const nodes = templates.map(({ node }) => node).join(', ')
  const message = `no node of zone ${row.spec.zone} with image ${row.spec.image} is online (${nodes || 'none is configured'})`
  throw new Failure('NoNode', message, { class: 'transient' })
}

async function fewest<T extends { node: string }>(
  zone: Zone,
  row: Reserving,
  candidates: T[],
  countOn: Needs['countOn'],
) {
  const counts = new Map<string, number>()
  for (const { node } of candidates) counts.set(node, await countOn(zone.cluster, node))
  return byFewest(row.uid, candidates, counts)
}

/**
 * A number we claimed in an earlier try and may use; numbers that turned out to be held by others are given back. Before
 * a row comes back here, its calls have settled, so nothing of ours can still appear at a number held by another.
 */
async function ownClaim(row: Reserving, placed: (vmid: number) => Place, { vms, claims, config }: Needs) {
  for (const { cluster, vmid } of await claims.vmidsOf(row.uid)) {
    const place = placed(vmid)
    if (cluster !== place.cluster) continue
    const look = await vms.look(place)
    if (look.kind === 'unknown') return 'unknown'
    if (look.kind === 'absent' && (await hasNoDisk(place, { vms }))) return place
    if (look.kind === 'vm' && ownership(look.config, { ...row, place }, config.deployment).kind === 'ours')
      return place
    await claims.freeVmid(cluster, vmid, row.uid)
  }
  return undefined
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
