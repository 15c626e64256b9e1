import type { Cluster } from '../../lib/config.ts'
import { next, type Outcome, task, wait } from '../../lib/outcome.ts'
import type { Moment, RowOf } from '../../lib/record.ts'
import type { Deps } from './steps.ts'

type Unseeding = RowOf['unseed'] & Moment

/**
 * Deletes the seed while the stopped VM still stands, so that a failure leaves something the next try finds. Repeatable:
 * Proxmox is content when the file is gone already. One node a turn.
 */
export async function unseed(
  row: Unseeding,
  { vms, claims, cluster }: Pick<Deps, 'vms' | 'claims' | 'cluster'>,
): Promise<Outcome> {
  const { seed: volume, place } = row
  const clean = { seed: undefined, seededOn: undefined, swept: undefined, sweeping: undefined }
  if (volume === undefined) return next('destroy', clean)

  const isSwept = (node: string) => alreadySwept(row).includes(node)
  if (!cluster.isoStorageShared && nodesToSweep(row, cluster, []).every(isSwept))
    return next('destroy', clean)
  const online = await vms.nodesOnline()
  const left = nodesToSweep(row, cluster, online).filter((node) => !isSwept(node))
  // A VM that stands is not destroyed before its node answers again: nor is its seed given up before that.
  const standing = row.cloned ? place?.node : undefined
  const node = left.find((one) => online.includes(one)) ?? left.find((one) => one === standing)
  if (node !== undefined) {
    const swept = alreadySwept(row)
    const upid = await vms.deleteVolume({ node, storage: volume.split(':')[0] ?? '', volume })
    if (upid !== undefined) return task(upid, `deleting the seed on ${node}`, { swept, sweeping: node })
    return wait(`deleted the seed on ${node}`, 0, { patch: { swept: [...swept, node], sweeping: undefined } })
  }
  // gc looks there again when the node is back: waiting for one that is lost for good would never end.
  for (const dead of left) {
    const where = { cluster: place?.cluster, node: dead, volume }
    await claims.suspect(`seed#${where.cluster}#${dead}#${volume}`, { kind: 'seed', ...where, uid: row.uid })
  }
  return next('destroy', clean)
}

/** Where the seed may lie: where it was sent to, and when there is no VM to go by, on every node that may ever have had it. */
function nodesToSweep(
  { cloned, place, seededOn = [] }: Unseeding,
  cluster: Cluster,
  online: string[],
): string[] {
  if (cluster.isoStorageShared) return online.slice(0, 1)
  const everywhere = cloned ? [] : Object.values(cluster.images).flatMap((byNode) => Object.keys(byNode))
  return [...new Set([...seededOn, ...(place ? [place.node] : []), ...everywhere])].filter(
    (node) => node !== '',
  )
}

/** A node counts once its task has ended well. */
function alreadySwept({ swept = [], sweeping, ended }: Unseeding): string[] {
  return sweeping !== undefined && ended?.step === 'unseed' && ended.ok ? [...swept, sweeping] : swept
}
