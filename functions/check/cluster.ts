import type { Cluster, Config } from '../../lib/config.ts'
import type { NodeState, Proxmox } from '../../lib/proxmox/index.ts'
import { approach, type Door, type Guide } from './approach.ts'
import type { Connections } from './connections.ts'
import type { Report } from './event.ts'
import { type ClusterFacts, isSilentNode, known, type NodeFacts } from './facts.ts'
import { lookTwice, type Patience } from './look-twice.ts'
import { type Around, judgeNode } from './node-verdict.ts'
import type { Ports } from './ports.ts'
import { type Allowance, checkProxies, type ProxiesOfNode, type ReadyRow, unknownProxies } from './proxies.ts'
import type { Found } from './report.ts'
import { lookAtCluster, lookAtNode } from './targets.ts'
import { judgeCluster } from './verdict.ts'

type Named = { name: string; cluster: Cluster }

export type Bounds = {
  ports: Ports
  connections: Connections
  allowance: Allowance
  /** Ready proxies whose row's address is in another's row too. */
  doubled: ReadonlySet<string>
  /** Fires at the end of the round. */
  end: AbortSignal
  budgetMs: number
}

/** Longest waits for one look at a target, of which there may be two; a round that has little time gives each its share. */
const LONGEST_MS = { endpoint: 4000, cluster: 8000, node: 12_000 }

/** One cluster: its endpoints and tokens, what is true of the whole of it, and each node by itself with its proxies. */
export async function checkCluster(named: Named, ready: readonly ReadyRow[], bounds: Bounds): Promise<Found> {
  const { ports, connections, doubled, end } = bounds
  const { name, cluster } = named
  const patience = (target: keyof typeof LONGEST_MS): Patience => {
    const ms = Math.min(LONGEST_MS[target], Math.floor(bounds.budgetMs / 4))
    return { ms, begin: () => AbortSignal.any([end, ports.expire(ms)]) }
  }
  const before = await ports.reports.of(name).latest()
  const { doors, guide, tokens, accepted } = await approach(cluster, {
    ports,
    connections,
    patience: patience('endpoint'),
  })
  const still = { name, cluster, nodes: nodesOf(named, ports.config), ranges: rangesOf(named, ports.config) }
  const endpoints = () => Promise.all(doors.map(({ looked }) => looked))
  if (!guide) {
    const facts = { ...still, ...nothing, tokens, endpoints: await endpoints() }
    const proxies = [unknownProxies(name, ready, before?.silent ?? {})]
    return { findings: judgeCluster(facts, [], ports.now()), proxies }
  }

  const through = (use: readonly Door['endpoint'][]) =>
    connections.open(cluster, { endpoints: use, tokens: accepted })
  const whole = await lookTwice(patience('cluster'), (signal) =>
    lookAtCluster(still, through([guide.endpoint]).with({ signal }), [guide.major], ports),
  )
  const placed = Map.groupBy(ready, (row) => standsOn(row, whole))
  const everywhere = [...new Set([...still.nodes, ...placed.keys()])]
  const looked = await Promise.all(
    everywhere.map(async (node) => {
      const proxmox = through(await waysTo(node, doors, guide))
      const facts = await factsOf(node, { guide, cluster, ports }, { proxmox, patience: patience('node') })
      const rows = placed.get(node) ?? []
      return { facts, proxies: await proxiesOf(facts, rows, { proxmox, cluster, before, doubled, bounds }) }
    }),
  )
  const facts: ClusterFacts = { ...still, ...whole, tokens, endpoints: await endpoints() }
  const configured = looked.map((one) => one.facts).filter(({ node }) => still.nodes.includes(node))
  const around = aroundOf(facts)
  return {
    findings: [
      ...judgeCluster(facts, configured, ports.now()),
      ...configured.flatMap((node) => judgeNode(node, around)),
    ],
    proxies: looked.map(({ proxies }) => proxies),
  }
}

const nothing = {
  privileges: new Map(),
  listed: { known: false, code: 'Unreachable', reason: 'nobody could be asked' },
  claimed: [],
} as const

/** Nodes that proxies may be placed on, or clones be made on. */
function nodesOf({ name, cluster }: Named, { zones }: Config): string[] {
  const placed = Object.values(zones)
    .filter((zone) => zone.cluster === name)
    .flatMap(({ nodes }) => nodes)
  return [...new Set([...placed, ...Object.values(cluster.images).flatMap((byNode) => Object.keys(byNode))])]
}

function rangesOf({ name, cluster }: Named, { zones }: Config): ClusterFacts['ranges'] {
  const own = Object.entries(zones).flatMap(([zone, { cluster: of, vmids }]) =>
    of === name && vmids ? [{ whose: `zone ${zone}`, ...vmids }] : [],
  )
  const all = Object.values(zones).filter((zone) => zone.cluster === name)
  const shared = all.length === 0 || all.some(({ vmids }) => vmids === undefined)
  return shared ? [{ whose: `cluster ${name}`, ...cluster.vmids }, ...own] : own
}

/** Where the cluster lists the proxy's VM: it may have moved since its row was written. */
function standsOn({ place }: ReadyRow, { listed }: Pick<ClusterFacts, 'listed'>): string {
  return known(listed)?.find(({ vmid }) => vmid === place.vmid)?.node ?? place.node
}

/** A node waits for its own endpoint, and for no other's. */
async function waysTo(node: string, doors: readonly Door[], { endpoint }: Guide) {
  const own = doors.find((door) => door.endpoint.node === node)
  if (!own || own.endpoint === endpoint || !(await own.looked).version.known) return [endpoint]
  return [own.endpoint, endpoint]
}

async function factsOf(
  node: string,
  { guide, cluster, ports }: { guide: Guide; cluster: Cluster; ports: Ports },
  { proxmox, patience }: { proxmox: Proxmox; patience: Patience },
): Promise<NodeFacts> {
  // An endpoint that could not tell of its nodes is no proof against any of them.
  const state: NodeState | undefined = guide.states
    ? guide.states.find(({ name }) => name === node)
    : { name: node, online: true }
  if (state?.online) {
    const look = (signal: AbortSignal) => lookAtNode(cluster, node, proxmox.with({ signal }), ports)
    return { ...(await lookTwice(patience, look, isSilentNode)), state }
  }
  const unasked = { known: false, code: 'Unreachable', reason: 'not asked' } as const
  return { node, state, clock: unasked, bridges: unasked, storages: unasked, templates: [] }
}

async function proxiesOf(
  facts: NodeFacts,
  rows: readonly ReadyRow[],
  how: {
    proxmox: Proxmox
    cluster: Cluster
    before: Report | undefined
    doubled: ReadonlySet<string>
    bounds: Bounds
  },
): Promise<ProxiesOfNode> {
  const { proxmox, cluster, before, doubled, bounds } = how
  const { ports, end: signal, allowance } = bounds
  const { node } = facts
  const silent = before?.silent ?? {}
  if (isSilentNode(facts)) return unknownProxies(node, rows, silent)
  const vms = proxmox.with({ signal })
  const last = { silent, cursor: before?.cursors[node] }
  return checkProxies(node, rows, { vms, cluster, signal, doubled, before: last, allowance }, ports)
}

/** What a node's facts are held against. */
function aroundOf({ cluster, privileges }: ClusterFacts): Around {
  const holds = (path: string, ...any: string[]) =>
    any.some((privilege) => known(privileges.get(path))?.has(privilege))
  const bridge = `/sdn/zones/localnetwork/${cluster.bridge}`
  return {
    cluster,
    maySee: (storage) => holds(`/storage/${storage}`, 'Datastore.Audit', 'Datastore.AllocateSpace'),
    mayUseBridge: holds(bridge, 'SDN.Use') || holds(`${bridge}/${cluster.vlan}`, 'SDN.Use'),
  }
}
