import { withPending } from './api-vms.ts'
import { confMissing, isQuorate, nodeOf, vmOn } from './cluster.ts'
import type { Change } from './config-change.ts'
import { retire, setDrive } from './config-drives.ts'
import { drop, put } from './config-pending.ts'
import { bootOrder, isDriveSlot, parseDrive } from './drives.ts'
import { type Ctx, mustHave, vmidOf } from './endpoint.ts'
import { die } from './errors.ts'
import { splitList } from './formats.ts'
import { digestOf, type Vm } from './state.ts'
import { checkLock, checkProtection } from './vm-lock.ts'
import { checkDrive, checkTags } from './vm-permissions.ts'

export function precheck(vm: Vm, change: Change): void {
  if (change.digest !== undefined && change.digest !== digestOf(vm))
    die('checksum mismatch (file change by other user?)')
  checkLock(vm)
}

/** Writes the change, each option by itself; what a running VM cannot take at once stays pending. */
export function apply(ctx: Ctx, change: Change): void {
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
