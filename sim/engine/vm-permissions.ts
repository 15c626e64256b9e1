import { isCdrom, isCloudInit, isDriveSlot, parseDrive } from './drives.ts'
import { type Ctx, may, mayAny, mustHave, mustHaveAny, vmidOf } from './endpoint.ts'
import { die, forbid } from './errors.ts'
import { parseNet } from './net.ts'
import type { Conf } from './state.ts'

/** Which privilege an option needs. Source: qemu-server API2/Qemu.pm check_vm_modify_config_perm. */
const groups: Record<string, string[]> = {
  'VM.Config.CPU': ['cores', 'cpu', 'cpulimit', 'cpuunits', 'numa', 'smp', 'sockets', 'vcpus'],
  'VM.Config.Memory': ['memory', 'balloon', 'shares', 'allow-ksm'],
  'VM.Config.HWType': [
    'acpi',
    'hotplug',
    'kvm',
    'machine',
    'scsihw',
    'smbios1',
    'tablet',
    'vga',
    'watchdog',
    'audio0',
    'rng0',
  ],
  'VM.Config.Options': [
    'agent',
    'autostart',
    'bios',
    'description',
    'keyboard',
    'localtime',
    'migrate_downtime',
    'migrate_speed',
    'name',
    'onboot',
    'ostype',
    'protection',
    'reboot',
    'startdate',
    'startup',
    'tdf',
    'template',
  ],
  'VM.PowerMgmt': ['freeze'],
  'VM.Config.Disk': ['boot', 'bootdisk', 'vmstatestorage'],
}

const cloudInit =
  /^(?:cicustom|cipassword|citype|ciuser|ciupgrade|nameserver|searchdomain|sshkeys|ipconfig\d+)$/

/** @throws {PveError} for the first option the caller may not touch. Drives and tags are judged by their values later. */
export function checkOptions(ctx: Ctx, options: string[]): void {
  const path = `/vms/${vmidOf(ctx)}`
  for (const option of options) {
    if (isDriveSlot(option) || option === 'cdrom' || option === 'tags') continue
    if (/^(?:unused|serial|usb|hostpci|virtiofs)\d+$/.test(option)) continue
    const privilege = privilegeFor(option)
    if (privilege) mustHave(ctx, path, privilege)
    else if (cloudInit.test(option)) mustHaveAny(ctx, path, ['VM.Config.Cloudinit', 'VM.Config.Network'])
    else die(`only root can set '${option}' config`)
    if (option === 'startup') mustHave(ctx, '/', 'Sys.Modify')
  }
}

function privilegeFor(option: string): string | undefined {
  if (/^numa\d+$/.test(option)) return 'VM.Config.CPU'
  if (/^net\d+$/.test(option)) return 'VM.Config.Network'
  return Object.keys(groups).find((privilege) => groups[privilege]?.includes(option))
}

/** A drive's privilege depends on what it is. Source: check_drive_perms inside update_vm_api. */
export function checkDrive(ctx: Ctx, slot: string, value: string | number): void {
  const path = `/vms/${vmidOf(ctx)}`
  const drive = parseDrive(slot, value)
  if (isCloudInit(drive)) mustHave(ctx, path, 'VM.Config.Cloudinit', 'VM.Config.CDROM')
  else if (isCdrom(drive)) mustHave(ctx, path, 'VM.Config.CDROM')
  else mustHave(ctx, path, 'VM.Config.Disk')
}

/** Each bridge a VM is plugged into must be allowed. Source: qemu-server QemuServer.pm check_bridge_access. */
export function checkBridges(ctx: Ctx, conf: Conf): void {
  for (const [key, value] of Object.entries(conf)) {
    if (!/^net\d+$/.test(key)) continue
    const { bridge, tag } = parseNet(value).options
    if (bridge === undefined) continue
    const place = `/sdn/zones/localnetwork/${bridge}${tag === undefined ? '' : `/${tag}`}`
    mustHave(ctx, place, 'SDN.Use')
  }
}

/** Who may use a volume. Source: pve-storage Storage.pm check_volume_access. */
export function mayUseVolume(ctx: Ctx, storage: string, content: string, owner: number | undefined): boolean {
  const path = `/storage/${storage}`
  if (may(ctx, path, 'Datastore.Allocate')) return true
  if (content === 'iso' || content === 'vztmpl')
    return mayAny(ctx, path, ['Datastore.AllocateSpace', 'Datastore.Audit'])
  if (content === 'images' && owner !== undefined)
    return may(ctx, path, 'Datastore.Audit') && may(ctx, `/vms/${owner}`, 'VM.Config.Disk')
  return false
}

/** @throws {PveError} 403 naming what would do. */
export function mustUseVolume(ctx: Ctx, storage: string, content: string, owner: number | undefined): void {
  if (mayUseVolume(ctx, storage, content, owner)) return
  if (content === 'iso' || content === 'vztmpl')
    forbid(`/storage/${storage}, Datastore.AllocateSpace|Datastore.Audit`)
  mustHave(ctx, `/storage/${storage}`, 'Datastore.Audit')
  if (owner !== undefined) mustHave(ctx, `/vms/${owner}`, 'VM.Config.Disk')
  forbid(`/storage/${storage}, Datastore.Allocate`)
}

/** Who may put on or take off a tag. Source: pve-guest-common GuestHelpers.pm assert_tag_permissions. */
export function checkTags(ctx: Ctx, before: string[], after: string[]): void {
  mustHave(ctx, `/vms/${vmidOf(ctx)}`, 'VM.Config.Options')
  const { registeredTags = [], userTagAccess = 'free' } = ctx.cluster.state.datacenter
  if (may(ctx, '/', 'Sys.Modify')) return
  const changed = [
    ...after.filter((tag) => !before.includes(tag)),
    ...before.filter((tag) => !after.includes(tag)),
  ]
  for (const tag of changed) {
    if (registeredTags.includes(tag)) forbid(`/, Sys.Modify for modifying tag '${tag}'`)
    if (userTagAccess === 'none') forbid(`/, Sys.Modify for modifying tag '${tag}'`)
  }
}
