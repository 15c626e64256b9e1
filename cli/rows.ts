import { type DynamoDBDocumentClient, GetCommand, QueryCommand } from '@aws-sdk/lib-dynamodb'
import { Phase, Row } from '../lib/record.ts'

export type Phases = readonly (typeof Phase.options)[number][]
export const allPhases: Phases = Phase.options

/** One proxy's row as it stands now; undefined when no event about it was ever judged. */
export async function readRow(
  client: DynamoDBDocumentClient,
  table: string,
  uid: string,
): Promise<Row | undefined> {
  const { Item } = await client.send(new GetCommand({ TableName: table, Key: { uid }, ConsistentRead: true }))
  return Item?.phase === undefined ? undefined : Row.parse(Item)
}

/** All rows in these phases, oldest first. From an index: a change of the last second may be missing. */
export async function listRows(
  client: DynamoDBDocumentClient,
  table: string,
  phases: Phases,
): Promise<Row[]> {
  const lists = await Promise.all(phases.map((phase) => rowsInPhase(client, table, phase)))
  return lists.flat().sort((a, b) => a.createdAt - b.createdAt)
}

async function rowsInPhase(client: DynamoDBDocumentClient, table: string, phase: string): Promise<Row[]> {
  const rows: Row[] = []
  let ExclusiveStartKey: Record<string, unknown> | undefined
  do {
    const page = await client.send(
      new QueryCommand({
        TableName: table,
        IndexName: 'byPhase',
        KeyConditionExpression: '#phase = :phase',
        ExpressionAttributeNames: { '#phase': 'phase' },
        ExpressionAttributeValues: { ':phase': phase },
        ExclusiveStartKey,
      }),
    )
    rows.push(...(page.Items ?? []).map((item) => Row.parse(item)))
    ExclusiveStartKey = page.LastEvaluatedKey
  } while (ExclusiveStartKey)
  return rows
}
