import { DeleteCommand, type DynamoDBDocumentClient, PutCommand } from '@aws-sdk/lib-dynamodb'
import * as z from 'zod'
import { conditional, type Item } from './conditional.ts'
import type { Cluster } from './config.ts'
import { type From, pagesWhere } from './pages-where.ts'
import type { Place } from './record.ts'
import { createSlots, type Slots } from './slots.ts'
import { noteSuspects } from './suspects.ts'

/** A durable reservation: one item, one owner. Idempotent for its owner; never expires, so only a proof frees it. */
export const Claim = z.object({ partition: z.string(), sort: z.string(), owner: z.string() })
export type Claim = z.infer<typeof Claim>

export type Claims = Slots & {
  /** Reserves a VMID of a cluster. False when another uid has it. */
  takeVmid(cluster: string, vmid: number, owner: string): Promise<boolean>
  freeVmid(cluster: string, vmid: number, owner: string): Promise<void>
  /** VMIDs the owner has reserved. By index, so a claim made a moment ago may not show yet. */
  vmidsOf(owner: string): Promise<{ cluster: string; vmid: number }[]>
  /** Gives back everything of the owner but VMIDs, which take a proof each, and what is in the partition to be kept. */
  freeAllButVmids(owner: string, kept?: string): Promise<void>
  /** Whose turn it is to ask a guest agent of the node; a courtesy, so it lapses by itself. */
  takeAgentTurn(cluster: string, node: string, owner: string): Promise<boolean>
  freeAgentTurn(cluster: string, node: string, owner: string): Promise<void>
  /** Reserves an address of a cluster's network, unless another has it. Whose it is now; undefined when it was given back just then. */
  takeAddress(cluster: string, address: string, owner: string): Promise<string | undefined>
  freeAddress(cluster: string, address: string, owner: string): Promise<void>
  /** Notes something for gc to look at again: a seed or a disk that could not be reached. Its first look counts. */
  suspect(what: string, detail: Item): Promise<void>
}

const VMID = 'vmid#'
const isVmid = ({ partition }: Claim) => partition.startsWith(VMID)
const AGENT_TURN_MS = 30_000

// The named parts of conditions.
const unclaimed = 'attribute_not_exists(#owner)'
const ours = '#owner = :owner'
const lapsed = '#until < :now'

/** The queue of clones and destroys of a storage: Proxmox's storage lock lets about one through at a time and gives up after 10 s. */
export function slotPartition(place: Place, { storageShared }: Cluster): string {
  const node = storageShared ? '' : `#${place.node}`
  return `clone#${place.cluster}#${place.storage}${node}`
}

/** The places of a zone that may have so many proxies and no more. */
export const zonePartition = (zone: string) => `zone#${zone}`

/** Claims in their table: partition, sort, owner, with an index by owner. */
export function createClaims(options: {
  client: DynamoDBDocumentClient
  table: string
  now?: () => number
}): Claims {
  const { client, table, now = Date.now } = options

  /** Whose the claim is once it was asked for; undefined when its holder gave it back just then. */
  async function claimed(claim: Claim, lapse?: { until: number }): Promise<string | undefined> {
    const { partition, sort, owner } = claim
    const taken = await conditional(client, { table, key: { partition, sort } }, () =>
      client.send(
        new PutCommand({
          TableName: table,
          Item: { ...claim, ...lapse, claimedAt: now() },
          ConditionExpression: [unclaimed, ours, ...(lapse ? [lapsed] : [])].join(' OR '),
          ExpressionAttributeNames: { '#owner': 'owner', ...(lapse ? { '#until': 'until' } : {}) },
          ExpressionAttributeValues: { ':owner': owner, ...(lapse ? { ':now': now() } : {}) },
          ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
        }),
      ),
    )
    const holder = taken.done ? owner : taken.winner?.owner
    return typeof holder === 'string' ? holder : undefined
  }

  const take = async (claim: Claim, lapse?: { until: number }) =>
    (await claimed(claim, lapse)) === claim.owner

  /** Nothing happens when it is another's, or nobody's. */
  async function free({ partition, sort, owner }: Claim): Promise<void> {
    await conditional(client, { table, key: { partition, sort } }, () =>
      client.send(
        new DeleteCommand({
          TableName: table,
          Key: { partition, sort },
          ConditionExpression: `${unclaimed} OR ${ours}`,
          ExpressionAttributeNames: { '#owner': 'owner' },
          ExpressionAttributeValues: { ':owner': owner },
          ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
        }),
      ),
    )
  }

  const inPartition = (partition: string) => claimsWhere({ table }, ['partition', partition])
  const ofOwner = (owner: string) => claimsWhere({ table, index: 'byOwner' }, ['owner', owner])

  async function claimsWhere(from: From, key: [string, string]): Promise<Claim[]> {
    const claims: Claim[] = []
    // Written by `take` and by lib/slots.ts alone, in the shape of a claim.
    for await (const { Items = [] } of pagesWhere(client, from, key)) claims.push(...(Items as Claim[]))
    return claims
  }

  const vmidClaim = (cluster: string, vmid: number, owner: string) => ({
    partition: `${VMID}${cluster}`,
    sort: String(vmid),
    owner,
  })
  const agentClaim = (cluster: string, node: string, owner: string) => ({
    partition: `agent#${cluster}#${node}`,
    sort: '0',
    owner,
  })
  const addressClaim = (cluster: string, address: string, owner: string) => ({
    partition: `address#${cluster}#${address}`,
    sort: '0',
    owner,
  })

  return {
    ...createSlots({ client, table, now, take, free, inPartition }),

    takeVmid: (cluster, vmid, owner) => take(vmidClaim(cluster, vmid, owner)),
    freeVmid: (cluster, vmid, owner) => free(vmidClaim(cluster, vmid, owner)),

    async vmidsOf(owner) {
      const claims = (await ofOwner(owner)).filter(isVmid)
      return claims.map(({ partition, sort }) => ({
        cluster: partition.slice(VMID.length),
        vmid: Number(sort),
      }))
    },

    async freeAllButVmids(owner, kept) {
      for (const claim of await ofOwner(owner))
        if (!isVmid(claim) && claim.partition !== kept) await free(claim)
    },

    takeAgentTurn: (cluster, node, owner) =>
      take(agentClaim(cluster, node, owner), { until: now() + AGENT_TURN_MS }),
    freeAgentTurn: (cluster, node, owner) => free(agentClaim(cluster, node, owner)),

    takeAddress: (cluster, address, owner) => claimed(addressClaim(cluster, address, owner)),
    freeAddress: (cluster, address, owner) => free(addressClaim(cluster, address, owner)),

    suspect: noteSuspects({ client, table, now }),
  }
}
