import { has } from './access.ts'
import { confMissing, lockOn, lockTimeout, vmLock, vmOn } from './cluster.ts'
import { formatSize, isCdrom, parseDrive, parseSize, printDrive } from './drives.ts'
import { type Ctx, type Endpoint, flag, maybeText, mustHave, reply, text, vmidOf } from './endpoint.ts'
import { die, forbid, refuseParams } from './errors.ts'
import { end, lock, next, type Program } from './program.ts'
import { digestOf, diskOf } from './state.ts'
import { findVolume, parseVolumeId, pathOf, storageConfig } from './storage.ts'
import { checkLock } from './vm-lock.ts'

type ResizeData = { vmid: number; disk: string; size: string; digest?: string; sizeBytes?: number }

/** Source: qemu-server API2/Qemu.pm resize_vm: since 8 all is judged inside the task. */
export const resizeEndpoint: Endpoint = {
  method: 'PUT',
  path: '/nodes/{node}/qemu/{vmid}/resize',
  permission: (ctx: Ctx) => mustHave(ctx, `/vms/${vmidOf(ctx)}`, 'VM.Config.Disk'),
  handler(ctx) {
    if (flag(ctx, 'skiplock') && ctx.caller !== 'root@pam')
      refuseParams({ skiplock: 'Only root may use this option.' })
    const vmid = vmidOf(ctx)
    const digest = maybeText(ctx, 'digest')
    const data: ResizeData = {
      vmid,
      disk: text(ctx, 'disk'),
      size: text(ctx, 'size'),
      ...(digest === undefined ? {} : { digest }),
    }
    return reply(ctx.cluster.tasks.fork(ctx.node, 'resize', String(vmid), ctx.caller, data))
  },
}

export const resizeProgram: Program<ResizeData> = {
  stages: {
    begin(run) {
      const file = vmLock(run.data.vmid)
      return lock(lockOn(run.node, file), 'exclusive', 10_000, 'check', lockTimeout(file))
    },
    check(run) {
      const { cluster, data, node, user } = run
      const vm = vmOn(cluster, node, data.vmid) ?? die(confMissing(node, data.vmid))
      if (data.digest !== undefined && data.digest !== digestOf(vm))
        die('checksum mismatch (file change by other user?)')
      checkLock(vm)
      const drive = parseDrive(data.disk, vm.config[data.disk] ?? die(`disk '${data.disk}' does not exist`))
      if (isCdrom(drive)) die("you can't resize a cdrom")
      const id = parseVolumeId(drive.file)
      const place = `/storage/${id.storage}`
      if (!has(cluster.state, user, place, 'Datastore.AllocateSpace'))
        forbid(`${place}, Datastore.AllocateSpace`)
      const volume = findVolume(cluster, node, id) ?? die(`volume '${drive.file}' does not exist`)
      const asked = parseSize(data.size.replace('+', ''))
      const wanted = data.size.startsWith('+') ? volume.sizeBytes + asked : asked
      if (wanted < volume.sizeBytes) die('shrinking disks is not supported')
      if (wanted === volume.sizeBytes) return end
      if (vm.config.template !== undefined) {
        const path = pathOf(storageConfig(cluster, id.storage), id.name)
        const options = cluster.state.version === 9 ? "'--preallocation=metadata' " : ''
        run.log(`qemu-img: Could not open '${path}': Could not open '${path}': Operation not permitted`)
        die(
          `command '/usr/bin/qemu-img resize ${options}-f ${volume.format} ${path} ${wanted}' failed: exit code 1`,
        )
      }
      // A multiple of the sector size, as qemu-img rounds up.
      data.sizeBytes = Math.ceil(wanted / 512) * 512
      if (!vm.run) run.log('Image resized.')
      return next('resized', cluster.durations.resizeMs)
    },
    resized(run) {
      const { cluster, data, node } = run
      const vm = vmOn(cluster, node, data.vmid) ?? die(confMissing(node, data.vmid))
      const drive = parseDrive(data.disk, vm.config[data.disk] ?? die(`disk '${data.disk}' does not exist`))
      const volume =
        findVolume(cluster, node, parseVolumeId(drive.file)) ?? die(`volume '${drive.file}' does not exist`)
      volume.sizeBytes = data.sizeBytes ?? volume.sizeBytes
      if (vm.run) cluster.guests.resize(vm.vmid, diskOf(volume), volume.sizeBytes)
      else cluster.disks?.resize(diskOf(volume), volume.sizeBytes)
      vm.config[data.disk] = printDrive({
        ...drive,
        options: { ...drive.options, size: formatSize(volume.sizeBytes) },
      })
      return end
    },
  },
}
