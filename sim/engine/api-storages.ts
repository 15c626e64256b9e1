import { createHash } from 'node:crypto'
import type { WorldStorage } from '../types.ts'
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
  findVolume,
  isOffline,
  isOnNode,
  isShared,
  parseVolumeName,
  pathOf,
  spaceOf,
  volumeIdOf,
  volumesOf,
} from './storage.ts'
import { upload } from './upload.ts'
import { mayUseVolume, mustUseVolume } from './vm-permissions.ts'
import { remove, volumeParam } from './volume-delete.ts'

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
  const active = enabled && !isOffline(storage, ctx.node)
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

export function statuses(ctx: Ctx) {
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

export function content(ctx: Ctx) {
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
