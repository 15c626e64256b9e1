import type { Cluster } from '../../lib/config.ts'
import { asFailing } from '../../lib/failure.ts'
import type { Provider } from '../../lib/proxmox/index.ts'
import type { Connections } from './connections.ts'
import {
  type ClusterFacts,
  type EndpointFacts,
  fact,
  known,
  type NodeFacts,
  type TemplateFacts,
  type TokenFacts,
} from './facts.ts'
import type { Endpoint, Ports } from './ports.ts'
import { pathsOf, wantedPrivileges } from './privileges.ts'

/** One endpoint, asked by itself: does it answer, as whom, and what does it see of its cluster? */
export async function lookAtEndpoint(
  cluster: Cluster,
  endpoint: Endpoint,
  connections: Connections,
  signal: AbortSignal,
): Promise<EndpointFacts> {
  const { url, node } = endpoint
  const vms = connections.open(cluster, { endpoints: [endpoint] }).with({ signal })
  const version = await fact(vms.version())
  if (!version.known) return { url, node, version, certificates: version, status: version, nodes: version }
  const [certificates, status, nodes] = await Promise.all([
    // The node that answers calls itself localhost too.
    fact(vms.certificatesOf(node ?? 'localhost')),
    fact(vms.clusterStatus()),
    fact(vms.nodes()),
  ])
  return { url, node, version, certificates, status, nodes }
}

/** A token, tried by itself: the other one would speak for it. */
export async function lookAtToken(
  cluster: Cluster,
  source: { ssm: string } | { file: string },
  endpoints: readonly Endpoint[],
  { ports, connections, signal }: { ports: Ports; connections: Connections; signal: AbortSignal },
): Promise<{ facts: TokenFacts; value?: string }> {
  const name = 'file' in source ? `file ${source.file}` : `parameter ${source.ssm}`
  let value: string | undefined
  try {
    value = await ports.secrets.read(source, { fresh: true })
  } catch (error) {
    return { facts: { source: name, unreadable: asFailing(error).message } }
  }
  if (value === undefined || value === '') return { facts: { source: name } }
  // What has another form is not shown, not even in part: it may be the bare secret.
  const id = /^([^\s=!]+@[^\s=!]+![^\s=!]+)=./.exec(value)?.[1]
  if (id === undefined) {
    return { facts: { source: name, unreadable: `${name} does not hold user@realm!name=secret` } }
  }
  if (endpoints.length === 0) return { facts: { source: name, id } }
  const vms = connections.open(cluster, { endpoints, tokens: [value] }).with({ signal })
  const accepted = await fact(vms.version())
  if (!accepted.known) return { facts: { source: name, id, accepted } }
  return { facts: { source: name, id, accepted, expiry: await fact(vms.expiryOf(id)) }, value }
}

/** What is true of the whole cluster, asked once, at an endpoint that answers. */
export async function lookAtCluster(
  named: Pick<ClusterFacts, 'name' | 'cluster' | 'nodes' | 'ranges'>,
  vms: Provider,
  majors: readonly number[],
  ports: Pick<Ports, 'claimedVmids'>,
): Promise<Pick<ClusterFacts, 'pool' | 'privileges' | 'listed' | 'claimed'>> {
  const { pool } = named.cluster
  const paths = pathsOf(wantedPrivileges(majors, named))
  const privileges = Promise.all(
    paths.map(async (path) => [path, await fact(vms.permissions(path))] as const),
  )
  const [hasPool, held, listed, claimed] = await Promise.all([
    pool === undefined ? undefined : fact(vms.hasPool(pool)),
    privileges,
    fact(vms.listVms()),
    ports.claimedVmids(named.name),
  ])
  return { privileges: new Map(held), listed, claimed, ...(hasPool ? { pool: hasPool } : {}) }
}

/** One node: what proxies find there. */
export async function lookAtNode(
  cluster: Cluster,
  node: string,
  vms: Provider,
  { now }: Pick<Ports, 'now'>,
): Promise<Omit<NodeFacts, 'state'>> {
  const askedAt = now()
  const clock = vms.clockOf(node).then((told) => ({ node: told, askedAt, answeredAt: now() }))
  const [clockFact, bridges, storages, templates] = await Promise.all([
    fact(clock),
    fact(vms.bridgesOf(node)),
    fact(vms.storages(node)),
    Promise.all(templatesOn(cluster, node).map((template) => lookAtTemplate(template, node, vms))),
  ])
  return { node, clock: clockFact, bridges, storages, templates }
}

async function lookAtTemplate(
  { image, vmid }: { image: string; vmid: number },
  node: string,
  vms: Provider,
): Promise<TemplateFacts> {
  const look = await fact(vms.templateAt(node, vmid))
  // Who may clone a template need not be able to read it; whether its number is taken is told to everybody.
  if (known(look)?.kind !== 'hidden') return { image, vmid, look }
  return { image, vmid, look, free: await fact(vms.isFree(vmid)) }
}

export function templatesOn({ images }: Pick<Cluster, 'images'>, node: string) {
  return Object.entries(images).flatMap(([image, byNode]) => {
    const vmid = byNode[node]
    return vmid === undefined ? [] : [{ image, vmid }]
  })
}
