import type { Cluster } from '../../lib/config.ts'
import type {
  Bridge,
  Certificate,
  ClusterStatus,
  Expiry,
  ListedVm,
  NodeState,
  ProxmoxErrorCode,
  Storage,
  TemplateLook,
  Version,
} from '../../lib/proxmox/index.ts'
import { isProxmoxError } from '../../lib/proxmox/index.ts'

/** What was asked for, or why it is not known. */
export type Fact<T> = { known: true; value: T } | { known: false; code: ProxmoxErrorCode; reason: string }

export type EndpointFacts = {
  url: string
  node?: string | undefined
  version: Fact<Version>
  certificates: Fact<Certificate[]>
  /** Does this endpoint belong to the part of the cluster that may write? */
  status: Fact<ClusterStatus>
  nodes: Fact<NodeState[]>
}

export type TokenFacts = {
  /** Where it is kept. */
  source: string
  /** `user@realm!name`; undefined when there is none in its place. */
  id?: string | undefined
  /** Why its place could not be read. */
  unreadable?: string | undefined
  accepted?: Fact<Version>
  expiry?: Fact<Expiry | undefined>
}

/** True of the cluster as a whole, asked once. */
export type ClusterFacts = {
  name: string
  cluster: Cluster
  /** Nodes that proxies may be placed on. */
  nodes: readonly string[]
  endpoints: readonly EndpointFacts[]
  tokens: readonly TokenFacts[]
  pool?: Fact<boolean>
  /** Privileges of our token by ACL path. */
  privileges: ReadonlyMap<string, Fact<ReadonlySet<string>>>
  listed: Fact<ListedVm[]>
  claimed: readonly number[]
  /** Ranges that VMIDs are given out from, by whose they are. */
  ranges: readonly { whose: string; from: number; to: number }[]
}

export type TemplateFacts = {
  image: string
  vmid: number
  look: Fact<TemplateLook>
  /** Whether nothing in the cluster holds its number; asked only when the template itself shows nothing. */
  free?: Fact<boolean>
}

/** What is true of one node, asked of it alone. */
export type NodeFacts = {
  node: string
  /** As the cluster sees it; undefined when nobody could be asked. */
  state?: NodeState | undefined
  /** Our own clock when the node was asked for its, and when it had answered. */
  clock: Fact<{ node: number; askedAt: number; answeredAt: number }>
  bridges: Fact<Bridge[]>
  storages: Fact<Storage[]>
  templates: readonly TemplateFacts[]
}

/** Waits for an answer, of which a refusal is one too. Only what Proxmox or the way to it does is caught. */
export async function fact<T>(answer: Promise<T>): Promise<Fact<T>> {
  try {
    return { known: true, value: await answer }
  } catch (error) {
    if (isProxmoxError(error)) return { known: false, code: error.code, reason: error.message }
    throw error
  }
}

export const known = <T>(given: Fact<T> | undefined): T | undefined =>
  given?.known ? given.value : undefined

/** The call was not answered, or not in its time. */
export const isSilent = (given: Fact<unknown>) =>
  !given.known && ['Unreachable', 'Aborted', 'NodeUnknown'].includes(given.code)

/** The node's own API does not answer. What it is asked without any privilege tells: a refusal may be another node's. */
export const isSilentNode = ({ bridges, storages }: Pick<NodeFacts, 'bridges' | 'storages'>) =>
  isSilent(bridges) && isSilent(storages)

/** By the cluster's own word, else as the life cycle goes by where the token has no Sys.Audit: more than half of the nodes. */
export function isQuorate({ status, nodes }: Pick<EndpointFacts, 'status' | 'nodes'>): boolean {
  if (status.known) return status.value.quorate
  const states = known(nodes) ?? []
  return states.filter(({ online }) => online).length * 2 > states.length
}
