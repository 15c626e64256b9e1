import { DeleteCommand, type DynamoDBDocumentClient, PutCommand, UpdateCommand } from '@aws-sdk/lib-dynamodb'
import * as z from 'zod'
import { conditional, type Item } from './conditional.ts'

/** Something that looked left over when it was first seen, and is to be judged again. Expires, so that no look of long ago counts. */
export const Suspect = z
  .object({
    /** What it is about; one suspect a thing. */
    sort: z.string(),
    kind: z.string(),
    cluster: z.string().optional(),
    node: z.string().optional(),
    vmid: z.number().optional(),
    volume: z.string().optional(),
    /** Whose it was, when that is known: a disk is only ever deleted where it is. */
    uid: z.string().optional(),
    firstSeen: z.number(),
    /** Epoch seconds. */
    purgeAt: z.number(),
  })
  .transform(({ sort: key, ...rest }) => ({ key, ...rest }))
export type Suspect = z.infer<typeof Suspect>

export type Suspects = {
  /** Notes a first look. One that was noted before, and has not expired, stays as it is. */
  note(key: string, detail: Item): Promise<void>
  /** Puts off its expiry; nothing when it was cleared or noted anew meanwhile. */
  keep(suspect: Pick<Suspect, 'key' | 'firstSeen'>): Promise<void>
  /** It looks well again, or is gone; nothing when it was noted anew meanwhile. */
  clear(suspect: Pick<Suspect, 'key' | 'firstSeen'>): Promise<void>
}

export const SUSPECTS = 'suspect'
const SUSPECT_DAYS = 14

// The named parts of conditions.
const unknown = 'attribute_not_exists(#sort)'
const expired = '#purgeAt < :nowSeconds'
const sameLook = '#firstSeen = :firstSeen'

type Options = { client: DynamoDBDocumentClient; table: string; now?: () => number }

const keyOf = (sort: string) => ({ partition: SUSPECTS, sort })
const secondsOf = (ms: number) => Math.floor(ms / 1000)
const purgeAt = (now: number) => secondsOf(now) + SUSPECT_DAYS * 86_400

/** How the life cycles note what they had to leave behind; the rest is gc's. */
export function noteSuspects({ client, table, now = Date.now }: Options): Suspects['note'] {
  return async (key, detail) => {
    const at = now()
    await conditional(client, { table, key: keyOf(key) }, () =>
      client.send(
        new PutCommand({
          TableName: table,
          Item: { ...detail, ...keyOf(key), firstSeen: at, purgeAt: purgeAt(at) },
          ConditionExpression: `${unknown} OR ${expired}`,
          ExpressionAttributeNames: { '#sort': 'sort', '#purgeAt': 'purgeAt' },
          ExpressionAttributeValues: { ':nowSeconds': secondsOf(at) },
        }),
      ),
    )
  }
}

/** Suspects in the table of claims, each write conditional: two that look at once do not undo each other's look. */
export function createSuspects(options: Options): Suspects {
  const { client, table, now = Date.now } = options
  const names = { '#firstSeen': 'firstSeen' }
  return {
    note: noteSuspects(options),

    async keep({ key, firstSeen }) {
      await conditional(client, { table, key: keyOf(key) }, () =>
        client.send(
          new UpdateCommand({
            TableName: table,
            Key: keyOf(key),
            UpdateExpression: 'SET #purgeAt = :purgeAt',
            ConditionExpression: sameLook,
            ExpressionAttributeNames: { ...names, '#purgeAt': 'purgeAt' },
            ExpressionAttributeValues: { ':purgeAt': purgeAt(now()), ':firstSeen': firstSeen },
          }),
        ),
      )
    },

    async clear({ key, firstSeen }) {
      await conditional(client, { table, key: keyOf(key) }, () =>
        client.send(
          new DeleteCommand({
            TableName: table,
            Key: keyOf(key),
            ConditionExpression: sameLook,
            ExpressionAttributeNames: names,
            ExpressionAttributeValues: { ':firstSeen': firstSeen },
          }),
        ),
      )
    },
  }
}
