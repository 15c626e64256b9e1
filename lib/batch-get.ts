import { setTimeout as sleep } from 'node:timers/promises'
import {
  BatchGetCommand,
  type BatchGetCommandOutput,
  type DynamoDBDocumentClient,
} from '@aws-sdk/lib-dynamodb'
import type { Item } from './conditional.ts'

/** DynamoDB hands out at most so many items at once. */
const BATCH = 100
/** It may leave some of them to be asked for again: soon, then later each time, and not for ever. */
const PATIENCE_MS = [20, 100, 500, 1000, 2000, 4000]

/**
 * The items of these uids, batch by batch; uids without an item are left out.
 * @throws {Error} when DynamoDB leaves some of them over again and again: then they are not known to be missing
 */
export async function* itemsOf(
  client: DynamoDBDocumentClient,
  table: string,
  uids: Iterable<string>,
  how: {
    ConsistentRead: boolean
    ProjectionExpression?: string
    ExpressionAttributeNames?: Record<string, string>
  },
): AsyncGenerator<Item> {
  const wanted = [...new Set(uids)]
  for (let from = 0; from < wanted.length; from += BATCH) {
    let Keys: Record<string, unknown>[] = wanted.slice(from, from + BATCH).map((uid) => ({ uid }))
    for (let round = 0; Keys.length > 0; round++) {
      const { Responses, UnprocessedKeys }: BatchGetCommandOutput = await client.send(
        new BatchGetCommand({ RequestItems: { [table]: { Keys, ...how } } }),
      )
      yield* Responses?.[table] ?? []
      Keys = UnprocessedKeys?.[table]?.Keys ?? []
      if (Keys.length === 0) break
      const pauseMs = PATIENCE_MS[round]
      if (pauseMs === undefined) throw new Error(`${Keys.length} items of ${table} are not handed out`)
      await sleep(pauseMs)
    }
  }
}

/** Names of our own may be DynamoDB's reserved words, so all of them stand behind a `#`. */
export function projection(paths: readonly string[]) {
  const names = [...new Set(paths.flatMap((path) => path.split('.')))]
  return {
    ProjectionExpression: paths.map((path) => path.replace(/[^.]+/g, '#$&')).join(', '),
    ExpressionAttributeNames: Object.fromEntries(names.map((name) => [`#${name}`, name])),
  }
}
