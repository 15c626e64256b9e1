import type { WorldStorage } from '../types.ts'
import type { Cluster } from './cluster.ts'
import { die } from './errors.ts'
import { diskOf, type Volume, volumeKey } from './state.ts'

type VolumeId = { storage: string; name: string }

/** @throws {PveError} as pve-storage Storage.pm storage_config. */
export function storageConfig(cluster: Cluster, id: string): WorldStorage {
  const storage = cluster.state.storages.find((candidate) => candidate.storage === id)
  return storage ?? die(`storage '${id}' does not exist`)
}

export const isOnNode = (storage: WorldStorage, node: string): boolean =>
  storage.nodes?.includes(node) ?? true

/** @throws {PveError} when it is disabled or not there on that node. Source: pve-storage Storage.pm storage_check_enabled. */
export function enabledStorage(cluster: Cluster, id: string, node: string): WorldStorage {
  const storage = storageConfig(cluster, id)
  if (storage.disable) die(`storage '${id}' is disabled`)
  if (!isOnNode(storage, node)) die(`storage '${id}' is not available on node '${node}'`)
  return storage
}

/** @throws {PveError} also when it cannot be activated. */
export function activeStorage(cluster: Cluster, id: string, node: string): WorldStorage {
  const storage = enabledStorage(cluster, id, node)
  if (isOffline(storage, node)) die(storage.offline ?? '')
  return storage
}

/** Away on every node, unless it is said on which. */
export const isOffline = ({ offline, offlineOn }: WorldStorage, node: string): boolean =>
  offline !== undefined && (offlineOn?.includes(node) ?? true)

export const isShared = (storage: WorldStorage): boolean =>
  storage.shared === true || storage.type === 'nfs' || storage.type === 'rbd'
export const isFileBased = (storage: WorldStorage): boolean =>
  storage.type === 'dir' || storage.type === 'nfs'

export function parseVolumeId(text: string): VolumeId {
  const [, storage, name] = /^([a-zA-Z][a-zA-Z0-9\-_.]*[a-zA-Z0-9]):(.+)$/.exec(text) ?? []
  return storage && name ? { storage, name } : die(`unable to parse volume ID '${text}'`)
}

/** The kind of a volume by its name. Source: pve-storage Plugin.pm parse_volname. @throws {PveError} when it is none. */
export function parseVolumeName(
  storage: WorldStorage,
  name: string,
): { content: string; vmid?: number; format?: string } {
  if (isFileBased(storage)) {
    if (/^iso\/[^/]+\.(?:iso|img)$/i.test(name)) return { content: 'iso', format: 'iso' }
    if (/^vztmpl\/[^/]+\.tar\.(?:gz|xz|zst)$/.test(name)) return { content: 'vztmpl' }
    if (/^snippets\/[^/]+$/.test(name)) return { content: 'snippets', format: 'snippet' }
    if (/^backup\/[^/]+\.(?:vma|tgz|tar)(?:\.\w+)?$/.test(name)) return { content: 'backup' }
    if (/^import\/[^/]+\.(?:ova|qcow2|raw|vmdk)$/.test(name)) return { content: 'import' }
    const image = /^(?:\d+\/[^/\s]+\/)?(\d+)\/[^/\s]+\.(raw|qcow2|vmdk|subvol)$/.exec(name)
    if (image) return { content: 'images', vmid: Number(image[1]), format: image[2] ?? 'raw' }
    return die(`unable to parse directory volume name '${name}'`)
  }
  const disk = /^(?:base-\d+-\S+\/)?(?:vm|base)-(\d+)-\S+$/.exec(name)
  if (disk) return { content: 'images', vmid: Number(disk[1]), format: 'raw' }
  return die(`unable to parse ${storage.type} volume name '${name}'`)
}

const placeOf = (storage: WorldStorage, node: string): string | undefined =>
  isShared(storage) ? undefined : node

export function findVolume(cluster: Cluster, node: string, id: VolumeId): Volume | undefined {
  const storage = storageConfig(cluster, id.storage)
  return cluster.state.volumes[volumeKey(id.storage, placeOf(storage, node), id.name)]
}

export function volumesOf(cluster: Cluster, node: string, storage: WorldStorage): Volume[] {
  const place = placeOf(storage, node)
  return Object.values(cluster.state.volumes)
    .filter((volume) => volume.storage === storage.storage && volume.node === place)
    .sort((a, b) => (a.name < b.name ? -1 : 1))
}

/** Where the bytes lie, as texts of PVE show it. */
export function pathOf(storage: WorldStorage, name: string): string {
  if (!isFileBased(storage)) return `/dev/${storage.vgname ?? storage.storage}/${name.split('/').at(-1)}`
  const [kind] = name.split('/')
  const file = name.split('/').at(-1)
  if (kind === 'iso' || kind === 'snippets' || kind === 'import')
    return `${storage.path}/${kind === 'iso' ? 'template/iso' : kind}/${file}`
  return `${storage.path}/images/${name.split('/').slice(-2).join('/')}`
}

/** The next free `vm-<id>-disk-<n>` of a VM on a storage, as a volume name. */
export function freeDiskName(
  cluster: Cluster,
  node: string,
  storage: WorldStorage,
  vmid: number,
  format: string,
  base?: string,
): string {
  const taken = new Set(
    volumesOf(cluster, node, storage)
      .filter((volume) => volume.vmid === vmid)
      .map((volume) => /-disk-(\d+)/.exec(volume.name.split('/').at(-1) ?? '')?.[1]),
  )
  let index = 0
  while (taken.has(String(index))) index += 1
  const disk = `vm-${vmid}-disk-${index}`
  const name = isFileBased(storage) ? `${vmid}/${disk}.${format}` : disk
  return base === undefined ? name : `${base}/${name}`
}

export function addVolume(
  cluster: Cluster,
  node: string,
  storage: WorldStorage,
  volume: {
    name: string
    sizeBytes: number
    usedBytes?: number
    format?: string
    parent?: string
    blob?: string
  },
): Volume {
  const place = placeOf(storage, node)
  const parsed = parseVolumeName(storage, volume.name)
  const made: Volume = {
    ...volume,
    storage: storage.storage,
    ...(place === undefined ? {} : { node: place }),
    ...(parsed.vmid === undefined ? {} : { vmid: parsed.vmid }),
    content: parsed.content,
    format: volume.format ?? parsed.format ?? 'raw',
    usedBytes: volume.usedBytes ?? volume.sizeBytes,
    ctimeSeconds: Math.floor(cluster.clock.now() / 1000),
  }
  cluster.state.volumes[volumeKey(storage.storage, place, volume.name)] = made
  return made
}

export function removeVolume(cluster: Cluster, volume: Volume): void {
  delete cluster.state.volumes[volumeKey(volume.storage, volume.node, volume.name)]
  const shared = Object.values(cluster.state.volumes).some((other) => other.blob === volume.blob)
  if (volume.blob !== undefined && !shared) cluster.blobs.remove(volume.blob)
  if (volume.content === 'images') cluster.disks?.remove(diskOf(volume))
}

/** A base image that other volumes lean on. */
export function isBaseInUse(cluster: Cluster, volume: Volume): boolean {
  return Object.values(cluster.state.volumes).some(
    (other) =>
      other.storage === volume.storage &&
      other.node === volume.node &&
      other.name.startsWith(`${volume.name}/`),
  )
}

export const volumeIdOf = (volume: { storage: string; name: string }): string =>
  `${volume.storage}:${volume.name}`

/** Size of the file system and what is left of it. */
export function spaceOf(cluster: Cluster, node: string, storage: WorldStorage) {
  const total = storage.totalBytes ?? 256 * 1024 ** 3
  const used = volumesOf(cluster, node, storage).reduce((sum, volume) => sum + volume.usedBytes, 0)
  return { total, used, avail: Math.max(0, total - used) }
}

/** The lock under which a storage allocates and frees, and the text when it is not had in time. */
export function storageLock(storage: WorldStorage, node: string): { name: string; failure: string } {
  if (isShared(storage)) {
    const id = `storage-${storage.storage}`
    return { name: `cfs:${id}`, failure: `cfs-lock '${id}' error: got lock request timeout` }
  }
  const path = `/var/lock/pve-manager/pve-storage-${storage.storage}`
  return { name: `${node}:${path}`, failure: `can't lock file '${path}' - got timeout` }
}
