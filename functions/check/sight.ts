import type { Cluster } from '../../lib/config.ts'
import { Failure } from '../../lib/failure.ts'
import { type Ownership, ownership } from '../../lib/mark.ts'
import { HOLD_TAG } from '../../lib/names.ts'
import { usableAddresses } from '../../lib/pick-address.ts'
import type { ProbeResult } from '../../lib/probe.ts'
import { isProxmoxError, type Provider, type VmStatus } from '../../lib/proxmox/index.ts'
import type { Place, Row } from '../../lib/record.ts'
import type { Ports } from './ports.ts'

/** What was seen where a ready proxy is said to be. */
export type Sight =
  /** Nothing was learnt: its node does not answer, or the moment is not one to judge by. */
  | { kind: 'unknown'; reason: string }
  /** Something holds the number, and our token may not see it. */
  | { kind: 'hidden' }
  | { kind: 'gone'; instead: 'nothing' | 'a container' | 'another’s VM' }
  /** Ours, or as good as. */
  | {
      kind: 'vm'
      node: string
      owner: Exclude<Ownership['kind'], 'foreign' | 'nameless'>
      held: boolean
      lock?: string | undefined
      status: VmStatus
      /** Only of a running VM. */
      probe?: ProbeResult | undefined
      /** Where the guest says its NIC is; only when it was asked, and answered. */
      addresses?: readonly string[] | undefined
    }

export type Looking = {
  /** Where the cluster lists the VM, or where its row has it. */
  node: string
  vms: Provider
  cluster: Cluster
  signal: AbortSignal
  /** Rows whose address another row has too: an answer there may be another's. */
  doubled: ReadonlySet<string>
  agents: AgentLine
}

/** Guest agents of one node are asked one after the other, and no more of them once too many kept silent. */
export type AgentLine = { silenceLeft: number; last: Promise<unknown> }

const ASKER = 'check'

/** Looks at a ready proxy from outside inwards: its VM, its power, its answer, its address. Changes nothing. */
export async function look(
  row: Row & { place: Place },
  looking: Looking,
  ports: Pick<Ports, 'config' | 'secrets' | 'probe' | 'agents' | 'now'>,
): Promise<Sight> {
  const { vms, node } = looking
  const { vmid } = row.place
  try {
    const found = await vms.look({ node, vmid })
    if (found.kind === 'unknown') return { kind: 'unknown', reason: found.reason }
    if (found.kind === 'hidden') return { kind: 'hidden' }
    if (found.kind !== 'vm') {
      if ((row.unsettledUntil ?? 0) > ports.now()) return settling
      return { kind: 'gone', instead: found.kind === 'container' ? 'a container' : 'nothing' }
    }
    const owner = ownership(found.config, row, ports.config.deployment).kind
    if (owner === 'nameless') return { kind: 'unknown', reason: 'a VM is being made at its number' }
    if (owner === 'foreign') return { kind: 'gone', instead: 'another’s VM' }
    const vm = { node: found.node, vmid }
    const status = await vms.status(vm)
    const held = found.config.tags.has(HOLD_TAG)
    const seen = { kind: 'vm', node: found.node, owner, held, lock: found.config.lock, status } as const
    return status.running ? { ...seen, ...(await listen(row, vm, looking, ports)) } : seen
  } catch (error) {
    // Its node went silent, it moved between two calls, a password could not be read: the next round sees.
    if (isProxmoxError(error) || error instanceof Failure) return { kind: 'unknown', reason: error.message }
    throw error
  }
}

const settling: Sight = { kind: 'unknown', reason: 'a call that was not answered may still run' }

/** Does it answer as a proxy? Where that proves nothing, or it does not, the guest is asked where it is. */
async function listen(
  row: Row,
  vm: { node: string; vmid: number },
  looking: Looking,
  ports: Pick<Ports, 'config' | 'secrets' | 'probe' | 'agents'>,
): Promise<{ probe?: ProbeResult | undefined; addresses?: readonly string[] | undefined }> {
  const { config } = ports
  const probe = await ask(row, looking, ports)
  const proves = config.verify.probe === 'http' && probe?.kind === 'answers' && !looking.doubled.has(row.uid)
  if (proves) return { probe }
  return { probe, addresses: await whereIs(row, vm, looking, ports) }
}

async function ask(
  { address, spec }: Row,
  { signal }: Looking,
  { config, probe, secrets }: Pick<Ports, 'config' | 'secrets' | 'probe'>,
): Promise<ProbeResult | undefined> {
  const { probe: kind, probeUrl: url } = config.verify
  if (kind === 'none' || address === undefined || !spec) return undefined
  const { port, auth } = spec.proxy
  const password = auth && (await secrets.parameter(auth.passwordParameter))
  const credentials = auth && password !== undefined ? { username: auth.username, password } : undefined
  return probe[kind]({ host: address, port, url, signal, ...(credentials && { credentials }) })
}

/** What the guest agent tells, once it is its turn; undefined when it could not be asked or told nothing. */
function whereIs(
  row: Row,
  vm: { node: string; vmid: number },
  looking: Looking,
  ports: Pick<Ports, 'agents'>,
): Promise<readonly string[] | undefined> {
  const asked = looking.agents.last.then(() => askAgent(row, vm, looking, ports))
  looking.agents.last = asked.catch(() => undefined) // Its own caller hears of it.
  return asked
}

async function askAgent(
  { mac, place }: Row,
  vm: { node: string; vmid: number },
  { vms, cluster, agents: line }: Looking,
  { agents }: Pick<Ports, 'agents'>,
): Promise<readonly string[] | undefined> {
  if (mac === undefined || !place || line.silenceLeft <= 0) return undefined
  if (!(await agents.takeAgentTurn(place.cluster, vm.node, ASKER))) return undefined
  try {
    return usableAddresses(await vms.interfaces(vm), mac, cluster)
  } catch (error) {
    if (!isProxmoxError(error)) throw error
    line.silenceLeft -= 1
    return undefined
  } finally {
    await agents.freeAgentTurn(place.cluster, vm.node, ASKER)
  }
}

/** Rows that share an address with another one of their cluster. */
export function doubledAddresses(rows: readonly Row[]): ReadonlySet<string> {
  const byAddress = Map.groupBy(
    rows.filter(({ address }) => address !== undefined),
    ({ address, place }) => `${place?.cluster} ${address}`,
  )
  return new Set(
    [...byAddress.values()]
      .map((same) => new Set(same.map(({ uid }) => uid)))
      .flatMap((uids) => (uids.size > 1 ? [...uids] : [])),
  )
}
