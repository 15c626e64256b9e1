import { listedNode } from './api-nodes.ts'
import { poolOfVm, visibleFrom } from './cluster.ts'
import { type Ctx, may, maybeText } from './endpoint.ts'
import { lastTold } from './pvestatd.ts'
import type { Node, Vm } from './state.ts'
import { isOffline, isOnNode, isShared, spaceOf } from './storage.ts'

export function resources(ctx: Ctx): unknown[] {
  const { cluster } = ctx
  const { state } = cluster
  const type = maybeText(ctx, 'type')
  const wants = (kind: string) => type === undefined || type === kind
  const pools = Object.keys(state.pools)
    .filter((pool) => wants('pool') && may(ctx, `/pool/${pool}`, 'Pool.Audit'))
    .map((pool) => ({ id: `/pool/${pool}`, pool, type: 'pool' }))
  const guests = Object.values(state.vms)
    .filter((vm) => wants('vm') && may(ctx, `/vms/${vm.vmid}`, 'VM.Audit'))
    .map((vm) => listedGuest(ctx, vm))
  const nodes = state.nodes.filter(() => wants('node')).map((node) => listedNodeResource(ctx, node))
  const storages = state.storages
    .filter(
      (storage) =>
        wants('storage') && !storage.disable && may(ctx, `/storage/${storage.storage}`, 'Datastore.Audit'),
    )
    .flatMap((storage) =>
      state.nodes
        .filter((node) => isOnNode(storage, node.name))
        .map((node) => {
          const { total, used } = spaceOf(cluster, node.name, storage)
          const up = isRemembered(ctx, node) && !isOffline(storage, node.name)
          return {
            id: `storage/${node.name}/${storage.storage}`,
            type: 'storage',
            storage: storage.storage,
            node: node.name,
            plugintype: storage.type,
            content: storage.content.join(','),
            shared: isShared(storage) ? 1 : 0,
            status: up ? 'available' : 'unknown',
            ...(up ? { disk: used, maxdisk: total } : {}),
          }
        }),
    )
  return [...pools, ...guests, ...nodes, ...storages]
}

/** What a node told of its storages is believed for five minutes after it was seen last. */
function isRemembered(ctx: Ctx, node: Node): boolean {
  const { clock } = ctx.cluster
  return visibleFrom(ctx.cluster, ctx.received).includes(node) || clock.now() - node.stateSinceMs < 300_000
}

/** Existence, lock, tags and pool are of now; the rest is what pvestatd told last. */
function listedGuest(ctx: Ctx, vm: Vm) {
  const { cluster } = ctx
  const type = vm.container ? 'lxc' : 'qemu'
  const pool = poolOfVm(cluster, vm.vmid)
  const { lock, tags } = vm.config
  return {
    id: `${type}/${vm.vmid}`,
    vmid: vm.vmid,
    node: vm.node,
    type,
    ...(lastTold(cluster, vm.vmid) ?? { status: 'unknown' }),
    ...(lock === undefined ? {} : { lock }),
    ...(tags === undefined ? {} : { tags }),
    ...(pool !== undefined && may(ctx, `/pool/${pool}`, 'Pool.Audit') ? { pool } : {}),
  }
}

function listedNodeResource(ctx: Ctx, node: Node) {
  const { ssl_fingerprint: _, ...shown } = listedNode(ctx, node)
  return { ...shown, 'cgroup-mode': 1 }
}
