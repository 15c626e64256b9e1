import { randomUUID } from 'node:crypto'
import { DeleteCommand, type DynamoDBDocumentClient, GetCommand, PutCommand } from '@aws-sdk/lib-dynamodb'
import * as z from 'zod'
import { conditional, type Item } from './conditional.ts'
import type { Cluster } from './config.ts'
import { type From, pagesWhere } from './pages-where.ts'
import type { Place, Row } from './record.ts'
import { createSlots, type Slots } from './slots.ts'
import { noteSuspects } from './suspects.ts'

/** A durable reservation, as it was seen: one item, one owner. It never expires, so only a proof frees it. */
export const Claim = z.object({
  partition: z.string(),
  sort: z.string(),
  owner: z.string(),
  /** Drawn at each taking: tells it from an earlier and a later claim of the same owner. Earlier versions gave none. */
  stamp: z.string().optional(),
  /** Of a VMID: the row that deletes the VM which a lost row of the owner left there, and that alone gives it back. */
  leaving: z.string().optional(),
})
export type Claim = z.infer<typeof Claim>

export type Claims = Slots & {
  /** Reserves a VMID of a cluster that nobody has; whoever asks may have it already. */
  takeVmid(cluster: string, vmid: number, owner: string): Promise<Claim | 'its own' | 'another’s'>
  /** The claim on a VMID as it is now. */
  vmidClaim(cluster: string, vmid: number): Promise<Claim | undefined>
  /**
   * Leaves the claim on a VMID of a lost row to the row `keeper`, which deletes the VM there. `seen`: the claim as it was
   * when the VM was found to be nobody's; undefined when there was none. False when it is not so any more.
   */
  leaveVmid(number: Numbered, owner: string, keeper: string, seen: Claim | undefined): Promise<boolean>
  /** Everything the owner has reserved. By index, so that what was done a moment ago may not show yet. */
  claimsOf(owner: string): Promise<Claim[]>
  /** Gives back a claim as it was seen. False when its owner has taken it anew since: then it stays, and is to be looked at again. */
  free(seen: Claim): Promise<boolean>
  /** Stamps a claim anew, so that nobody gives it back who saw it before. Undefined when it is not as it was seen. */
  keep(seen: Claim): Promise<Claim | undefined>
  /** Whose turn it is to ask a guest agent of the node; a courtesy, so it lapses by itself. */
  takeAgentTurn(cluster: string, node: string, owner: string): Promise<boolean>
  freeAgentTurn(cluster: string, node: string, owner: string): Promise<void>
  /** Reserves an address of a cluster's network, unless another has it. Whose it is now; undefined when it was given back just then. */
  takeAddress(cluster: string, address: string, owner: string): Promise<string | undefined>
  /** Notes something for gc to look at again: a seed or a disk that could not be reached. Its first look counts. */
  suspect(what: string, detail: Item): Promise<void>
}

export type Numbered = { cluster: string; vmid: number }

const VMID = 'vmid#'
const ADDRESS = 'address#'
const CLONE = 'clone#'
const AGENT_TURN_MS = 30_000

// The named parts of conditions.
const unclaimed = 'attribute_not_exists(#owner)'
const ours = '#owner = :owner'
const lapsed = '#until < :now'
const unstamped = 'attribute_not_exists(#stamp)'
/** A stamp is drawn once, so it tells the owner as well. */
const stampedSo = '#stamp = :stamp'

/** The number that a claim is on; undefined when it is on something else. */
export function numberOf({ partition, sort }: Pick<Claim, 'partition' | 'sort'>): Numbered | undefined {
  if (!partition.startsWith(VMID)) return undefined
  return { cluster: partition.slice(VMID.length), vmid: Number(sort) }
}

/** The row that a claim is for, and that gives it back. */
export const keeperOf = ({ owner, leaving }: Claim) => leaving ?? owner

export const vmidPartition = (cluster: string) => `${VMID}${cluster}`
export const addressPartition = (cluster: string, address: string) => `${ADDRESS}${cluster}#${address}`
export const isOfAddress = ({ partition }: Pick<Claim, 'partition'>) => partition.startsWith(ADDRESS)

/** Whether a step works in a place of its storage's queue. */
export const needsSlot = (step: Row['step']) => step === 'clone' || step === 'destroy'
export const isOfSlot = ({ partition }: Pick<Claim, 'partition'>) => partition.startsWith(CLONE)

/** The queue of clones and destroys of a storage: Proxmox's storage lock lets about one through at a time and gives up after 10 s. */
export function slotPartition(place: Place, { storageShared }: Cluster): string {
  const node = storageShared ? '' : `#${place.node}`
  return `${CLONE}${place.cluster}#${place.storage}${node}`
}

/** The places of a zone that may have so many proxies and no more. */
export const zonePartition = (zone: string) => `zone#${zone}`

/** Claims in their table: partition, sort, owner, with an index by owner. */
export function createClaims(options: {
  client: DynamoDBDocumentClient
  table: string
  now?: () => number
  newStamp?: () => string
}): Claims {
  const { client, table, now = Date.now, newStamp = randomUUID } = options
  const keyOf = ({ partition, sort }: Claim) => ({ partition, sort })

  /** Writes a claim on a condition; what stood in the way, if something did. A write that the SDK repeated fails at its own. */
  async function put(claim: Claim & { until?: number }, condition: string, values: Item) {
    const item = { ...claim, claimedAt: now() }
    const written = await conditional(client, { table, key: keyOf(claim) }, () =>
      client.send(new PutCommand({ TableName: table, Item: item, ...when(condition, values) })),
    )
    if (written.done) return undefined
    const { winner } = written
    return claim.stamp !== undefined && winner?.stamp === claim.stamp ? undefined : { winner }
  }

  /** Whose the claim is once it was asked for; undefined when its holder gave it back just then. */
  async function claimed(claim: Claim, until?: number): Promise<string | undefined> {
    const { owner } = claim
    const lost =
      until === undefined
        ? await put({ ...claim, stamp: newStamp() }, `${unclaimed} OR ${ours}`, { ':owner': owner })
        : await put({ ...claim, until }, `${unclaimed} OR ${ours} OR ${lapsed}`, {
            ':owner': owner,
            ':now': now(),
          })
    const holder = lost ? lost.winner?.owner : owner
    return typeof holder === 'string' ? holder : undefined
  }

  const take = async (claim: Claim, until?: number) => (await claimed(claim, until)) === claim.owner

  async function free(seen: Claim): Promise<boolean> {
    const freed = await conditional(client, { table, key: keyOf(seen) }, () =>
      client.send(new DeleteCommand({ TableName: table, Key: keyOf(seen), ...asSeen(seen) })),
    )
    return freed.done || freed.winner?.owner !== seen.owner
  }

  async function keep(seen: Claim): Promise<Claim | undefined> {
    const claim = { ...seen, stamp: newStamp() }
    const [condition, values] = likeSeen(seen)
    return (await put(claim, condition, values)) ? undefined : claim
  }

  const inPartition = (partition: string) => claimsWhere({ table }, ['partition', partition])
  const claimsOf = (owner: string) => claimsWhere({ table, index: 'byOwner' }, ['owner', owner])

  async function claimsWhere(from: From, key: [string, string]): Promise<Claim[]> {
    const claims: Claim[] = []
    // Written by `put` and by lib/slots.ts alone, in the shape of a claim.
    for await (const { Items = [] } of pagesWhere(client, from, key)) claims.push(...(Items as Claim[]))
    return claims
  }

  const onVmid = (cluster: string, vmid: number, owner: string): Claim => ({
    partition: vmidPartition(cluster),
    sort: String(vmid),
    owner,
  })
  const onAgent = (cluster: string, node: string, owner: string): Claim => ({
    partition: `agent#${cluster}#${node}`,
    sort: '0',
    owner,
  })

  return {
    ...createSlots({ client, table, now, take, free, keep, inPartition }),

    async takeVmid(cluster, vmid, owner) {
      const claim = { ...onVmid(cluster, vmid, owner), stamp: newStamp() }
      const lost = await put(claim, unclaimed, {})
      if (!lost) return claim
      return lost.winner?.owner === owner ? 'its own' : 'another’s'
    },

    async vmidClaim(cluster, vmid) {
      const Key = keyOf(onVmid(cluster, vmid, ''))
      const { Item: item } = await client.send(
        new GetCommand({ TableName: table, Key, ConsistentRead: true }),
      )
      // As in `claimsWhere`.
      return item as Claim | undefined
    },

    async leaveVmid({ cluster, vmid }, owner, keeper, seen) {
      // A keeper that holds the claim itself had it from an earlier version.
      if (seen && seen.owner !== owner && seen.owner !== keeper) return false
      const claim = { ...onVmid(cluster, vmid, owner), leaving: keeper, stamp: newStamp() }
      const [condition, values] = seen ? likeSeen(seen) : [unclaimed, {}]
      return (await put(claim, condition, values)) === undefined
    },

    claimsOf,
    free,
    keep,

    takeAgentTurn: (cluster, node, owner) => take(onAgent(cluster, node, owner), now() + AGENT_TURN_MS),
    async freeAgentTurn(cluster, node, owner) {
      await free(onAgent(cluster, node, owner))
    },

    takeAddress: (cluster, address, owner) =>
      claimed({ partition: addressPartition(cluster, address), sort: '0', owner }),

    suspect: noteSuspects({ client, table, now }),
  }
}

/** That a claim is as it was seen, with what the condition compares. */
const likeSeen = ({ owner, stamp }: Claim): [condition: string, values: Item] =>
  stamp === undefined ? [`${ours} AND ${unstamped}`, { ':owner': owner }] : [stampedSo, { ':stamp': stamp }]

const asSeen = (seen: Claim) => when(...likeSeen(seen))

/** A condition with the names it needs. */
function when(condition: string, values: Item) {
  const names = ['owner', 'until', 'stamp'].filter((name) => condition.includes(`#${name}`))
  return {
    ConditionExpression: condition,
    ExpressionAttributeNames: Object.fromEntries(names.map((name) => [`#${name}`, name])),
    ...(Object.keys(values).length > 0 ? { ExpressionAttributeValues: values } : {}),
    ReturnValuesOnConditionCheckFailure: 'ALL_OLD' as const,
  }
}
