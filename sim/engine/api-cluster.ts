import { listedNode, nodeBridges, nodeCertificates, nodeStatus, nodeTime } from './api-nodes.ts'
import { resources } from './api-resources.ts'
import { broadcastTask } from './api-tasks.ts'
import { isQuorate, visibleFrom } from './cluster.ts'
import { type Ctx, type Endpoint, may, maybeText, mustHave, nodeParam, reply } from './endpoint.ts'
import { die, refuseParams } from './errors.ts'
import { releases } from './releases.ts'

export const version: Endpoint['handler'] = (ctx) => reply(releases[ctx.cluster.state.version])

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
    handler: (ctx) => reply(nodeBridges(ctx)),
  },
  {
    method: 'GET',
    path: '/nodes/{node}/certificates/info',
    proxied: true,
    parameters: nodeParam,
    handler: (ctx) => reply(nodeCertificates(ctx)),
  },
  {
    method: 'GET',
    path: '/nodes/{node}/time',
    proxied: true,
    parameters: nodeParam,
    permission: (ctx) => mustHave(ctx, `/nodes/${ctx.node}`, 'Sys.Audit'),
    handler: (ctx) => reply(nodeTime(ctx)),
  },
]

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
