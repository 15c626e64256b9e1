import { atMost } from '../../lib/at-most.ts'
import type { Cluster } from '../../lib/config.ts'
import { grantCommand } from '../../lib/grant.ts'
import { isProxmoxError, type Provider, type ProxmoxError, type Storage } from '../../lib/proxmox/index.ts'
import type { Skipped } from './event.ts'
import { readSeed } from './sight.ts'
import type { Shelf, Surroundings } from './world.ts'

export type Seen = { cluster?: Surroundings; skipped: Skipped[] }

type Eyes = Pick<
  Provider,
  'nodes' | 'listVms' | 'runningTasks' | 'storages' | 'isos' | 'disks' | 'permissions'
>
export type LookOptions = { name: string; cluster: Cluster; deployment: string; vms: Eyes }

/** A node's API has three workers for everybody. */
const CALLS_AT_ONCE = 4

/** Lists what a cluster holds; what does not answer is left out and said to be. A cluster that cannot be listed is skipped whole. */
export async function lookRound(options: LookOptions): Promise<Seen> {
  const { name, vms } = options
  try {
    const nodes = await vms.nodes()
    const listed = await vms.listVms()
    const rounds = await Promise.all(nodes.map((node) => askNode(node, options)))
    const online = rounds.flatMap((round) => (round.kind === 'online' ? [round] : []))
    const shelves = await lookAtShelves(online, options)
    const silent = new Set([
      ...rounds.flatMap((round) => (round.kind === 'silent' ? [round.node] : [])),
      ...shelves.silent,
    ])
    const cluster: Surroundings = {
      name,
      nodes: nodes.map((node) => ({ name: node.name, silent: silent.has(node.name) })),
      vms: listed,
      // What a node held when it fell silent may have changed since.
      seeds: shelves.seeds.filter(({ node, shared }) => shared || !silent.has(node)),
      disks: shelves.disks.filter(({ node, shared }) => shared || !silent.has(node)),
      clones: online.flatMap(({ clones }) => clones),
    }
    const mute = rounds.flatMap((round) => (round.kind === 'silent' ? [round] : []))
    const skipped = [...mute.map(({ node, reason }) => ({ cluster: name, node, reason })), ...shelves.skipped]
    return { cluster, skipped: [...skipped, ...(await blindness(online, options))] }
  } catch (error) {
    if (!isProxmoxError(error)) throw error
    return { skipped: [{ cluster: name, reason: error.message, ...hintOf(error, options) }] }
  }
}

type Online = { kind: 'online'; node: string; clones: { startedAtMs: number }[]; storages: Storage[] }
type Round = Online | { kind: 'silent'; node: string; reason: string }

async function askNode(
  { name: node, online }: { name: string; online: boolean },
  { vms }: LookOptions,
): Promise<Round> {
  if (!online) return { kind: 'silent', node, reason: 'the node is offline' }
  try {
    const clones = await vms.runningTasks({ node, type: 'qmclone' })
    return { kind: 'online', node, clones, storages: await vms.storages(node) }
  } catch (error) {
    if (!isProxmoxError(error)) throw error
    return { kind: 'silent', node, reason: error.message }
  }
}

type Job = { node: string; storage: string; shared: boolean; content: 'iso' | 'images' }

async function lookAtShelves(online: readonly Online[], options: LookOptions) {
  const { name: cluster, vms, deployment } = options
  const seeds: Shelf[] = []
  const disks: Shelf[] = []
  const skipped: Skipped[] = []
  const silent = new Set<string>()
  await atMost(CALLS_AT_ONCE * Math.max(1, online.length), jobsFor(online), async ({ content, ...where }) => {
    // One that has fallen silent is not waited for again and again.
    if (silent.has(where.node)) return
    try {
      const volumes = content === 'iso' ? await vms.isos(where) : await vms.disks(where)
      if (content === 'images') disks.push({ ...where, volumes: volumes.map(volumeOf) })
      else
        seeds.push({
          ...where,
          volumes: volumes.map(volumeOf).filter(({ volid }) => readSeed(volid, deployment)),
        })
    } catch (error) {
      if (!isProxmoxError(error)) throw error
      if (isProxmoxError(error, 'Unreachable', 'NodeUnknown', 'Aborted')) silent.add(where.node)
      const { node, storage } = where
      skipped.push({ cluster, node, storage, reason: error.message, ...hintOf(error, options) })
    }
  })
  return { seeds, disks, skipped, silent }
}

/** Each storage that offers images or ISOs, on each node; a shared one on the first alone. */
function jobsFor(online: readonly Online[]): Job[] {
  const shared = new Set<string>()
  return online.flatMap(({ node, storages }) =>
    storages.flatMap((storage) => {
      if (!storage.enabled || !storage.active || shared.has(storage.storage)) return []
      if (storage.shared) shared.add(storage.storage)
      const where = { node, storage: storage.storage, shared: storage.shared }
      return (['iso', 'images'] as const).flatMap((content) =>
        storage.content.has(content) ? [{ ...where, content }] : [],
      )
    }),
  )
}

const volumeOf = ({ volid, vmid }: { volid: string; vmid?: number }) => ({
  volid,
  ...(vmid === undefined ? {} : { vmid }),
})

/** Lists show what the token may see, and say nothing of the rest: what left-overs would stay unseen. */
async function blindness(online: readonly Online[], { name, cluster, vms }: LookOptions): Promise<Skipped[]> {
  const { storage, isoStorage } = cluster
  const skipped = online.flatMap(({ node, storages }) => {
    const iso = storages.find((one) => one.storage === isoStorage)
    if (iso?.active) return []
    const where = { cluster: name, node, storage: isoStorage }
    if (iso) return [{ ...where, reason: 'the storage of the seeds is not active there' }]
    const reason = 'the storage of the seeds is not there, or our token may not list it'
    return [{ ...where, reason, ...grant('Datastore.Audit', `/storage/${isoStorage}`, cluster) }]
  })
  if (online.length === 0 || (await vms.permissions(`/storage/${storage}`)).has('Datastore.Allocate'))
    return skipped
  const reason = 'left-over disks cannot be seen: our token lacks Datastore.Allocate there'
  return [
    ...skipped,
    { cluster: name, storage, reason, ...grant('Datastore.Allocate', `/storage/${storage}`, cluster) },
  ]
}

/** The line that grants what is missing. */
const grant = (
  privilege: string,
  path: string,
  { pool, storage, isoStorage, images }: Cluster,
  tokenId?: string,
) => {
  const templates = Object.values(images).flatMap((byNode) => Object.values(byNode))
  return { hint: grantCommand({ privilege, path }, { pool, storage, isoStorage, templates, tokenId }) }
}

const hintOf = ({ code, privilege, path, tokenId }: ProxmoxError, { cluster }: LookOptions) =>
  code === 'Forbidden' && privilege !== undefined && path !== undefined
    ? grant(privilege, path, cluster, tokenId)
    : {}
