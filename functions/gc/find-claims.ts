import {
  addressPartition,
  type Claim,
  isOfAddress,
  isOfSlot,
  keeperOf,
  needsSlot,
  numberOf,
} from '../../lib/claims.ts'
import type { RowSummary } from '../../lib/inventory.ts'
import { type Finding, type Scene, silence, silentNodes } from './finding.ts'
import { type ClusterView, isLive } from './world.ts'

/** Claims whose row is gone, and those that a row which is there does not need. */
export function findClaims(scene: Scene): Finding[] {
  const clusters = new Map(scene.world.clusters.map((cluster) => [cluster.name, numbersOf(cluster)]))
  return scene.world.claims.flatMap((claim) => {
    const { partition, sort, owner } = claim
    const subject = subjectOf(claim, scene)
    if (!subject) return []
    const row = scene.rows.byUid.get(keeperOf(claim))
    if (isLive(row) && !isSpare(claim, row)) return []
    const key = `claim#${partition}#${sort}#${owner}`
    const cluster = clusters.get(subject.cluster)
    const blocked = cluster ? blockade(subject, cluster, scene, key) : 'its cluster could not be looked at'
    const vmid = subject.kind === 'vmid' ? { vmid: subject.vmid } : {}
    return [
      {
        key,
        detail: { kind: 'claim', cluster: subject.cluster, uid: owner },
        action: { kind: 'free claim' as const, cluster: subject.cluster, partition, sort, owner, ...vmid },
        ...(blocked === undefined ? {} : { blocked }),
      },
    ]
  })
}

/**
 * Whether a live row does not need a claim of its own: its process stood still, and took it when others had gone on. A place
 * in a storage's queue is for two steps alone; a proxy that is ready is at one number and one address.
 */
export function isSpare(claim: Claim, { phase, step, place, address }: RowSummary): boolean {
  if (isOfSlot(claim)) return !needsSlot(step)
  if (phase !== 'Ready' || !place) return false
  const number = numberOf(claim)
  if (number) return number.cluster !== place.cluster || number.vmid !== place.vmid
  if (!isOfAddress(claim) || address === undefined) return false
  return claim.partition !== addressPartition(place.cluster, address)
}

type Subject =
  | { kind: 'vmid'; cluster: string; vmid: number }
  /** Of a storage's queue; with a node unless all share it. */
  | { kind: 'slot'; cluster: string; node?: string }
  /** Of a zone, or of a group on a node. */
  | { kind: 'zone'; cluster: string }
  | { kind: 'address'; cluster: string; of: string }

/** What a claim is about. Turns to ask an agent lapse by themselves. */
function subjectOf({ partition, sort, owner }: Claim, { rules }: Pick<Scene, 'rules'>): Subject | undefined {
  const [kind, first = '', , node] = partition.split('#')
  if (kind === 'address') return { kind, cluster: first, of: owner }
  if (kind === 'vmid') return { kind, cluster: first, vmid: Number(sort) }
  if (kind === 'clone') return { kind: 'slot', cluster: first, ...(node === undefined ? {} : { node }) }
  if (kind === 'spread') return { kind: 'zone', cluster: first }
  if (kind === 'zone') return { kind, cluster: rules.zones[partition.slice('zone#'.length)] ?? '' }
  return undefined
}

/** A cluster with the numbers at which VMs stand and of which disks are left, and the uids whose VMs were seen. */
type Numbered = ClusterView & {
  standing: ReadonlySet<number>
  disked: ReadonlySet<number | undefined>
  marked: ReadonlySet<string>
}

const numbersOf = (cluster: ClusterView): Numbered => ({
  ...cluster,
  standing: new Set(cluster.vms.map(({ vmid }) => vmid)),
  marked: new Set(
    [...cluster.sights.values()].flatMap((sight) => (sight.kind === 'ours' ? sight.mark.uid : [])),
  ),
  disked: new Set(cluster.disks.flatMap(({ volumes }) => volumes.map(({ vmid }) => vmid))),
})

function blockade(subject: Subject, cluster: Numbered, scene: Scene, key: string): string | undefined {
  if (subject.kind === 'slot' && subject.node !== undefined) {
    return silentNodes(cluster).includes(subject.node) ? `silent: ${subject.node}` : undefined
  }
  const silent = silence(cluster)
  if (silent) return silent.blocked
  // Of a proxy that is ready, its VM stands, and has another.
  const isReady = scene.rows.byUid.get(subject.kind === 'address' ? subject.of : '')?.phase === 'Ready'
  if (subject.kind === 'address')
    return cluster.marked.has(subject.of) && !isReady ? 'its VM still stands' : undefined
  if (subject.kind !== 'vmid') return undefined
  const { vmid } = subject
  if (cluster.sights.get(vmid)?.kind === 'ours') return 'its VM still stands'
  if (cluster.disked.has(vmid) && !cluster.standing.has(vmid)) return 'a disk of it is left'
  // A clone that began while its owner may still have been there may be on its way to this very number.
  const since = scene.suspects.get(key)?.firstSeen ?? scene.world.now
  const isOld = cluster.clones.some(({ startedAtMs }) => startedAtMs <= since + scene.rules.settleMs)
  return isOld ? 'a clone of ours is still running' : undefined
}
