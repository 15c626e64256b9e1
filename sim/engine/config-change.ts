import type { Cluster } from './cluster.ts'
import { type Drive, hasVolume, isCdrom, isCloudInit, isDriveSlot, parseDrive, printDrive } from './drives.ts'
import { type Ctx, flag, maybeText, mustHave, vmidOf } from './endpoint.ts'
import { die, refuseParams } from './errors.ts'
import { splitList } from './formats.ts'
import { parseNet, printNet, randomMac, randomUuid } from './net.ts'
import { findVolume, parseVolumeId, parseVolumeName, storageConfig } from './storage.ts'
import { checkBridges, checkOptions, mustUseVolume } from './vm-permissions.ts'

export type Change = {
  set: Record<string, string>
  delete: string[]
  digest?: string
  force: boolean
  log: string
}

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
export function prepare(ctx: Ctx): Change {
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

export const newDisk = /^([^/:\s]+):(\d+(?:\.\d+)?)$/

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
