import { type DynamoDBDocumentClient, GetCommand, QueryCommand } from '@aws-sdk/lib-dynamodb'
import { itemsOf } from './batch-get.ts'
import { vmidPartition } from './claims.ts'
import { pagesWhere } from './pages-where.ts'
import { type Phase, Row, readStored, UnreadableRow } from './record.ts'
import { uidsInPhase } from './rows-in-phase.ts'

/** How many rows are placed on a node, by index: a moment behind the truth, which is good enough for spreading. */
export const countOn =
  (client: DynamoDBDocumentClient, table: string) => async (cluster: string, node: string) => {
    let count = 0
    let from: Record<string, unknown> | undefined
    do {
      const page = await client.send(
        new QueryCommand({
          TableName: table,
          IndexName: 'byNode',
          Select: 'COUNT',
          KeyConditionExpression: '#placedOn = :placedOn',
          ExpressionAttributeNames: { '#placedOn': 'placedOn' },
          ExpressionAttributeValues: { ':placedOn': `${cluster}/${node}` },
          ExclusiveStartKey: from,
        }),
      )
      count += page.Count ?? 0
      from = page.LastEvaluatedKey
    } while (from)
    return count
  }

/**
 * The rows of a phase: which they are by index, so one that entered it a moment ago may be missing, and each as it stands in
 * the table. One that cannot be read keeps no other from being seen.
 */
export const rowsInPhase =
  (client: DynamoDBDocumentClient, table: string, onUnreadable: (error: UnreadableRow) => void) =>
  async (phase: Phase): Promise<Row[]> => {
    const rows: Row[] = []
    const uids = await uidsInPhase(client, table, phase)
    for await (const item of itemsOf(client, table, uids, { ConsistentRead: false })) {
      if (item.phase === phase) rows.push(...readRows([item], onUnreadable))
    }
    return rows
  }

/** Those of the items that can be read; of each of the others, what is wrong with it. */
function readRows(
  items: readonly Record<string, unknown>[],
  onUnreadable: (error: UnreadableRow) => void,
): Row[] {
  return items.flatMap((item) => {
    try {
      return [readStored(Row, item)]
    } catch (error) {
      if (!(error instanceof UnreadableRow)) throw error
      onUnreadable(error)
      return []
    }
  })
}

/** One row as it stands now; undefined when no event about it was ever judged. */
export const rowNow =
  (client: DynamoDBDocumentClient, table: string) =>
  async (uid: string): Promise<Row | undefined> => {
    const get = new GetCommand({ TableName: table, Key: { uid }, ConsistentRead: true })
    const { Item: item } = await client.send(get)
    return item?.phase === undefined ? undefined : readStored(Row, item)
  }

/** VMIDs of a cluster that are claimed, by whomever. */
export const claimedVmids =
  (client: DynamoDBDocumentClient, table: string) =>
  async (cluster: string): Promise<number[]> => {
    const pages = pagesWhere(client, { table }, ['partition', vmidPartition(cluster)], ['sort'])
    const vmids: number[] = []
    for await (const { Items: items = [] } of pages) vmids.push(...items.map(({ sort }) => Number(sort)))
    return vmids
  }
