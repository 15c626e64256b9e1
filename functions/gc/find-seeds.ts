import { type Finding, type Scene, silence, silentNodes } from './finding.ts'
import { readSeed } from './sight.ts'
import { type ClusterView, onNode, placeOf, type Shelf } from './world.ts'

/** Seeds that no row accounts for: nobody's, of an earlier generation, or on a node where their VM is not. */
export function findSeeds(cluster: ClusterView, scene: Scene): Finding[] {
  const nodes = new Map(cluster.vms.map(({ vmid, node }) => [vmid, node]))
  return cluster.seeds.flatMap((shelf) => {
    const waits = shelf.shared ? silence(cluster) : undefined
    return shelf.volumes.flatMap(({ volid }) => {
      const seed = readSeed(volid, scene.rules.deployment)
      if (!seed || scene.rows.leaving.has(seed.uid) || isAccountedFor(volid, shelf, cluster, scene, nodes))
        return []
      const vmSilent = silenceAround(volid, cluster, scene, nodes)
      const where = { cluster: cluster.name, node: shelf.node, storage: shelf.storage, volume: volid }
      return [
        {
          key: `seed#${cluster.name}#${placeOf(shelf)}#${volid}`,
          detail: { kind: 'seed', ...where, ...onNode(shelf), uid: seed.uid },
          action: { kind: 'sweep seed' as const, ...where, shared: shelf.shared, uid: seed.uid },
          ...(waits ?? vmSilent),
        },
      ]
    })
  })
}

/** A seed that a row names elsewhere goes only when its VM was seen to boot from another. `nodes`: where each VM is listed. */
function silenceAround(
  volid: string,
  cluster: ClusterView,
  { rows }: Scene,
  nodes: ReadonlyMap<number, string>,
): { blocked: string } | undefined {
  const silent = new Set(silentNodes(cluster))
  const where = (rows.bySeed.get(volid) ?? []).flatMap(({ place }) =>
    place?.cluster === cluster.name ? [nodes.get(place.vmid) ?? place.node] : [],
  )
  const unseen = where.find((node) => silent.has(node))
  return unseen === undefined ? undefined : { blocked: `silent: ${unseen}` }
}

/** `nodes`: where each VM is listed. */
function isAccountedFor(
  volid: string,
  shelf: Shelf,
  cluster: ClusterView,
  { rows }: Scene,
  nodes: ReadonlyMap<number, string>,
): boolean {
  const isHere = (vmid: number | undefined) =>
    vmid !== undefined && (shelf.shared ? nodes.has(vmid) : nodes.get(vmid) === shelf.node)
  const isOwners = (rows.bySeed.get(volid) ?? []).some(({ place, seededOn = [] }) => {
    if (place && place.cluster !== cluster.name) return false
    if (shelf.shared || seededOn.includes(shelf.node) || place?.node === shelf.node) return true
    // It may have moved since its row was written.
    return isHere(place?.vmid)
  })
  if (isOwners) return true
  // An orphan takes its seed along when it is deleted, and a held one keeps it.
  return [...cluster.sights].some(
    ([vmid, sight]) => sight.kind === 'ours' && sight.mark.seed === volid && isHere(vmid),
  )
}
