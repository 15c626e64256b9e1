import type { WorldStorage } from '../types.ts'
import type { Piece } from './clone-check.ts'
import { type CloneRun, isRunning, madeVolume, presentPiece, sourceVolume, storageOf } from './clone-data.ts'
import { formatSize, isCloudInit, printDrive } from './drives.ts'
import { die, PveError } from './errors.ts'
import { diskOf, type Volume } from './state.ts'
import {
  addVolume,
  findVolume,
  freeDiskName,
  isFileBased,
  pathOf,
  spaceOf,
  storageConfig,
  volumeIdOf,
} from './storage.ts'

export function allocate(run: CloneRun, piece: Piece): void {
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
  if (findVolume(cluster, node, { storage: storage.storage, name })) die(isThere(storage, name))
  const volume = addVolume(cluster, node, storage, {
    name,
    format,
    sizeBytes: source.sizeBytes,
    usedBytes: piece.full ? 262_144 : 200_704,
    ...(piece.full ? {} : { parent: `../${source.name}` }),
  })
  data.made.push({ storage: storage.storage, name })
  data.current = volumeIdOf(volume)
  if (!piece.full) cluster.disks?.clone(diskOf(volume), diskOf(source), 'linked')
  logAllocation(run, piece, volume, source, pathOf(storage, name), isFileBased(storage))
  if (data.conf) data.conf[piece.slot] = placedDrive(data.conf[piece.slot] ?? '', piece.slot, volume)
}

/** Of a volume with a name of its own, which is not chosen among the free ones. Source: alloc_image of pve-storage's plugins. */
function isThere(storage: WorldStorage, name: string): string {
  if (isFileBased(storage)) return `disk image '${pathOf(storage, name)}' already exists`
  if (storage.type === 'rbd') return `rbd create '${name}' error: rbd: create error: (17) File exists`
  const group = storage.vgname ?? 'pve'
  return `lvcreate '${group}/${name}' error:   Logical Volume "${name}" already exists in volume group "${group}"`
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

const mib = (volume: Volume): string => (volume.sizeBytes / 1024 ** 2).toFixed(1)

export function copied(run: CloneRun, piece: Piece): void {
  const { cluster, data, node } = run
  const volume = madeVolume(run)
  const storage = storageConfig(cluster, volume.storage)
  const source = sourceVolume(run, piece)
  if (spaceOf(cluster, node, storage).avail < source.usedBytes) {
    run.log('qemu-img: error while writing at byte 16777216: No space left on device')
    throw new PveError(500, copyFailed(run, 'exit code 1'))
  }
  volume.usedBytes = source.usedBytes
  cluster.disks?.clone(diskOf(volume), diskOf(source), 'full')
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

export function copyFailed(run: CloneRun, how: string): string {
  const piece = presentPiece(run)
  const source = sourceVolume(run, piece)
  const target = madeVolume(run)
  const from = pathOf(storageConfig(run.cluster, source.storage), source.name)
  const to = pathOf(storageConfig(run.cluster, target.storage), target.name)
  const prefix = target.format === 'raw' ? '' : 'zeroinit:'
  return `copy failed: command '/usr/bin/qemu-img convert -p -n -f ${source.format} -O ${target.format} ${from} ${prefix}${to}' failed: ${how}`
}
