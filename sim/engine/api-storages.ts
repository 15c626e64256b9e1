import { createHash } from 'node:crypto'
import type { WorldStorage } from '../types.ts'
import { nodeOf, visibleFrom } from './cluster.ts'
import {
  type Ctx,
  type Endpoint,
  flag,
  mayAny,
  maybeNumber,
  maybeText,
  mustHave,
  mustHaveAny,
  reply,
  storageUser,
  text,
} from './endpoint.ts'
import { die, refuseParams } from './errors.ts'
import { splitList } from './formats.ts'
import type { Volume } from './state.ts'
import {
  activeStorage,
  addVolume,
  enabledStorage,
  findVolume,
  isBaseInUse,
  isFileBased,
  isOnNode,
  isShared,
  parseVolumeName,
  pathOf,
  removeVolume,
  spaceOf,
  storageConfig,
  storageLock,
  volumeIdOf,
  volumesOf,
} from './storage.ts'
import { end, lock, next, type Program } from './tasks.ts'
import { mayUseVolume, mustUseVolume } from './vm-permissions.ts'
import { sleepThrough } from './wait.ts'

const auditStorage = (ctx: Ctx): void => mustHaveAny(ctx, `/storage/${text(ctx, 'storage')}`, storageUser)

export const storageEndpoints: Endpoint[] = [
  { method: 'GET', path: '/storage', handler: (ctx) => reply(configs(ctx)) },
  { method: 'GET', path: '/nodes/{node}/storage', handler: (ctx) => reply(statuses(ctx)) },
  {
    method: 'GET',
    path: '/nodes/{node}/storage/{storage}/status',
    permission: auditStorage,
    handler(ctx) {
      const id = text(ctx, 'storage')
      const storage = ctx.cluster.state.storages.find((candidate) => candidate.storage === id)
      return reply(statusOf(ctx, storage ?? refuseParams({ storage: 'No such storage.' })))
    },
  },
  {
    method: 'GET',
    path: '/nodes/{node}/storage/{storage}/content',
    permission: auditStorage,
    handler: (ctx) => reply(content(ctx)),
  },
  {
    method: 'GET',
    path: '/nodes/{node}/storage/{storage}/content/{volume}',
    handler(ctx) {
      const { storage, name } = volumeParam(ctx)
      const { content: kind, vmid } = parseVolumeName(storage, name)
      mustUseVolume(ctx, storage.storage, kind, vmid)
      activeStorage(ctx.cluster, storage.storage, ctx.node)
      const volume = findVolume(ctx.cluster, ctx.node, { storage: storage.storage, name })
      if (!volume) die(`volume_size_info on '${storage.storage}:${name}' failed - no format`)
      return reply({
        path: pathOf(storage, name),
        size: volume.sizeBytes,
        used: Math.ceil(volume.usedBytes / 4096) * 4096,
        format: volume.content === 'iso' ? 'raw' : volume.format,
      })
    },
  },
  { method: 'DELETE', path: '/nodes/{node}/storage/{storage}/content/{volume}', handler: remove },
  {
    method: 'POST',
    path: '/nodes/{node}/storage/{storage}/upload',
    permission: (ctx) => mustHave(ctx, `/storage/${text(ctx, 'storage')}`, 'Datastore.AllocateTemplate'),
    handler: upload,
  },
]

function configs(ctx: Ctx) {
  const digest = createHash('sha1').update(JSON.stringify(ctx.cluster.state.storages)).digest('hex')
  const type = maybeText(ctx, 'type')
  return ctx.cluster.state.storages
    .filter((storage) => mayAny(ctx, `/storage/${storage.storage}`, storageUser))
    .filter((storage) => type === undefined || storage.type === type)
    .map(({ storage, type: kind, content: kinds, path, vgname, thinpool, shared, nodes, disable }) => ({
      storage,
      type: kind,
      content: kinds.join(','),
      digest,
      ...(path === undefined ? {} : { path }),
      ...(vgname === undefined ? {} : { vgname }),
      ...(thinpool === undefined ? {} : { thinpool }),
      ...(shared ? { shared: 1 } : {}),
      ...(nodes ? { nodes: nodes.join(',') } : {}),
      ...(disable ? { disable: 1 } : {}),
    }))
}

function statusOf(ctx: Ctx, storage: WorldStorage) {
  const enabled = !storage.disable && isOnNode(storage, ctx.node)
  const active = enabled && storage.offline === undefined
  const space = active ? spaceOf(ctx.cluster, ctx.node, storage) : { total: 0, used: 0, avail: 0 }
  return {
    type: storage.type,
    content: storage.content.join(','),
    shared: isShared(storage) ? 1 : 0,
    enabled: enabled ? 1 : 0,
    active: active ? 1 : 0,
    ...space,
  }
}

function statuses(ctx: Ctx) {
  const kinds = splitList(maybeText(ctx, 'content') ?? '')
  const only = maybeText(ctx, 'storage')
  return ctx.cluster.state.storages
    .filter((storage) => mayAny(ctx, `/storage/${storage.storage}`, storageUser))
    .filter((storage) => isOnNode(storage, ctx.node) && (only === undefined || storage.storage === only))
    .filter((storage) => kinds.length === 0 || kinds.some((kind) => storage.content.includes(kind)))
    .map((storage) => ({ storage: storage.storage, ...statusOf(ctx, storage) }))
    .filter((status) => status.enabled === 1 || (kinds.length === 0 && !flag(ctx, 'enabled')))
    .map((status) => (status.total > 0 ? { ...status, used_fraction: status.used / status.total } : status))
}

function content(ctx: Ctx) {
  const id = text(ctx, 'storage')
  const storage = activeStorage(ctx.cluster, id, ctx.node)
  const kind = maybeText(ctx, 'content')
  const vmid = maybeNumber(ctx, 'vmid')
  return volumesOf(ctx.cluster, ctx.node, storage)
    .filter((volume) => storage.content.includes(volume.content) && !isHidden(volume))
    .filter(
      (volume) =>
        (kind === undefined || volume.content === kind) && (vmid === undefined || volume.vmid === vmid),
    )
    .filter((volume) => mayUseVolume(ctx, id, volume.content, volume.vmid))
    .map(listedVolume)
}

/** PVE looks for files by `*.iso`, which passes over a leading dot. */
const isHidden = ({ name }: Volume): boolean => name.split('/').at(-1)?.startsWith('.') ?? false

function listedVolume(volume: Volume) {
  const common = {
    volid: volumeIdOf(volume),
    content: volume.content,
    format: volume.format,
    size: volume.sizeBytes,
    ctime: volume.ctimeSeconds,
  }
  if (volume.content !== 'images') return common
  return { ...common, vmid: volume.vmid, used: volume.usedBytes, parent: volume.parent ?? null }
}

/** The volume of the path: with or without its storage in front. */
function volumeParam(ctx: Ctx): { storage: WorldStorage; name: string } {
  const id = text(ctx, 'storage')
  const volume = text(ctx, 'volume')
  const [, other, name] = /^([a-zA-Z][a-zA-Z0-9\-_.]*[a-zA-Z0-9]):(.+)$/.exec(volume) ?? []
  if (other !== undefined && other !== id)
    refuseParams({ volume: `storage ID mismatch (${other} != ${id})\n` })
  return { storage: storageConfig(ctx.cluster, id), name: name ?? volume }
}

/** Source: pve-storage API2/Storage/Content.pm delete: no look at who uses the volume. */
async function remove(ctx: Ctx) {
  const { storage, name } = volumeParam(ctx)
  const { content: kind } = parseVolumeName(storage, name)
  if (kind === 'backup') mustHave(ctx, `/storage/${storage.storage}`, 'Datastore.AllocateSpace')
  else mustHave(ctx, `/storage/${storage.storage}`, 'Datastore.Allocate')
  const data: DeleteData = { storage: storage.storage, name }
  const upid = ctx.cluster.tasks.fork(ctx.node, 'imgdel', storage.storage, ctx.caller, data)
  return reply(await sleepThrough(ctx.cluster, upid, maybeNumber(ctx, 'delay'), ''))
}

type DeleteData = { storage: string; name: string }

export const deleteProgram: Program<DeleteData> = {
  stages: {
    begin(run) {
      const storage = activeStorage(run.cluster, run.data.storage, run.node)
      const { name, failure } = storageLock(storage, run.node)
      return lock(name, 'exclusive', 10_000, 'unlink', failure)
    },
    unlink(run) {
      const { cluster, data, node } = run
      const storage = storageConfig(cluster, data.storage)
      const path = pathOf(storage, data.name)
      const volume = findVolume(cluster, node, data)
      if (volume && storage.readOnly) die(`unlink '${path}' failed - Read-only file system`)
      if (volume && isBaseInUse(cluster, volume))
        die(`base volume '${data.name}' is still in use by linked cloned`)
      if (volume) removeVolume(cluster, volume)
      else run.log(`disk image '${path}' does not exist`)
      run.unlock(storageLock(storage, node).name)
      return next('removed', cluster.durations.deleteVolumeMs)
    },
    removed(run) {
      run.log(`Removed volume '${run.data.storage}:${run.data.name}'`)
      return end
    },
  },
}

type UploadData = {
  storage: string
  target: string
  filename: string
  blob: string
  sizeBytes: number
  tmp: string
  checksum?: { algorithm: string; expected: string }
}

/** The file of the client as the receiving node has stored it; the worker copies it. Source: pve-storage API2/Storage/Status.pm upload. */
function upload(ctx: Ctx) {
  const { cluster } = ctx
  const id = text(ctx, 'storage')
  const target = text(ctx, 'node') === 'localhost' ? ctx.node : text(ctx, 'node')
  const known = cluster.state.nodes.some((node) => node.name === target)
  const storage = enabledStorage(cluster, id, known ? target : ctx.node)
  if (!isFileBased(storage)) die(`can't upload to storage type '${storage.type}'`)
  const kind = text(ctx, 'content')
  const filename = normalName(text(ctx, 'filename'))
  if (!extensions[kind]?.test(filename)) refuseParams({ filename: 'wrong file extension' })
  if (!storage.content.includes(kind)) die(`storage '${id}' does not support '${kind}' content`)
  if (target !== ctx.node && !isShared(storage)) reachOver(ctx, id, target)
  activeStorage(cluster, id, target)
  const { upload: file } = ctx.call
  if (!file) die('upload without a file')

  const tmp = Array.from({ length: 32 }, () => Math.floor(cluster.random() * 16).toString(16)).join('')
  const blob = `${tmp}-${filename.slice(-40)}`
  cluster.blobs.put(blob, file.bytes)
  const algorithm = maybeText(ctx, 'checksum-algorithm')
  const data: UploadData = {
    storage: id,
    target,
    filename,
    blob,
    sizeBytes: file.bytes.length,
    tmp: `/var/tmp/pveupload-${tmp}`,
    ...(algorithm === undefined ? {} : { checksum: { algorithm, expected: text(ctx, 'checksum') } }),
  }
  return reply(cluster.tasks.fork(ctx.node, 'imgcopy', '', ctx.caller, data))
}

/** A name is more than its ending. */
const extensions: Record<string, RegExp> = {
  iso: /[^/]\.(?:iso|img)$/i,
  vztmpl: /[^/]\.tar\.(?:gz|xz|zst|bz2)$/i,
  import: /[^/]\.(?:ova|qcow2|raw|vmdk)$/,
}

/** The receiving node asks the other one by ssh whether the storage is there. */
function reachOver(ctx: Ctx, id: string, target: string): void {
  const node = nodeOf(ctx.cluster, target)
  if (visibleFrom(ctx.cluster, ctx.node).includes(node)) return
  const command = `/usr/bin/ssh -o 'BatchMode=yes' -o 'HostKeyAlias=${target}' ${node.ip} -- /usr/sbin/pvesm status --storage ${id}`
  die(`can't activate storage '${id}' on node '${target}': command '${command}' failed: exit code 255\n`)
}

function normalName(given: string): string {
  return given.replace(/^.*[/\\]/s, '').replace(/[^a-zA-Z0-9_.-]/gu, '_')
}

export const uploadProgram: Program<UploadData> = {
  stages: {
    begin(run) {
      const { cluster, data } = run
      run.log(`starting file import from: ${data.tmp}`)
      if (data.checksum) {
        const got = createHash(data.checksum.algorithm).update(cluster.blobs.get(data.blob)).digest('hex')
        const { expected } = data.checksum
        if (got !== expected.toLowerCase()) {
          run.log('calculating checksum...')
          die(`checksum mismatch: got '${got}' != expect '${expected}'`)
        }
        run.log('calculating checksum...OK, checksum verified')
      }
      return next('copied', cluster.durations.uploadMs)
    },
    copied(run) {
      const { cluster, data } = run
      const storage = storageConfig(cluster, data.storage)
      const path = pathOf(storage, `iso/${data.filename}`)
      run.log(`target node: ${data.target}`)
      run.log(`target file: ${path}`)
      run.log(`file size is: ${data.sizeBytes}`)
      run.log(`command: ${copyCommand(run.node, data, nodeOf(cluster, data.target).ip)} ${path}`)
      if (storage.readOnly)
        die(`import failed: cp: cannot create regular file '${path}': Read-only file system`)
      const old = findVolume(cluster, data.target, { storage: data.storage, name: `iso/${data.filename}` })
      if (spaceOf(cluster, data.target, storage).avail + (old?.usedBytes ?? 0) < data.sizeBytes)
        die(`import failed: cp: error writing '${path}': No space left on device`)
      if (old) removeVolume(cluster, old)
      addVolume(cluster, data.target, storage, {
        name: `iso/${data.filename}`,
        sizeBytes: data.sizeBytes,
        blob: data.blob,
      })
      run.log('finished file import successfully')
      return end
    },
  },
  failed(run, text) {
    run.cluster.blobs.remove(run.data.blob)
    return text
  },
}

function copyCommand(node: string, data: UploadData, ip: string): string {
  if (node === data.target) return `cp -- ${data.tmp}`
  return `/usr/bin/scp -o BatchMode=yes -o HostKeyAlias=${data.target} -- ${data.tmp} ${ip}:`
}
