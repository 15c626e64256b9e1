import { withPending } from './api-vms.ts'
import { type Change, newDisk } from './config-change.ts'
import { put } from './config-pending.ts'
import {
  bootOrder,
  type Drive,
  formatSize,
  hasVolume,
  isCdrom,
  isCloudInit,
  parseDrive,
  parseSize,
  printDrive,
} from './drives.ts'
import type { Ctx } from './endpoint.ts'
import { die } from './errors.ts'
import type { Vm } from './state.ts'
import {
  activeStorage,
  addVolume,
  enabledStorage,
  findVolume,
  freeDiskName,
  isFileBased,
  parseVolumeId,
  removeVolume,
} from './storage.ts'
import { checkDrive } from './vm-permissions.ts'

/** What becomes of a drive's volume: an image turns unused, a cloud-init volume goes, an ISO stays where it is. */
export function retire(ctx: Ctx, vm: Vm, drive: Drive, force: boolean): void {
  if (!hasVolume(drive)) return
  const volume = findVolume(ctx.cluster, vm.node, parseVolumeId(drive.file))
  if (isCloudInit(drive) || (force && !isCdrom(drive))) {
    if (volume) removeVolume(ctx.cluster, volume)
    return
  }
  if (isCdrom(drive) || drive.slot.startsWith('unused')) return
  let index = 0
  while (vm.config[`unused${index}`] !== undefined) index += 1
  vm.config[`unused${index}`] = drive.file
}

export function setDrive(ctx: Ctx, vm: Vm, slot: string, value: string, change: Change): void {
  const old = withPending(vm)[slot]
  if (old !== undefined) checkDrive(ctx, slot, old)
  const drive = parseDrive(slot, value)
  checkDrive(ctx, slot, value)
  const placed = place(ctx, vm, drive)
  const oldDrive = old === undefined ? undefined : parseDrive(slot, old)
  if (oldDrive && oldDrive.file !== placed.file) retire(ctx, vm, oldDrive, false)
  const swapsDisc = oldDrive !== undefined && isCdrom(oldDrive) && isCdrom(placed)
  if (vm.run && !swapsDisc) put(vm, slot, printDrive(placed))
  else vm.config[slot] = printDrive(placed)

  const order = bootOrder(vm.config)
  const isNewDisc = old === undefined && isCdrom(placed) && !isCloudInit(placed)
  if (isNewDisc && order && !order.includes(slot) && change.set.boot === undefined)
    vm.config.boot = `order=${[...order, slot].join(';')}`
}

/** Makes or measures the volume of a drive. Source: qemu-server API2/Qemu.pm create_disks. */
function place(ctx: Ctx, vm: Vm, drive: Drive): Drive {
  const { cluster, node } = ctx
  if (!hasVolume(drive)) return drive
  const [, target, gib] = newDisk.exec(drive.file) ?? []
  if (target !== undefined && gib !== undefined) {
    const storage = activeStorage(cluster, target, node)
    const format = drive.options.format ?? 'raw'
    const name = freeDiskName(cluster, node, storage, vm.vmid, format)
    const sizeBytes = Math.floor(Number(gib) * 1024 ** 3)
    addVolume(cluster, node, storage, { name, sizeBytes, usedBytes: 4096, format })
    const { format: _, ...options } = drive.options
    return { ...drive, file: `${target}:${name}`, options: { ...options, size: formatSize(sizeBytes) } }
  }
  const cloudInit = /^([^:]+):cloudinit$/.exec(drive.file)?.[1]
  if (cloudInit !== undefined) {
    const storage = activeStorage(cluster, cloudInit, node)
    const name = isFileBased(storage) ? `${vm.vmid}/vm-${vm.vmid}-cloudinit.qcow2` : `vm-${vm.vmid}-cloudinit`
    addVolume(cluster, node, storage, { name, sizeBytes: 4 * 1024 ** 2, usedBytes: 376_832, format: 'qcow2' })
    return { ...drive, file: `${cloudInit}:${name}` }
  }
  const id = parseVolumeId(drive.file)
  enabledStorage(cluster, id.storage, node)
  activeStorage(cluster, id.storage, node)
  const volume = findVolume(cluster, node, id)
  if (!volume) die(`volume '${drive.file}' does not exist`)
  if (volume.sizeBytes === 0) die(`volume ${drive.file} does not exist`)
  return isCloudInit(drive)
    ? drive
    : {
        ...drive,
        options: {
          ...drive.options,
          size:
            drive.options.size && !isCdrom(drive)
              ? formatSize(parseSize(drive.options.size))
              : formatSize(volume.sizeBytes),
        },
      }
}
