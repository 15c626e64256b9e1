import { withPending } from './api-vms.ts'
import { type Cluster, confMissing, isQuorate, lockOn, lockTimeout, nodeOf, vmLock, vmOn } from './cluster.ts'
import {
  bootOrder,
  type Drive,
  formatSize,
  hasVolume,
  isCdrom,
  isCloudInit,
  isDriveSlot,
  parseDrive,
  parseSize,
  printDrive,
} from './drives.ts'
import {
  type Ctx,
  type Endpoint,
  flag,
  maybeNumber,
  maybeText,
  mustHave,
  mustHaveAny,
  reply,
  vmidOf,
} from './endpoint.ts'
import { die, refuseParams } from './errors.ts'
import { splitList } from './formats.ts'
import { parseNet, printNet, randomMac, randomUuid } from './net.ts'
import { anyVmConfig } from './privileges.ts'
import { digestOf, type Vm } from './state.ts'
import {
  activeStorage,
  addVolume,
  enabledStorage,
  findVolume,
  freeDiskName,
  isFileBased,
  parseVolumeId,
  parseVolumeName,
  removeVolume,
  storageConfig,
} from './storage.ts'
import { end, lock, next, type Program } from './tasks.ts'
import { checkLock, checkProtection } from './vm-lock.ts'
import { checkBridges, checkDrive, checkOptions, checkTags, mustUseVolume } from './vm-permissions.ts'
import { sleepThrough } from './wait.ts'

const path = '/nodes/{node}/qemu/{vmid}/config'
const permission = (ctx: Ctx): void => mustHaveAny(ctx, `/vms/${vmidOf(ctx)}`, anyVmConfig)

/** Source: qemu-server API2/Qemu.pm update_vm_api. PUT does it at once, POST in a task. */
export const configEndpoints: Endpoint[] = [
  {
    method: 'PUT',
    path,
    permission,
    async handler(ctx) {
      const change = prepare(ctx)
      await underLock(ctx, () => apply(ctx, change))
      return reply(null)
    },
  },
  {
    method: 'POST',
    path,
    permission,
    async handler(ctx) {
      const change = prepare(ctx)
      const { cluster, node } = ctx
      const vmid = vmidOf(ctx)
      const work = () => {
        const vm = vmOn(cluster, node, vmid) ?? die(confMissing(node, vmid))
        precheck(vm, change)
        return cluster.tasks.fork(node, 'qmconfig', String(vmid), ctx.caller, { ctx: frozen(ctx), change })
      }
      // From qemu-server 9.1.19 on the lock is taken inside the task.
      const upid = cluster.state.version === 9 ? work() : await underLock(ctx, work)
      return reply(
        await sleepThrough(
          cluster,
          upid,
          maybeNumber(ctx, 'background_delay'),
          `failed to update VM ${vmid}: `,
        ),
      )
    },
  },
]

type Change = { set: Record<string, string>; delete: string[]; digest?: string; force: boolean; log: string }

const control = new Set([
  'node',
  'vmid',
  'digest',
  'background_delay',
  'skiplock',
  'delete',
  'revert',
  'force',
  'import-working-storage',
])

/** What is judged before the lock: who may do it, and whether the values make sense by themselves. */
function prepare(ctx: Ctx): Change {
  if (flag(ctx, 'skiplock') && ctx.caller !== 'root@pam')
    refuseParams({ skiplock: 'Only root may use this option.' })
  const { cluster } = ctx
  const set: Record<string, string> = {}
  for (const [key, value] of Object.entries(ctx.params).sort(([a], [b]) => (a < b ? -1 : 1))) {
    if (!control.has(key) && value !== undefined)
      set[key === 'cdrom' ? 'ide2' : key] = Array.isArray(value) ? value.join(',') : oneWord(value)
  }
  const gone = splitList(maybeText(ctx, 'delete') ?? '').map((key) => (key === 'cdrom' ? 'ide2' : key))
  const revert = splitList(maybeText(ctx, 'revert') ?? '')
  if (Object.keys(set).length + gone.length + revert.length === 0) die('no options specified')
  for (const key of gone) {
    if (set[key] !== undefined)
      refuseParams({ delete: `you can't use '-${key}' and -delete ${key}' at the same time` })
    if (!isKnownOption(ctx, key)) refuseParams({ delete: `unknown option '${key}'` })
  }
  for (const [key, value] of Object.entries(set)) {
    if (isDriveSlot(key)) set[key] = normalDrive(parseDrive(key, value))
    else if (/^net\d+$/.test(key)) set[key] = printNet(parseNet(value), () => randomMac(cluster.random))
    else if (key === 'vmgenid' && value === '1') set[key] = randomUuid(cluster.random)
    else if (key === 'hookscript') checkHookscript(cluster, ctx.node, value)
  }
  checkOptions(ctx, gone)
  checkOptions(ctx, Object.keys(set))
  for (const [key, value] of Object.entries(set))
    if (isDriveSlot(key)) checkStorageAccess(ctx, parseDrive(key, value))
  checkBridges(ctx, set)
  const digest = maybeText(ctx, 'digest')
  const words = Object.entries(set).map(([key, value]) => ` -${key} ${value}`)
  const deleted = gone.length > 0 ? ` -delete ${gone.join(',')}` : ''
  return {
    set,
    delete: gone,
    ...(digest === undefined ? {} : { digest }),
    force: flag(ctx, 'force'),
    log: `update VM ${vmidOf(ctx)}:${deleted}${words.join('')}`,
  }
}

const oneWord = (value: string | number | boolean): string =>
  value === true ? '1' : value === false ? '0' : String(value)

function isKnownOption(ctx: Ctx, key: string): boolean {
  return key === 'lock' || isDriveSlot(key) || ctx.cluster.options.has(key)
}

function checkHookscript(cluster: Cluster, node: string, value: string): void {
  if (!findVolume(cluster, node, parseVolumeId(value)))
    refuseParams({ hookscript: `script '${value}' does not exist\n` })
}

const newDisk = /^([^/:\s]+):(\d+(?:\.\d+)?)$/

/** `local:iso/x.iso` without media=cdrom is refused, an empty drive is `none`. */
function normalDrive(drive: Drive): string {
  if (/:iso\//.test(drive.file) && !isCdrom(drive))
    refuseParams({ [drive.slot]: "explicit 'media=cdrom' is required for iso images" })
  const options = isCloudInit(drive) ? { ...drive.options, media: 'cdrom' } : drive.options
  return printDrive({ ...drive, options })
}

/** Source: qemu-server API2/Qemu.pm check_storage_access. */
function checkStorageAccess(ctx: Ctx, drive: Drive): void {
  if (!hasVolume(drive)) return
  const [, created] = newDisk.exec(drive.file) ?? []
  const target = created ?? /^([^:]+):cloudinit$/.exec(drive.file)?.[1]
  if (target !== undefined) {
    mustHave(ctx, `/storage/${target}`, 'Datastore.AllocateSpace')
    const storage = storageConfig(ctx.cluster, target)
    if (!storage.content.includes('images'))
      refuseParams({ storage: `storage '${target}' does not support vm images` })
    return
  }
  const { storage, name } = parseVolumeId(drive.file)
  const parsed = parseVolumeName(storageConfig(ctx.cluster, storage), name)
  if (parsed.vmid !== vmidOf(ctx)) mustUseVolume(ctx, storage, parsed.content, parsed.vmid)
}

async function underLock<T>(ctx: Ctx, work: () => T): Promise<T> {
  const { cluster, node } = ctx
  const vmid = vmidOf(ctx)
  const file = vmLock(vmid)
  const owner = `call-${cluster.nextCall()}`
  // The rewritten config of 9 is refused by its lock before the file is waited for.
  const vm = vmOn(cluster, node, vmid)
  if (cluster.state.version === 9 && vm) checkLock(vm)
  if (!(await cluster.locks.take(lockOn(node, file), owner, 'exclusive', 10_000))) die(lockTimeout(file))
  try {
    cluster.catchUp()
    return work()
  } finally {
    cluster.locks.release(lockOn(node, file), owner)
  }
}

function precheck(vm: Vm, change: Change): void {
  if (change.digest !== undefined && change.digest !== digestOf(vm))
    die('checksum mismatch (file change by other user?)')
  checkLock(vm)
}

/** Writes the change, each option by itself; what a running VM cannot take at once stays pending. */
function apply(ctx: Ctx, change: Change): void {
  const { cluster, node } = ctx
  const vmid = vmidOf(ctx)
  const vm = vmOn(cluster, node, vmid) ?? die(confMissing(node, vmid))
  precheck(vm, change)
  if (!isQuorate(cluster, node))
    die(
      `unable to open file '/etc/pve/nodes/${node}/qemu-server/${vmid}.conf.tmp.${nodeOf(cluster, node).nextPid}' - Permission denied`,
    )
  for (const key of change.delete) remove(ctx, vm, key, change.force)
  for (const [key, value] of Object.entries(change.set)) {
    if (isDriveSlot(key)) setDrive(ctx, vm, key, value, change)
    else if (key === 'tags') setTags(ctx, vm, value)
    else if (/^serial\d+$/.test(key)) setSerial(ctx, vm, key, value)
    else if (key === 'boot') setBoot(vm, value)
    else if (key === 'description') setDescription(vm, value)
    else {
      if (key === 'sshkeys') checkSshKeys(value)
      put(vm, key, key === 'cipassword' ? '$5$simulated$hash' : value)
    }
  }
}

const atOnce =
  /^(?:name|description|tags|onboot|protection|startup|hookscript|shares|migrate_downtime|migrate_speed|vmstatestorage|agent|ci\w+|ipconfig\d+|nameserver|searchdomain|sshkeys|net\d+|unused\d+)$/

function put(vm: Vm, key: string, value: string): void {
  vm.pending.delete = vm.pending.delete.filter((other) => other !== key)
  delete vm.pending.set[key]
  if (vm.run && !atOnce.test(key)) vm.pending.set[key] = value
  else vm.config[key] = value
}

function drop(vm: Vm, key: string): void {
  delete vm.pending.set[key]
  if (vm.config[key] === undefined) return
  if (vm.run && !atOnce.test(key)) vm.pending.delete = [...new Set([...vm.pending.delete, key])]
  else delete vm.config[key]
}

function remove(ctx: Ctx, vm: Vm, key: string, force: boolean): void {
  const value = withPending(vm)[key]
  if (value === undefined) return
  if (!isDriveSlot(key) && !/^unused\d+$/.test(key)) {
    if (key === 'tags') checkTags(ctx, splitList(String(value)), [])
    drop(vm, key)
    return
  }
  checkProtection(vm, `can't remove ${key.startsWith('unused') ? `unused disk '${key}'` : `drive '${key}'`}`)
  checkDrive(ctx, key, value)
  retire(ctx, vm, parseDrive(key, value), force)
  drop(vm, key)
  const order = bootOrder(vm.config)
  if (order?.includes(key)) vm.config.boot = `order=${order.filter((device) => device !== key).join(';')}`
}

/** What becomes of a drive's volume: an image turns unused, a cloud-init volume goes, an ISO stays where it is. */
function retire(ctx: Ctx, vm: Vm, drive: Drive, force: boolean): void {
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

function setDrive(ctx: Ctx, vm: Vm, slot: string, value: string, change: Change): void {
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

function setTags(ctx: Ctx, vm: Vm, value: string): void {
  const { tagStyle } = ctx.cluster.state.datacenter
  const words = splitList(value).map((tag) => (tagStyle?.caseSensitive ? tag : tag.toLowerCase()))
  const unique = [...new Set(words)]
  const tags = tagStyle?.ordering === 'config' ? unique : unique.sort()
  checkTags(ctx, splitList(String(vm.config.tags ?? '')), tags)
  // PVE keeps the option, and a space in it, when no tag is left.
  vm.config.tags = tags.length > 0 ? tags.join(';') : ' '
}

function setSerial(ctx: Ctx, vm: Vm, key: string, value: string): void {
  if (value !== 'socket') die(`only root can modify '${key}' config for real devices`)
  mustHave(ctx, `/vms/${vm.vmid}`, 'VM.Config.HWType')
  put(vm, key, value)
}

function setBoot(vm: Vm, value: string): void {
  const devices = bootOrder({ boot: value }) ?? []
  const conf = withPending(vm)
  for (const device of devices) {
    if (conf[device] === undefined) die(`invalid bootorder: device '${device}' does not exist'`)
  }
  put(vm, 'boot', value)
}

function setDescription(vm: Vm, value: string): void {
  const kept = value.replace(/\s+$/, '')
  if (kept === '') delete vm.config.description
  else vm.config.description = kept
}

/** Each line a key whose base64 part names the same type. */
function checkSshKeys(value: string): void {
  for (const line of decodeURIComponent(value)
    .split('\n')
    .filter((text) => text.trim() !== '')) {
    const [type = '', key = ''] = line.trim().split(/\s+/)
    const bytes = Buffer.from(key, 'base64')
    const named = bytes.length > 4 ? bytes.subarray(4, 4 + bytes.readUInt32BE(0)).toString('latin1') : ''
    if (named !== type) die('SSH public key validation error')
  }
}

type ConfigTask = { ctx: Pick<Ctx, 'node' | 'received' | 'caller' | 'params' | 'call'>; change: Change }

/** A context without the cluster, fit to be kept on disk. */
function frozen({ node, received, caller, params, call }: Ctx): ConfigTask['ctx'] {
  const { upload: _, authorization: __, cookie: ___, ...rest } = call
  return { node, received, caller, params, call: rest }
}

export const configProgram: Program<ConfigTask> = {
  stages: {
    begin(run) {
      run.log(run.data.change.log)
      if (run.cluster.state.version !== 9) return next('apply', run.cluster.durations.configMs)
      const file = vmLock(Number(run.data.ctx.params.vmid))
      return lock(lockOn(run.node, file), 'exclusive', 10_000, 'apply', lockTimeout(file))
    },
    apply(run) {
      apply({ ...run.data.ctx, cluster: run.cluster }, run.data.change)
      return end
    },
  },
}
