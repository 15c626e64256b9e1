import type { DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb'
import type { Item } from './conditional.ts'
import { pagesWhere } from './pages-where.ts'
import type { Phase } from './record.ts'

/**
 * What the index by phase has of the rows of a phase, oldest first and page by page: what they account for in the world
 * (local/resources.ts). It is a moment behind: a row that goes from one phase to another may stand under both, or neither.
 */
export function pagesInPhase(
  client: DynamoDBDocumentClient,
  table: string,
  phase: Phase,
): AsyncIterable<{ Items?: Item[] | undefined }> {
  return pagesWhere(client, { table, index: 'byPhase' }, ['phase', phase])
}

/** Their uids alone. */
export async function uidsInPhase(
  client: DynamoDBDocumentClient,
  table: string,
  phase: Phase,
): Promise<string[]> {
  const uids: string[] = []
  for await (const { Items = [] } of pagesInPhase(client, table, phase))
    uids.push(...Items.map(({ uid }) => String(uid)))
  return uids
}
