import { type Finding, type Scene, silence } from './finding.ts'
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
      const where = { cluster: cluster.name, node: shelf.node, storage: shelf.storage, volume: volid }
      return [
        {
          key: `seed#${cluster.name}#${placeOf(shelf)}#${volid}`,
          detail: { kind: 'seed', ...where, ...onNode(shelf), uid: seed.uid },
          action: { kind: 'sweep seed' as const, ...where, shared: shelf.shared, uid: seed.uid },
          ...waits,
        },
      ]
    })
  })
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
