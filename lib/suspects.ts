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
export const SUSPECT_DAYS = 14

// The named parts of conditions.
const unknown = 'attribute_not_exists(#sort)'
const expired = '#purgeAt < :nowSeconds'
const sameLook = '#firstSeen = :firstSeen'

/** Suspects in the table of claims, each write conditional: two that look at once do not undo each other's look. */
export function createSuspects(options: {
  client: DynamoDBDocumentClient
  table: string
  now?: () => number
}): Suspects {
  const { client, table, now = Date.now } = options
  const keyOf = (sort: string) => ({ partition: SUSPECTS, sort })
  const nowSeconds = () => Math.floor(now() / 1000)
  const purgeAt = () => nowSeconds() + SUSPECT_DAYS * 86_400
  const unless = (key: string, write: () => Promise<unknown>) =>
    conditional(client, { table, key: keyOf(key) }, write)

  return {
    async note(key, detail) {
      const item = { ...detail, ...keyOf(key), firstSeen: now(), purgeAt: purgeAt() }
      await unless(key, () =>
        client.send(
          new PutCommand({
            TableName: table,
            Item: item,
            ConditionExpression: `${unknown} OR ${expired}`,
            ExpressionAttributeNames: { '#sort': 'sort', '#purgeAt': 'purgeAt' },
            ExpressionAttributeValues: { ':nowSeconds': nowSeconds() },
          }),
        ),
      )
    },

    async keep({ key, firstSeen }) {
      await unless(key, () =>
        client.send(
          new UpdateCommand({
            TableName: table,
            Key: keyOf(key),
            UpdateExpression: 'SET #purgeAt = :purgeAt',
            ConditionExpression: sameLook,
            ExpressionAttributeNames: { '#purgeAt': 'purgeAt', '#firstSeen': 'firstSeen' },
            ExpressionAttributeValues: { ':purgeAt': purgeAt(), ':firstSeen': firstSeen },
          }),
        ),
      )
    },

    async clear({ key, firstSeen }) {
      await unless(key, () =>
        client.send(
          new DeleteCommand({
            TableName: table,
            Key: keyOf(key),
            ConditionExpression: sameLook,
            ExpressionAttributeNames: { '#firstSeen': 'firstSeen' },
            ExpressionAttributeValues: { ':firstSeen': firstSeen },
          }),
        ),
      )
    },
  }
}
