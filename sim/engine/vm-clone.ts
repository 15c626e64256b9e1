import { type Cluster, confPath, isQuorate, lockOn, lockTimeout, vmLock, vmOn } from './cluster.ts'
import { type Drive, drivesOf, formatSize, hasVolume, isCdrom, isCloudInit, printDrive } from './drives.ts'
import { type Ctx, type Endpoint, flag, may, maybeText, mustHave, reply, text, vmidOf } from './endpoint.ts'
import { die, forbid, PveError, refuseParams } from './errors.ts'
import { parseNet, printNet, randomMac, randomUuid } from './net.ts'
import type { Conf, Vm, Volume } from './state.ts'
import {
  activeStorage,
  addVolume,
  enabledStorage,
  findVolume,
  freeDiskName,
  isFileBased,
  isShared,
  parseVolumeId,
  pathOf,
  removeVolume,
  spaceOf,
  storageConfig,
  storageLock,
  volumeIdOf,
} from './storage.ts'
import { end, lock, next, type Program, type Run } from './tasks.ts'
import { checkLock } from './vm-lock.ts'
import { checkBridges } from './vm-permissions.ts'

type Asked = {
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
type Piece = { slot: string; full: boolean; source: string }

type CloneData = Asked & {
  caller: string
  pieces: Piece[]
  /** How many pieces are done. */
  done: number
  /** Set once the placeholder stands: from then on a failure cleans up. */
  conf?: Conf
  made: { storage: string; name: string }[]
  current?: string
}

/** Source: qemu-server API2/Qemu.pm clone_vm. */
export const cloneEndpoint: Endpoint = {
  method: 'POST',
  path: '/nodes/{node}/qemu/{vmid}/clone',
  permission(ctx) {
    mustHave(ctx, `/vms/${vmidOf(ctx)}`, 'VM.Clone')
    const pool = maybeText(ctx, 'pool')
    if (may(ctx, `/vms/${maybeText(ctx, 'newid') ?? ''}`, 'VM.Allocate')) return
    if (pool === undefined || !ctx.cluster.state.pools[pool] || !may(ctx, `/pool/${pool}`, 'VM.Allocate'))
      forbid()
  },
  handler(ctx) {
    const asked = askedOf(ctx)
    if (asked.pool !== undefined && !ctx.cluster.state.pools[asked.pool])
      forbid(`pool '${asked.pool}' does not exist`)
    const { pieces } = check(ctx.cluster, ctx.node, asked, ctx)
    const data: CloneData = { ...asked, caller: ctx.caller, pieces, done: 0, made: [] }
    return reply(ctx.cluster.tasks.fork(ctx.node, 'qmclone', String(asked.vmid), ctx.caller, data))
  },
}

function askedOf(ctx: Ctx): Asked {
  const target = maybeText(ctx, 'target')
  const elsewhere = target !== undefined && target !== ctx.node && target !== 'localhost'
  const optional = {
    name: maybeText(ctx, 'name') || undefined,
    description: maybeText(ctx, 'description') || undefined,
    pool: maybeText(ctx, 'pool'),
    snapname: maybeText(ctx, 'snapname'),
    storage: maybeText(ctx, 'storage'),
    format: maybeText(ctx, 'format'),
    full: ctx.params.full === undefined ? undefined : flag(ctx, 'full'),
    target: elsewhere ? target : undefined,
  }
  const given = Object.fromEntries(Object.entries(optional).filter(([, value]) => value !== undefined))
  return { vmid: vmidOf(ctx), newid: Number(text(ctx, 'newid')), ...given }
}

/** All that is checked before the fork and once more in the worker; permissions only before. */
function check(cluster: Cluster, node: string, asked: Asked, ctx?: Ctx): { pieces: Piece[]; conf: Conf } {
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

type CloneRun = Run<CloneData>

export const cloneProgram: Program<CloneData> = {
  stages: {
    begin(run) {
      if (run.cluster.state.version === 9)
        run.log(`creating a clone of VM ${run.data.vmid} with ID ${run.data.newid}`)
      const source = vmOn(run.cluster, run.node, run.data.vmid)
      const mode = source?.run ? 'exclusive' : 'shared'
      const path = vmLock(run.data.vmid)
      return lock(lockOn(run.node, path), mode, 1000, 'target', lockTimeout(path))
    },
    target(run) {
      const path = vmLock(run.data.newid)
      return lock(lockOn(run.node, path), 'exclusive', 1000, 'placeholder', lockTimeout(path))
    },
    placeholder(run) {
      const { cluster, data, node } = run
      const { pieces, conf } = check(cluster, node, data)
      if (cluster.state.vms[data.newid])
        die(`close (rename) atomic file '/etc/pve/${confPath(node, data.newid)}' failed: File exists`)
      if (data.newid === data.vmid) die(`unable to create VM ${data.newid}: config file already exists`)
      data.pieces = pieces
      data.conf = freshConf(run, conf)
      write(run, { lock: 'clone', description: ' qmclone temporary file' })
      return next('drive')
    },
    drive(run) {
      const { cluster, data, node } = run
      const piece = data.pieces[data.done]
      if (!piece) return next('finish')
      run.log(`create ${piece.full ? 'full' : 'linked'} clone of drive ${piece.slot} (${piece.source})`)
      const storage = activeStorage(cluster, storageOf(data, piece), node)
      const { name, failure } = storageLock(storage, node)
      return lock(name, 'exclusive', 10_000, 'allocate', failure)
    },
    allocate(run) {
      const piece = presentPiece(run)
      allocate(run, piece)
      return next('allocated', run.cluster.durations.storageLockMs)
    },
    allocated(run) {
      const { cluster, data, node } = run
      const piece = presentPiece(run)
      run.unlock(storageLock(storageConfig(cluster, storageOf(data, piece)), node).name)
      const { cloneMs, clonePerGiBMs, linkedCloneMs } = cluster.durations
      if (!piece.full) return next('placed', linkedCloneMs)
      const gib = sourceVolume(run, piece).sizeBytes / 1024 ** 3
      return next('placed', cloneMs + Math.round(clonePerGiBMs * gib))
    },
    placed(run) {
      const { data } = run
      const piece = presentPiece(run)
      if (piece.full) copied(run, piece)
      if (data.conf) write(run, { ...data.conf, lock: 'clone' })
      data.done += 1
      return next('drive')
    },
    finish(run) {
      const { cluster, data } = run
      const vm = write(run, data.conf ?? {})
      if (data.target !== undefined) vm.node = data.target
      if (data.pool === undefined) return end
      const pool = cluster.state.pools[data.pool]
      if (!pool) die(`can't add VM ${data.newid} to pool '${data.pool}': pool '${data.pool}' does not exist`)
      pool.vmids.push(data.newid)
      return end
    },
  },
  failed(run, text) {
    const { cluster, data, node } = run
    if (!data.conf) return text
    for (const made of data.made) {
      const volume = findVolume(cluster, node, made)
      if (volume) removeVolume(cluster, volume)
    }
    if (cluster.state.vms[data.newid]?.node === node) delete cluster.state.vms[data.newid]
    return `clone failed: ${text}`
  },
  interrupted: (run, stage) =>
    isCopying(run, stage) ? copyFailed(run, 'interrupted by signal') : 'interrupted by signal',
  toolKilled: (run, stage) => (isCopying(run, stage) ? copyFailed(run, 'got signal 9') : undefined),
}

const isCopying = (run: CloneRun, stage: string): boolean => stage === 'placed' && presentPiece(run).full

function presentPiece({ data }: CloneRun): Piece {
  const piece = data.pieces[data.done]
  if (!piece) throw new Error('all drives of the clone are done')
  return piece
}

const storageOf = (data: CloneData, piece: Piece): string =>
  data.storage ?? parseVolumeId(piece.source).storage

function sourceVolume({ cluster, node }: CloneRun, piece: Piece): Volume {
  return (
    findVolume(cluster, node, parseVolumeId(piece.source)) ?? die(`volume '${piece.source}' does not exist`)
  )
}

/** The config of the new VM but for its drives: all of the source, and new what must be unique. */
function freshConf({ cluster, data }: CloneRun, source: Conf): Conf {
  const conf: Conf = {}
  for (const [key, value] of Object.entries(source)) {
    if (/^(?:unused\d+|template|lock|snaptime|parent|snapstate|runningmachine|vmstate)$/.test(key)) continue
    conf[key] = /^net\d+$/.test(key)
      ? printNet({ ...withoutMac(value) }, () => randomMac(cluster.random))
      : value
  }
  conf.name = data.name ?? `Copy-of-VM-${source.name ?? data.vmid}`
  if (data.description !== undefined) conf.description = data.description.trimEnd()
  conf.smbios1 = newSmbios(String(source.smbios1 ?? ''), randomUuid(cluster.random))
  if (source.vmgenid !== undefined) conf.vmgenid = randomUuid(cluster.random)
  return conf
}

function withoutMac(value: string | number) {
  const { model, options } = parseNet(value)
  return { model, options }
}

function newSmbios(text: string, uuid: string): string {
  const parts = text.split(',').filter((part) => part !== '' && !part.startsWith('uuid='))
  return [...parts, `uuid=${uuid}`].sort().join(',')
}

function write({ cluster, node, data }: CloneRun, config: Conf): Vm {
  const vm: Vm = {
    vmid: data.newid,
    node,
    config,
    pending: { set: {}, delete: [] },
    snapshots: {},
    container: false,
    boots: 0,
  }
  cluster.state.vms[data.newid] = vm
  return vm
}

function allocate(run: CloneRun, piece: Piece): void {
  const { cluster, node, data } = run
  const source = sourceVolume(run, piece)
  const storage = storageConfig(cluster, storageOf(data, piece))
  if (storage.readOnly && isFileBased(storage))
    die(
      `mkdir ${storage.path}/images/${data.newid}: Read-only file system at /usr/share/perl5/PVE/Storage/Plugin.pm line ${cluster.state.version === 8 ? 949 : 1006}.`,
    )
  const format =
    piece.full && isFileBased(storage)
      ? (data.format ?? formatFor(source))
      : isFileBased(storage)
        ? 'qcow2'
        : 'raw'
  const name = isCloudInit({ slot: piece.slot, file: piece.source, options: {} })
    ? cloudInitName(storage.type, data.newid, format)
    : freeDiskName(cluster, node, storage, data.newid, format, piece.full ? undefined : source.name)
  const volume = addVolume(cluster, node, storage, {
    name,
    format,
    sizeBytes: source.sizeBytes,
    usedBytes: piece.full ? 262_144 : 200_704,
    ...(piece.full ? {} : { parent: `../${source.name}` }),
  })
  data.made.push({ storage: storage.storage, name })
  data.current = volumeIdOf(volume)
  logAllocation(run, piece, volume, source, pathOf(storage, name), isFileBased(storage))
  if (data.conf) data.conf[piece.slot] = placedDrive(data.conf[piece.slot] ?? '', piece.slot, volume)
}

const formatFor = (source: Volume): string => (source.format === 'raw' ? 'raw' : source.format)

function cloudInitName(type: string, vmid: number, format: string): string {
  return type === 'dir' || type === 'nfs' ? `${vmid}/vm-${vmid}-cloudinit.${format}` : `vm-${vmid}-cloudinit`
}

function placedDrive(text: string | number, slot: string, volume: Volume): string {
  const options = Object.fromEntries(
    String(text)
      .split(',')
      .slice(1)
      .map((part) => part.split('=', 2) as [string, string]),
  )
  const size = options.media === 'cdrom' ? {} : { size: formatSize(volume.sizeBytes) }
  return printDrive({ slot, file: volumeIdOf(volume), options: { ...options, ...size } })
}

function logAllocation(
  run: CloneRun,
  piece: Piece,
  volume: Volume,
  source: Volume,
  path: string,
  files: boolean,
): void {
  const { data, cluster } = run
  const file = volume.name.split('/').at(-1)
  if (!files) {
    run.log(`  Logical volume "${file}" created.`)
    return
  }
  const nine = cluster.state.version === 9
  if (piece.full) {
    run.log(
      volume.format === 'raw'
        ? `Formatting '${path}', fmt=raw size=${volume.sizeBytes} preallocation=off`
        : `Formatting '${path}', fmt=${volume.format} cluster_size=65536 extended_l2=off preallocation=metadata compression_type=zlib size=${volume.sizeBytes} lazy_refcounts=off refcount_bits=16`,
    )
    if (nine) run.log(`allocated target volume '${volumeIdOf(volume)}'`)
    if (!isRunning(run)) run.log(`transferred 0.0 B of ${mib(volume)} MiB (0.00%)`)
    return
  }
  run.log(`clone ${source.name}: images, ${file}, ${data.newid} to ${file} (base=../${source.name})`)
  const layout = nine
    ? 'cluster_size=131072 extended_l2=on preallocation=metadata'
    : 'cluster_size=65536 extended_l2=off'
  run.log(
    `Formatting '${path}', fmt=qcow2 ${layout} compression_type=zlib size=${volume.sizeBytes} backing_file=../${source.name} backing_fmt=qcow2 lazy_refcounts=off refcount_bits=16`,
  )
}

const isRunning = ({ cluster, node, data }: CloneRun): boolean =>
  vmOn(cluster, node, data.vmid)?.run !== undefined

const mib = (volume: Volume): string => (volume.sizeBytes / 1024 ** 2).toFixed(1)

function copied(run: CloneRun, piece: Piece): void {
  const { cluster, data, node } = run
  const volume = madeVolume(run)
  const storage = storageConfig(cluster, volume.storage)
  const source = sourceVolume(run, piece)
  if (spaceOf(cluster, node, storage).avail < source.usedBytes) {
    run.log('qemu-img: error while writing at byte 16777216: No space left on device')
    throw new PveError(500, copyFailed(run, 'exit code 1'))
  }
  volume.usedBytes = source.usedBytes
  delete data.current
  if (isRunning(run)) {
    logMirror(run, piece, volume)
    return
  }
  const step = Math.max(4 * 1024 ** 2, volume.sizeBytes / 25)
  for (let bytes = step; bytes <= volume.sizeBytes; bytes += step) {
    const percent = ((bytes / volume.sizeBytes) * 100).toFixed(2)
    run.log(`transferred ${(bytes / 1024 ** 2).toFixed(1)} MiB of ${mib(volume)} MiB (${percent}%)`)
  }
  run.log(`transferred ${mib(volume)} MiB of ${mib(volume)} MiB (100.00%)`)
}

/** A running source is mirrored by QEMU instead of being copied. */
function logMirror(run: CloneRun, piece: Piece, volume: Volume): void {
  const drive = `drive-${piece.slot}`
  const size = humanSize(volume.sizeBytes)
  const monitor = run.cluster.state.version === 8 ? 'qmp' : 'qga'
  run.log(`drive mirror is starting for ${drive}`)
  run.log(`${drive}: transferred 0.0 B of ${size} (0.00%) in 0s`)
  run.log(`${drive}: transferred ${size} of ${size} (100.00%) in 1s, ready`)
  run.log("all 'mirror' jobs are ready")
  if (!run.cluster.guests.interfaces(run.data.vmid))
    run.log(
      `QEMU Guest Agent is not running - VM ${run.data.vmid} ${monitor} command 'guest-ping' failed - got timeout`,
    )
  for (const line of ['suspend vm', `${drive}: Cancelling block job`, `${drive}: Done.`, 'resume vm'])
    run.log(line)
}

const humanSize = (bytes: number): string =>
  bytes < 1024 ** 3 ? `${(bytes / 1024 ** 2).toFixed(1)} MiB` : `${(bytes / 1024 ** 3).toFixed(1)} GiB`

function madeVolume({ cluster, data, node }: CloneRun): Volume {
  const volume =
    data.current === undefined ? undefined : findVolume(cluster, node, parseVolumeId(data.current))
  return volume ?? die(`volume '${data.current}' does not exist`)
}

function copyFailed(run: CloneRun, how: string): string {
  const piece = presentPiece(run)
  const source = sourceVolume(run, piece)
  const target = madeVolume(run)
  const from = pathOf(storageConfig(run.cluster, source.storage), source.name)
  const to = pathOf(storageConfig(run.cluster, target.storage), target.name)
  const prefix = target.format === 'raw' ? '' : 'zeroinit:'
  return `copy failed: command '/usr/bin/qemu-img convert -p -n -f ${source.format} -O ${target.format} ${from} ${prefix}${to}' failed: ${how}`
}
