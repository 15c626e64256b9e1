import type { World, WorldNode, WorldVm } from '../types.ts'
import { randomMac } from './net.ts'
import type { Node, State, Vm, Volume } from './state.ts'
import { volumeKey } from './state.ts'
import { isShared, parseVolumeName } from './storage.ts'

const giB = 1024 ** 3

/** The first state of a cluster. */
export function stateOf(world: World, nowMs: number, random: () => number): State {
  const state: State = {
    version: world.version,
    ...(world.cluster === undefined ? {} : { cluster: world.cluster }),
    nodes: world.nodes.map((node, index) => nodeOf(node, index, nowMs)),
    storages: world.storages.map((storage) => ({ ...storage })),
    volumes: {},
    vms: {},
    pools: {},
    users: (world.users ?? []).map((user) => ({ ...user })),
    roles: world.roles ?? {},
    acl: (world.acl ?? []).map((entry) => ({ ...entry })),
    datacenter: world.datacenter ?? {},
    tasks: {},
    rrd: {},
  }
  if (!state.users.some((user) => user.userid === 'root@pam')) state.users.push({ userid: 'root@pam' })
  for (const { poolid, comment } of world.pools ?? [])
    state.pools[poolid] = { ...(comment === undefined ? {} : { comment }), vmids: [], storages: [] }
  for (const storage of state.storages) {
    if (storage.pool !== undefined) state.pools[storage.pool]?.storages.push(storage.storage)
  }
  for (const vm of world.vms ?? []) {
    state.vms[vm.vmid] = vmOf(vm, nowMs, random)
    if (vm.pool !== undefined) state.pools[vm.pool]?.vmids.push(vm.vmid)
  }
  for (const volume of world.volumes ?? []) addVolumes(state, volume, nowMs)
  return state
}

function nodeOf(node: WorldNode, index: number, nowMs: number): Node {
  return {
    name: node.name,
    ip: node.ip ?? `10.99.0.${index + 1}`,
    cpus: node.cpus ?? 8,
    memoryBytes: Math.round((node.memoryMiB ?? 32 * 1024) * 1024 ** 2),
    rootBytes: (node.rootGiB ?? 96) * giB,
    bridges: (node.bridges ?? [{ iface: 'vmbr0' }]).map((bridge) => ({ ports: '', ...bridge })),
    fingerprint: node.fingerprint ?? Array.from({ length: 32 }, () => 'AA').join(':'),
    ...(node.clockSkewMs === undefined ? {} : { clockSkewMs: node.clockSkewMs }),
    ...(node.certificateEndsMs === undefined ? {} : { certificateEndsMs: node.certificateEndsMs }),
    bootMs: nowMs - Math.round((node.uptimeSeconds ?? 1000 + index * 3.7) * 1000),
    nextPid: 1000 + index,
    state: 'up',
    stateSinceMs: nowMs,
    stopped: [],
    lastRound: -1,
  }
}

function vmOf(vm: WorldVm, nowMs: number, random: () => number): Vm {
  const config = { ...vm.config }
  for (const [key, value] of Object.entries(config)) {
    if (/^net\d+$/.test(key) && /^virtio(?:,|$)/.test(String(value)))
      config[key] = String(value).replace(/^virtio/, `virtio=${randomMac(random)}`)
  }
  return {
    vmid: vm.vmid,
    node: vm.node,
    config,
    pending: { set: {}, delete: [] },
    snapshots: vm.snapshots ?? {},
    container: vm.container ?? false,
    boots: 0,
    ...(vm.running ? { run: { pid: 900, sinceMs: nowMs - 60_000, qmpstatus: 'running' } } : {}),
  }
}

/** A volume of a storage that is not shared and names no node lies on each. */
function addVolumes(state: State, volume: NonNullable<World['volumes']>[number], nowMs: number): void {
  const storage = state.storages.find((candidate) => candidate.storage === volume.storage)
  if (!storage) throw new Error(`the world has a volume on a storage it does not have: ${volume.storage}`)
  const places = isShared(storage)
    ? [undefined]
    : volume.node
      ? [volume.node]
      : state.nodes.map((node) => node.name)
  const parsed = parseVolumeName(storage, volume.name)
  for (const node of places) {
    const made: Volume = {
      storage: volume.storage,
      ...(node === undefined ? {} : { node }),
      name: volume.name,
      content: parsed.content,
      format: volume.format ?? parsed.format ?? 'raw',
      sizeBytes: volume.sizeBytes,
      usedBytes: volume.usedBytes ?? volume.sizeBytes,
      ctimeSeconds: volume.ctimeSeconds ?? Math.floor(nowMs / 1000) - 100_000,
      ...(parsed.vmid === undefined ? {} : { vmid: parsed.vmid }),
      ...(volume.parent === undefined ? {} : { parent: volume.parent }),
    }
    state.volumes[volumeKey(volume.storage, node, volume.name)] = made
  }
}
