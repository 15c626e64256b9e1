import type { Cluster } from './cluster.ts'
import { drivesOf, hasVolume, isCdrom, isCloudInit } from './drives.ts'
import { die } from './errors.ts'
import { type Vm, volumeKey } from './state.ts'
import { findVolume, isShared, parseVolumeId, storageConfig } from './storage.ts'
import { checkLock } from './vm-lock.ts'

/** Shows the end of a migration at once: config, local disks and the running VM are on the other node. */
export function migrate(cluster: Cluster, vm: Vm, target: string): void {
  if (!cluster.state.nodes.some((candidate) => candidate.name === target))
    die(`no such cluster node '${target}'`)
  if (target === vm.node) die('target is local node.')
  checkLock(vm)
  moveVolumes(cluster, vm, target)
  vm.node = target
}

/** Disks go along; a disc in local storage holds the VM where it is. Source: qemu-server QemuMigrate.pm scan_local_volumes. */
function moveVolumes(cluster: Cluster, vm: Vm, target: string): void {
  const local = drivesOf(vm.config)
    .filter(hasVolume)
    .map((drive) => ({ drive, id: parseVolumeId(drive.file) }))
    .filter(({ id }) => !isShared(storageConfig(cluster, id.storage)))
  for (const { drive } of local) {
    if (isCdrom(drive) && !isCloudInit(drive))
      die(
        `Problem found while scanning volumes - can't migrate local disk '${drive.file}': local cdrom image`,
      )
  }
  for (const { id } of local) {
    const volume = findVolume(cluster, vm.node, id)
    if (!volume) continue
    delete cluster.state.volumes[volumeKey(volume.storage, volume.node, volume.name)]
    cluster.state.volumes[volumeKey(volume.storage, target, volume.name)] = { ...volume, node: target }
  }
}
