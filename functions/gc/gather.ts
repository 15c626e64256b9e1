import { atMost } from '../../lib/at-most.ts'
import { type Claim, isOfAddress, keeperOf } from '../../lib/claims.ts'
import type { Clusters } from '../../lib/clusters.ts'
import type { Config } from '../../lib/config.ts'
import type { Inventory, RowSummary } from '../../lib/inventory.ts'
import type { Invocation } from '../../lib/life-cycle.ts'
import { isProxmoxError, type ListedVm, type Provider } from '../../lib/proxmox/index.ts'
import { keyOf } from '../delete/event.ts'
import type { Skipped } from './event.ts'
import { isSpare } from './find-claims.ts'
import { lacksTags } from './find-vms.ts'
import { lookRound, type Seen } from './look-round.ts'
import { inRange, mayBeOurs, type Rules } from './rules.ts'
import { readSeed, sightOf } from './sight.ts'
import {
  type ClusterView,
  indexRows,
  isLive,
  type Rows,
  type Sight,
  type Surroundings,
  type World,
} from './world.ts'

export type Sources = {
  config: Config
  rules: Rules
  clusters: Clusters<Provider>
  inventory: Inventory
  now(): number
}

/** One of three workers of each node is all that gc takes for reading configurations. */
const READS_AT_ONCE = 8

/**
 * Lists what there is, and then what the tables say. The order makes it safe against a proxy that is being made right now:
 * a row is there before its claim, a claim before its clone, a seed's name in the row before the seed, and a deleted row
 * stays as a tombstone. So of whatever was seen in a cluster, the claims and rows read afterwards tell whose it is. Rows
 * are listed by an index that is a moment behind, so each uid that a claim, a seed or a mark names and the list does not
 * is asked for in the table itself. Only VMs that no row accounts for are looked into, and the rows of their marks are
 * read afresh.
 * @throws when the tables could not be read whole: then nothing can be called left over
 */
export async function gather(
  sources: Sources,
  invocation: Invocation,
): Promise<{ world: World; skipped: Skipped[] }> {
  const { config, rules, clusters, inventory, now } = sources
  const seen = await Promise.all(
    Object.entries(config.clusters).map(([name, cluster]) => {
      const vms = providerOf(clusters, name, invocation)
      return lookRound({ name, cluster, deployment: rules.deployment, vms })
    }),
  )
  const { claims, suspects } = await inventory.claims()
  const rows = new Map((await inventory.rows()).map((row) => [row.uid, row]))
  const learn = async (uids: readonly string[]) => {
    for (const row of await inventory.rowsOf(uids)) rows.set(row.uid, row)
  }
  const named = [...claims.flatMap(ownerOf), ...seen.flatMap((one) => seedOwners(one, rules))]
  const unlisted = named.filter((uid) => !rows.has(uid))
  await learn([...unlisted, ...haveSeveralAddresses(claims), ...seemToBeElsewhere(claims, rows)])
  const index = indexRows([...rows.values()])
  const looked = await Promise.all(
    seen.flatMap(({ cluster }) =>
      cluster ? [lookInto(cluster, index, rules, providerOf(clusters, cluster.name, invocation))] : [],
    ),
  )
  const views = looked.map(({ view }) => view)
  await learn(views.flatMap(namedByMarks))
  const skipped = [...seen.flatMap((one) => one.skipped), ...looked.flatMap((one) => one.skipped)]
  return { world: { now: now(), rows: [...rows.values()], claims, suspects, clusters: views }, skipped }
}

function providerOf(clusters: Clusters<Provider>, name: string, invocation: Invocation): Provider {
  const vms = clusters.named(name, invocation)
  if (!vms) throw new Error(`the cluster ${name} is not configured`)
  return vms
}

/** Reads the configurations of VMs that may be ours and stand where no row says. */
async function lookInto(
  cluster: Surroundings,
  rows: Rows,
  rules: Rules,
  vms: Pick<Provider, 'look' | 'isFree'>,
): Promise<{ view: ClusterView; skipped: Skipped[] }> {
  const sights = new Map<number, Sight>()
  const unread = new Set<number>()
  const skipped: Skipped[] = []
  const silent = new Set(cluster.nodes.flatMap((node) => (node.silent ? [node.name] : [])))
  const candidates = cluster.vms.filter((vm) => isWorthALook(vm, cluster.name, rows, rules))
  await atMost(READS_AT_ONCE, candidates, async ({ node, vmid }) => {
    if (silent.has(node)) return void unread.add(vmid)
    try {
      const look = await vms.look({ node, vmid })
      if (look.kind === 'vm') sights.set(vmid, sightOf(look.config, vmid, rules.deployment))
      else if (look.kind === 'hidden' || look.kind === 'unknown') unread.add(vmid)
    } catch (error) {
      if (!isProxmoxError(error)) throw error
      unread.add(vmid)
      if (isProxmoxError(error, 'Unreachable', 'NodeUnknown', 'Aborted')) silent.add(node)
      skipped.push({ cluster: cluster.name, node, reason: `VM ${vmid}: ${error.message}` })
    }
  })
  const nodes = cluster.nodes.map(({ name }) => ({ name, silent: silent.has(name) }))
  const hidden = await hiddenNumbers(cluster, rows, rules, vms)
  return { view: { ...cluster, nodes, sights, unread, hidden }, skipped }
}

/** Whether a number is free is told to everybody; where it is not told now, the disk is looked at once more before anybody hears of it. */
async function hiddenNumbers(
  cluster: Surroundings,
  rows: Rows,
  rules: Rules,
  vms: Pick<Provider, 'isFree'>,
): Promise<ReadonlySet<number>> {
  const listed = new Set(cluster.vms.map(({ vmid }) => vmid))
  const borne = new Set(
    cluster.disks.flatMap(({ volumes }) => volumes.flatMap(({ vmid }) => (vmid === undefined ? [] : [vmid]))),
  )
  const odd = [...borne].filter(
    (vmid) =>
      !listed.has(vmid) && !rows.byPlace.has(`${cluster.name}/${vmid}`) && inRange(rules, cluster.name, vmid),
  )
  const held = await atMost(READS_AT_ONCE, odd, async (vmid) => {
    try {
      return !(await vms.isFree(vmid))
    } catch (error) {
      if (!isProxmoxError(error)) throw error
      return false
    }
  })
  return new Set(odd.filter((_, index) => held[index]))
}

function isWorthALook(vm: ListedVm, cluster: string, rows: Rows, rules: Rules): boolean {
  if (!mayBeOurs(rules, cluster, vm)) return false
  const row = rows.byPlace.get(`${cluster}/${vm.vmid}`)
  return !row || (row.phase === 'Ready' && lacksTags(vm, { rules }))
}

/** Turns to ask a guest agent lapse by themselves. */
const ownerOf = (claim: Claim) => (claim.partition.startsWith('agent#') ? [] : [claim.owner, keeperOf(claim)])

/** By an index that is a moment behind. */
const seemToBeElsewhere = (claims: readonly Claim[], rows: ReadonlyMap<string, RowSummary>) =>
  claims.flatMap((claim) => {
    const row = rows.get(keeperOf(claim))
    return isLive(row) && isSpare(claim, row) ? [row.uid] : []
  })

/** Which of them a proxy is at, its row tells. */
function haveSeveralAddresses(claims: readonly Claim[]): string[] {
  const owners = Map.groupBy(claims.filter(isOfAddress), ({ owner }) => owner)
  return [...owners].flatMap(([owner, own]) => (own.length > 1 ? [owner] : []))
}

const seedOwners = ({ cluster }: Seen, { deployment }: Rules) =>
  (cluster?.seeds ?? []).flatMap(({ volumes }) =>
    volumes.flatMap(({ volid }) => readSeed(volid, deployment)?.uid ?? []),
  )

/** The owner of a VM, and the row that would be its own if it is being deleted as an orphan. */
const namedByMarks = ({ name, sights }: ClusterView) =>
  [...sights].flatMap(([vmid, sight]) => {
    if (sight.kind !== 'ours') return []
    const { uid } = sight.mark
    return [uid, keyOf({ type: 'Orphan', cluster: name, vmid, uid })]
  })
