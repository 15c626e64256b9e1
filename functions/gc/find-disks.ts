import { keeperOf, vmidPartition } from '../../lib/claims.ts'
import type { Suspect } from '../../lib/suspects.ts'
import { type Finding, type Scene, silence } from './finding.ts'
import { inRange } from './rules.ts'
import { type ClusterView, isLive, onNode, placeOf } from './world.ts'

/**
 * Disks of numbers at which no VM is. Only one that is known to have been ours is deleted: its number is still claimed by an
 * owner that is gone, or the life cycle that could not delete it has said so. Any other may be someone's data, or of a VM
 * that our token cannot see.
 */
export function findDisks(cluster: ClusterView, scene: Scene): Finding[] {
  const present = new Set(cluster.vms.map(({ vmid }) => vmid))
  const owners = ownersOf(cluster.name, scene)
  const noted = notedDisks(cluster.name, scene)
  return cluster.disks.flatMap((shelf) =>
    shelf.volumes.flatMap(({ volid, vmid }) => {
      if (vmid === undefined || present.has(vmid)) return []
      if (scene.rows.byPlace.has(`${cluster.name}/${vmid}`)) return []
      const owner = owners.get(vmid)
      if (owner !== undefined && isLive(scene.rows.byUid.get(owner))) return []
      // `destroy` names a storage and a number when it could not look itself.
      const looks = [volid, `${shelf.storage}:vm-${vmid}`]
        .flatMap((volume) => noted.get(volume) ?? [])
        .filter(({ node }) => shelf.shared || node === shelf.node)
      const uid = owner ?? looks.find((look) => look.uid !== undefined)?.uid
      if (uid === undefined && (cluster.hidden.has(vmid) || !inRange(scene.rules, cluster.name, vmid)))
        return []
      const where = { cluster: cluster.name, node: shelf.node, storage: shelf.storage, volume: volid }
      const judged =
        uid === undefined
          ? {
              action: {
                kind: 'show disk' as const,
                cluster: cluster.name,
                node: shelf.node,
                volume: volid,
                vmid,
              },
            }
          : { action: { kind: 'sweep disk' as const, ...where, vmid, uid }, ...silence(cluster) }
      return [
        {
          key: `disk#${cluster.name}#${placeOf(shelf)}#${volid}`,
          also: looks.map(({ key }) => key),
          detail: { kind: 'disk', ...where, ...onNode(shelf), vmid, ...(uid === undefined ? {} : { uid }) },
          ...judged,
        },
      ]
    }),
  )
}

/** Claimed numbers of a cluster, with the uids whose rows give them back. */
export function ownersOf(cluster: string, { world }: Pick<Scene, 'world'>): ReadonlyMap<number, string> {
  const claims = world.claims.filter(({ partition }) => partition === vmidPartition(cluster))
  return new Map(claims.map((claim) => [Number(claim.sort), keeperOf(claim)]))
}

/** Earlier looks at disks, by volume. */
function notedDisks(cluster: string, { suspects }: Scene): ReadonlyMap<string, Suspect[]> {
  const disks = [...suspects.values()].filter((one) => one.kind === 'disk' && one.cluster === cluster)
  return Map.groupBy(disks, ({ volume = '' }) => volume)
}
