import { type Cluster, isQuorate, vmOn } from './cluster.ts'
import { type Drive, drivesOf, hasVolume, isCdrom, isCloudInit } from './drives.ts'
import { type Ctx, mustHave } from './endpoint.ts'
import { die, refuseParams } from './errors.ts'
import type { Conf, Vm } from './state.ts'
import { enabledStorage, isShared, parseVolumeId, storageConfig } from './storage.ts'
import { checkLock } from './vm-lock.ts'
import { checkBridges } from './vm-permissions.ts'

export type Asked = {
  vmid: number
  newid: number
  full?: boolean
  name?: string
  description?: string
  pool?: string
  snapname?: string
  storage?: string
  format?: string
  target?: string
}

/** One drive of the clone: what it comes from, and whether it gets a volume of its own. */
export type Piece = { slot: string; full: boolean; source: string }

/** All that is checked before the fork and once more in the worker; permissions only before. */
export function check(
  cluster: Cluster,
  node: string,
  asked: Asked,
  ctx?: Ctx,
): { pieces: Piece[]; conf: Conf } {
  const { vmid, newid, target, storage } = asked
  if (target !== undefined && !cluster.state.nodes.some((candidate) => candidate.name === target))
    die(`no such cluster node '${target}'`)
  if (storage !== undefined) checkTarget(cluster, node, storage, target)
  if (!isQuorate(cluster, node)) die('cluster not ready - no quorum?')
  const vm =
    vmOn(cluster, node, vmid) ?? die(`unable to find configuration file for VM ${vmid} on node '${node}'`)
  checkLock(vm)
  const conf = sectionOf(vm, asked.snapname)
  const full = asked.full ?? conf.template === undefined
  if (!full && storage !== undefined) die("parameter 'storage' not allowed for linked clones")
  if (!full && asked.format !== undefined) die("parameter 'format' not allowed for linked clones")

  if (ctx) checkBridges(ctx, conf)
  const pieces: Piece[] = []
  for (const drive of drivesOf(conf)) {
    if (
      target !== undefined &&
      hasVolume(drive) &&
      !isShared(storageConfig(cluster, parseVolumeId(drive.file).storage))
    )
      die(`can't clone VM to node '${target}' (VM uses local storage)`)
    if (isCdrom(drive) && !isCloudInit(drive)) continue
    if (!hasVolume(drive)) continue
    if (ctx)
      mustHave(ctx, `/storage/${storage ?? parseVolumeId(drive.file).storage}`, 'Datastore.AllocateSpace')
    const piece = {
      slot: drive.slot,
      full: full || isCloudInit(drive) || drive.slot === 'tpmstate0',
      source: drive.file,
    }
    if (!piece.full && !canBeBase(cluster, drive))
      die(`Linked clone feature is not supported for '${drive.file}' (${drive.slot})`)
    pieces.push(piece)
  }
  const inTheWay = cluster.state.vms[newid]
  if (inTheWay && inTheWay.node === node && !inTheWay.container)
    die(`unable to create VM ${newid}: config file already exists`)
  return { pieces, conf }
}

function checkTarget(cluster: Cluster, node: string, id: string, target: string | undefined): void {
  const storage = enabledStorage(cluster, id, node)
  if (!storage.content.includes('images'))
    refuseParams({ storage: `storage '${id}' does not support vm images` })
  if (target === undefined) return
  enabledStorage(cluster, id, target)
  if (!isShared(storage)) die(`can't clone to non-shared storage '${id}'`)
}

function sectionOf(vm: Vm, snapname: string | undefined): Conf {
  if (snapname === undefined) return vm.config
  return vm.snapshots[snapname] ?? die(`snapshot '${snapname}' does not exist`)
}

/** Base volumes can be leaned on; thick LVM cannot do it at all. */
function canBeBase(cluster: Cluster, drive: Drive): boolean {
  const { storage, name } = parseVolumeId(drive.file)
  if (storageConfig(cluster, storage).type === 'lvm') return false
  return /(?:^|\/)base-\d+-[^/]+$/.test(name)
}
