import { nodeOf, visibleFrom } from './cluster.ts'
import { type Ctx, may, mayAny } from './endpoint.ts'
import { releases } from './releases.ts'
import type { Node } from './state.ts'

export function listedNode(ctx: Ctx, node: Node) {
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

export function nodeStatus(ctx: Ctx) {
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

const certificateDays = 730

/** Source: pve-manager API2/Certificates.pm info, which tells of each file that is there. */
export function nodeCertificates(ctx: Ctx) {
  const node = nodeOf(ctx.cluster, ctx.node)
  const notafter = Math.floor(node.bootMs / 1000) + certificateDays * 86_400
  return [
    { filename: 'pve-root-ca.pem', subject: '/CN=Proxmox Virtual Environment', notafter: notafter * 2 },
    {
      filename: 'pve-ssl.pem',
      fingerprint: node.fingerprint,
      subject: `/OU=PVE Cluster Node/O=Proxmox Virtual Environment/CN=${node.name}`,
      notafter: node.certificateEndsMs === undefined ? notafter : Math.floor(node.certificateEndsMs / 1000),
    },
  ]
}

/** Source: pve-manager API2/Nodes.pm time. */
export function nodeTime(ctx: Ctx) {
  const { clockSkewMs = 0 } = nodeOf(ctx.cluster, ctx.node)
  const time = Math.floor((ctx.cluster.clock.now() + clockSkewMs) / 1000)
  return { timezone: 'UTC', time, localtime: time }
}

/** Bridges that the caller may neither use nor see are left out. Source: pve-manager API2/Network.pm index. */
export function nodeBridges(ctx: Ctx) {
  return nodeOf(ctx.cluster, ctx.node)
    .bridges.filter(({ iface }) => mayAny(ctx, `/sdn/zones/localnetwork/${iface}`, ['SDN.Audit', 'SDN.Use']))
    .map(listedBridge)
}
