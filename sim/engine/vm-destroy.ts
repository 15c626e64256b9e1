import { type Cluster, confMissing, lockOn, lockTimeout, nodeOf, vmLock, vmOn } from './cluster.ts'
import { drivesOf, hasVolume, isCdrom, isCloudInit } from './drives.ts'
import { type Ctx, type Endpoint, flag, mustHave, reply, vmidOf } from './endpoint.ts'
import { die, PveError, refuseParams } from './errors.ts'
import { checkHa, haState, removeHa } from './ha.ts'
import { end, lock, next, type Program, type Run } from './program.ts'
import type { Vm } from './state.ts'
import {
  activeStorage,
  findVolume,
  isBaseInUse,
  parseVolumeId,
  pathOf,
  removeVolume,
  storageConfig,
  volumeIdOf,
  volumesOf,
} from './storage.ts'
import { checkLock, checkProtection } from './vm-lock.ts'

type DestroyData = { vmid: number; purge: boolean; unreferenced: boolean }
type DestroyRun = Run<DestroyData>

/** Source: qemu-server API2/Qemu.pm destroy_vm. */
export const destroyEndpoint: Endpoint = {
  method: 'DELETE',
  path: '/nodes/{node}/qemu/{vmid}',
  permission: (ctx: Ctx) => mustHave(ctx, `/vms/${vmidOf(ctx)}`, 'VM.Allocate'),
  handler(ctx) {
    if (flag(ctx, 'skiplock') && ctx.caller !== 'root@pam')
      refuseParams({ skiplock: 'Only root may use this option.' })
    const vmid = vmidOf(ctx)
    check(ctx.cluster, ctx.node, vmid, flag(ctx, 'purge'))
    const data: DestroyData = {
      vmid,
      purge: flag(ctx, 'purge'),
      unreferenced: flag(ctx, 'destroy-unreferenced-disks'),
    }
    return reply(ctx.cluster.tasks.fork(ctx.node, 'qmdestroy', String(vmid), ctx.caller, data))
  },
}

/** Before the fork, and again under the lock. */
function check(cluster: Cluster, node: string, vmid: number, purge: boolean): Vm {
  const vm = vmOn(cluster, node, vmid) ?? die(confMissing(node, vmid))
  checkProtection(vm, `can't remove VM ${vmid}`)
  if (!purge) checkHa(cluster, vmid)
  if (vm.run) die(`VM ${vmid} is running - destroy failed`)
  return vm
}

/** Source: qemu-server QemuServer.pm destroy_vm: disks, then the config emptied, the pool, and the file last. */
export const destroyProgram: Program<DestroyData> = {
  stages: {
    begin(run) {
      const file = vmLock(run.data.vmid)
      return lock(lockOn(run.node, file), 'exclusive', 10_000, 'disks', lockTimeout(file))
    },
    disks(run) {
      const { cluster, data, node } = run
      const vm = check(cluster, node, data.vmid, data.purge)
      checkLock(vm, 'suspended')
      for (const volume of ownVolumes(run, vm)) {
        if (isBaseInUse(cluster, volume))
          die(`base volume '${volumeIdOf(volume)}' is still in use by linked cloned`)
      }
      freeDisks(run, vm)
      if (data.unreferenced) freeUnreferenced(run)
      return next('emptied', cluster.durations.destroyMs)
    },
    emptied(run) {
      const { cluster, data, node } = run
      const vm = vmOn(cluster, node, data.vmid) ?? die(confMissing(node, data.vmid))
      Object.assign(vm, { config: { lock: 'destroyed' }, pending: { set: {}, delete: [] }, snapshots: {} })
      for (const pool of Object.values(cluster.state.pools))
        pool.vmids = pool.vmids.filter((vmid) => vmid !== data.vmid)
      cluster.state.acl = cluster.state.acl.filter((entry) => entry.path !== `/vms/${data.vmid}`)
      if (data.purge) run.log(`purging VM ${data.vmid} from related configurations..`)
      if (haState(cluster, data.vmid) !== undefined) {
        removeHa(cluster, data.vmid)
        run.log(`NOTE: removed VM ${data.vmid} from HA resource configuration.`)
      }
      return next('gone', 10)
    },
    gone(run) {
      delete run.cluster.state.vms[run.data.vmid]
      return end
    },
  },
}

function ownVolumes({ cluster, node, data }: DestroyRun, vm: Vm) {
  return drivesOf(vm.config)
    .filter((drive) => hasVolume(drive) && (!isCdrom(drive) || isCloudInit(drive)))
    .flatMap((drive) => {
      const id = parseVolumeId(drive.file)
      const known = cluster.state.storages.some((storage) => storage.storage === id.storage)
      const volume = known ? findVolume(cluster, node, id) : undefined
      return volume?.vmid === data.vmid ? [volume] : []
    })
}

/** A disk that cannot be removed stops nothing: a line in the log, from 9 on a warning that counts. */
function freeDisks(run: DestroyRun, vm: Vm): void {
  const { cluster, node } = run
  const texts = [
    ...drivesOf(vm.config)
      .filter((drive) => hasVolume(drive) && (!isCdrom(drive) || isCloudInit(drive)))
      .map((drive) => drive.file),
    ...Object.entries(vm.config)
      .filter(([key]) => /^unused\d+$/.test(key))
      .map(([, value]) => String(value)),
  ]
  for (const text of texts) {
    try {
      const id = parseVolumeId(text)
      const storage = activeStorage(cluster, id.storage, node)
      const volume = findVolume(cluster, node, id)
      if (!volume) run.log(`disk image '${pathOf(storage, id.name)}' does not exist`)
      else if (volume.vmid === run.data.vmid) removeVolume(cluster, volume)
    } catch (error) {
      if (!(error instanceof PveError)) throw error
      const line = `Could not remove disk '${text}', check manually: ${error.message}`
      if (cluster.state.version === 9) run.warn(line)
      else run.log(line)
    }
  }
}

function freeUnreferenced({ cluster, node, data }: DestroyRun): void {
  const home = nodeOf(cluster, node).name
  const usable = cluster.state.storages.filter(
    (storage) =>
      !storage.disable && storage.content.includes('images') && (storage.nodes?.includes(home) ?? true),
  )
  for (const storage of usable) {
    activeStorage(cluster, storage.storage, node)
    for (const volume of volumesOf(cluster, node, storageConfig(cluster, storage.storage))) {
      if (volume.vmid === data.vmid && volume.content === 'images') removeVolume(cluster, volume)
    }
  }
}
