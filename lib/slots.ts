import { type DynamoDBDocumentClient, PutCommand } from '@aws-sdk/lib-dynamodb'
import type { Claim } from './claims.ts'
import { conditional } from './conditional.ts'

export type Slots = {
  /**
   * Takes one of `limit` places, or keeps the one the owner has, stamped anew. One is left to those who wait, as long as the owner has
   * waited less than half as long as the eldest of them. `since` (ms of the epoch): when it began to wait.
   */
  takeSlot(partition: string, limit: number, owner: string, since?: number): Promise<boolean>
  /**
   * For who waits already: whether `takeSlot` is worth a try. Otherwise, whoever waits longest of those that ask is
   * the eldest, which lapses by itself. Without `since` one waits and is never the eldest.
   */
  queueForSlot(
    partition: string,
    limit: number,
    owner: string,
    since?: number,
  ): Promise<'open' | 'eldest' | 'full'>
  freeSlots(partition: string, owner: string): Promise<void>
}

/** A claim in a queue's partition: a place in it, or who has waited longest for one. */
type Queued = Claim & { since?: number; until?: number }

/** The sort of the eldest of those who wait. It asks about once a second, and renews this while it does. */
const ELDEST = 'eldest'
const ELDEST_MS = 15_000

/** Places in queues, among the claims; see lib/claims.ts, which lends `take`, `free`, `keep` and `inPartition`. */
export function createSlots(options: {
  client: DynamoDBDocumentClient
  table: string
  now: () => number
  take(claim: Claim): Promise<boolean>
  free(seen: Claim): Promise<boolean>
  keep(seen: Claim): Promise<Claim | undefined>
  inPartition(partition: string): Promise<Queued[]>
}): Slots {
  const { client, table, now, take, free, keep, inPartition } = options

  async function look(partition: string, limit: number, owner: string, since = now()) {
    const claims = await inPartition(partition)
    const eldest = claims.find(({ sort, until = 0 }) => sort === ELDEST && until >= now())
    const taken = new Set(claims.map(({ sort }) => sort))
    const open = Array.from({ length: limit }, (_, slot) => String(slot)).filter((slot) => !taken.has(slot))
    const isYoung = eldest?.since !== undefined && now() - since < (now() - eldest.since) / 2
    return {
      own: claims.find((claim) => claim.owner === owner && claim.sort !== ELDEST),
      open: isYoung ? open.slice(1) : open,
      eldest,
    }
  }

  /** False when one who has waited longer was faster. */
  async function standAsEldest(partition: string, owner: string, since: number): Promise<boolean> {
    const stood = await conditional(client, { table, key: { partition, sort: ELDEST } }, () =>
      client.send(
        new PutCommand({
          TableName: table,
          Item: { partition, sort: ELDEST, owner, since, until: now() + ELDEST_MS },
          ConditionExpression:
            'attribute_not_exists(#owner) OR #owner = :owner OR #until < :now OR #since > :since',
          ExpressionAttributeNames: { '#owner': 'owner', '#until': 'until', '#since': 'since' },
          ExpressionAttributeValues: { ':owner': owner, ':now': now(), ':since': since },
          ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
        }),
      ),
    )
    return stood.done
  }

  return {
    async takeSlot(partition, limit, owner, since) {
      const { own, open, eldest } = await look(partition, limit, owner, since)
      if (own) return (await keep(own)) !== undefined
      for (const sort of open) {
        if (!(await take({ partition, sort, owner }))) continue
        if (eldest?.owner === owner) await free(eldest)
        return true
      }
      return false
    },

    async queueForSlot(partition, limit, owner, since) {
      const { own, open, eldest } = await look(partition, limit, owner, since)
      if (own || open.length > 0) return 'open'
      const isEldest = eldest?.owner === owner
      if (isEldest && Number(eldest.until) > now() + ELDEST_MS / 2) return 'eldest'
      if (since === undefined || (!isEldest && eldest && Number(eldest.since) <= since)) return 'full'
      return (await standAsEldest(partition, owner, since)) ? 'eldest' : 'full'
    },

    async freeSlots(partition, owner) {
      for (const claim of await inPartition(partition)) if (claim.owner === owner) await free(claim)
    },
  }
}
