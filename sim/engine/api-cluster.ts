import { broadcastTask } from './api-tasks.ts'
import { isQuorate, nodeOf, poolOfVm, visibleFrom } from './cluster.ts'
import { type Ctx, type Endpoint, may, maybeText, mustHave, nodeParam, reply } from './endpoint.ts'
import { die, refuseParams } from './errors.ts'
import { lastTold } from './pvestatd.ts'
import { releases } from './releases.ts'
import type { Node, Vm } from './state.ts'
import { isOnNode, isShared, spaceOf } from './storage.ts'

const version: Endpoint['handler'] = (ctx) => reply(releases[ctx.cluster.state.version])

export const clusterEndpoints: Endpoint[] = [
  {
    method: 'GET',
    path: '/',
    parameters: {},
    handler: () =>
      reply(['version', 'cluster', 'nodes', 'storage', 'access', 'pools'].map((subdir) => ({ subdir }))),
  },
  { method: 'GET', path: '/version', handler: version },
  { method: 'GET', path: '/nodes/{node}/version', proxied: true, parameters: nodeParam, handler: version },
  {
    method: 'GET',
    path: '/nodes',
    handler: (ctx) => reply(ctx.cluster.state.nodes.map((node) => listedNode(ctx, node))),
  },
  {
    method: 'GET',
    path: '/nodes/{node}/status',
    permission: (ctx) => mustHave(ctx, `/nodes/${ctx.node}`, 'Sys.Audit'),
    handler: (ctx) => reply(nodeStatus(ctx)),
  },
  {
    method: 'GET',
    path: '/cluster/status',
    permission: (ctx) => mustHave(ctx, '/', 'Sys.Audit'),
    handler: (ctx) => reply(clusterStatus(ctx)),
  },
  { method: 'GET', path: '/cluster/resources', handler: (ctx) => reply(resources(ctx)) },
  { method: 'GET', path: '/cluster/nextid', handler: (ctx) => reply(nextId(ctx)) },
  {
    method: 'GET',
    path: '/cluster/tasks',
    handler: (ctx) => {
      const all = may(ctx, '/', 'Sys.Audit')
      // PVE compares the bare user name with the caller: a token sees none of its own tasks here.
      const tasks = Object.values(ctx.cluster.state.tasks).filter((task) => all || task.user === ctx.caller)
      return reply(
        tasks
          .reverse()
          .slice(0, 25)

          .map(broadcastTask),
      )
    },
  },
  {
    method: 'GET',
    path: '/nodes/{node}/network',
    proxied: true,
    parameters: {
      ...nodeParam,
      type: {
        type: 'string',
        enum: [
          'bridge',
          'bond',
          'eth',
          'alias',
          'vlan',
          'fabric',
          'OVSBridge',
          'OVSBond',
          'OVSPort',
          'OVSIntPort',
          'vnet',
          'any_bridge',
          'any_local_bridge',
          'include_sdn',
        ],
        optional: true,
      },
    },
    handler: (ctx) => reply(nodeOf(ctx.cluster, ctx.node).bridges.map((bridge) => listedBridge(bridge))),
  },
  {
    method: 'GET',
    path: '/nodes/{node}/certificates/info',
    proxied: true,
    parameters: nodeParam,
    handler: (ctx) =>
      reply([
        {
          filename: 'pve-ssl.pem',
          fingerprint: nodeOf(ctx.cluster, ctx.node).fingerprint,
          subject: `/CN=${ctx.node}`,
        },
      ]),
  },
]

function listedNode(ctx: Ctx, node: Node) {
  const { cluster } = ctx
  const online = visibleFrom(cluster, ctx.received).includes(node)
  const shown = {
    id: `node/${node.name}`,
    node: node.name,
    type: 'node',
    status: online ? 'online' : 'offline',
    level: '',
    ssl_fingerprint: node.fingerprint,
  }
  if (!may(ctx, `/nodes/${node.name}`, 'Sys.Audit')) return shown
  return { ...shown, ...nodeFigures(ctx, node, online) }
}

function nodeFigures(ctx: Ctx, node: Node, online: boolean) {
  const fixed = { maxcpu: node.cpus, maxmem: node.memoryBytes, maxdisk: node.rootBytes }
  if (!online) return fixed
  const uptime = Math.floor((ctx.cluster.clock.now() - node.bootMs) / 1000)
  return { ...fixed, cpu: 0.05, mem: usedMemory(ctx, node), disk: Math.floor(node.rootBytes / 100), uptime }
}

function usedMemory(ctx: Ctx, node: Node): number {
  const running = Object.values(ctx.cluster.state.vms).filter((vm) => vm.node === node.name && vm.run)
  return 1_085_317_120 + running.length * 128 * 1024 ** 2
}

function nodeStatus(ctx: Ctx) {
  const node = nodeOf(ctx.cluster, ctx.node)
  const { version, repoid } = releases[ctx.cluster.state.version]
  const used = usedMemory(ctx, node)
  const rootUsed = Math.floor(node.rootBytes / 100)
  return {
    uptime: Math.floor((ctx.cluster.clock.now() - node.bootMs) / 1000),
    pveversion: `pve-manager/${version}/${repoid}`,
    kversion: 'Linux 6.8.12-1-pve #1 SMP PREEMPT_DYNAMIC @0',
    'current-kernel': {
      sysname: 'Linux',
      release: '6.8.12-1-pve',
      version: '#1 SMP PREEMPT_DYNAMIC @0',
      machine: 'x86_64',
    },
    'boot-info': { mode: 'legacy-bios' },
    loadavg: ['0.10', '0.12', '0.09'],
    cpu: 0.05,
    wait: 0,
    idle: 0,
    ksm: { shared: 0 },
    cpuinfo: {
      cpus: node.cpus,
      cores: node.cpus,
      sockets: 1,
      model: 'Intel(R) Xeon(R) Processor',
      mhz: '2000.000',
      hvm: '',
      user_hz: 100,
      flags: 'fpu vme sse sse2',
      ...(ctx.cluster.state.version === 9 ? { vendor: 'GenuineIntel', family: '6' } : {}),
    },
    memory: {
      total: node.memoryBytes,
      used,
      free: node.memoryBytes - used,
      ...(ctx.cluster.state.version === 9 ? { available: node.memoryBytes - used } : {}),
    },
    swap: { total: 0, used: 0, free: 0 },
    rootfs: {
      total: node.rootBytes,
      used: rootUsed,
      free: node.rootBytes - rootUsed,
      avail: node.rootBytes - rootUsed,
    },
  }
}

function clusterStatus(ctx: Ctx) {
  const { cluster } = ctx
  const { nodes, cluster: name } = cluster.state
  const visible = visibleFrom(cluster, ctx.received)
  const entries = nodes.map((node, index) => ({
    type: 'node',
    id: `node/${node.name}`,
    name: node.name,
    ip: node.ip,
    level: '',
    local: node.name === ctx.received ? 1 : 0,
    nodeid: name === undefined ? 0 : index + 1,
    online: visible.includes(node) ? 1 : 0,
  }))
  if (name === undefined) return entries
  const quorate = isQuorate(cluster, ctx.received) ? 1 : 0
  return [{ type: 'cluster', id: 'cluster', name, nodes: nodes.length, quorate, version: 1 }, ...entries]
}

function nextId(ctx: Ctx): string {
  const { vms, datacenter } = ctx.cluster.state
  const wanted = maybeText(ctx, 'vmid')
  if (wanted !== undefined)
    return vms[wanted] ? refuseParams({ vmid: `VM ${wanted} already exists` }) : wanted
  const { lower = 100, upper = 1_000_000 } = datacenter.nextId ?? {}
  for (let vmid = lower; vmid < upper; vmid++) if (!vms[vmid]) return String(vmid)
  return die(`unable to get any free VMID in range [${lower}, ${upper}]`)
}

function resources(ctx: Ctx): unknown[] {
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
          const up = isRemembered(ctx, node) && storage.offline === undefined
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

function listedBridge(bridge: Node['bridges'][number]) {
  const [address, netmask] = bridge.cidr?.split('/') ?? []
  return {
    iface: bridge.iface,
    type: 'bridge',
    active: 1,
    autostart: 1,
    priority: 3,
    method: bridge.cidr ? 'static' : 'manual',
    method6: 'manual',
    families: ['inet'],
    bridge_ports: bridge.ports,
    bridge_stp: 'off',
    bridge_fd: '0',
    ...(bridge.cidr ? { cidr: bridge.cidr, address, netmask } : {}),
  }
}
