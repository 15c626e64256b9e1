import { type DynamoDBDocumentClient, GetCommand, paginateQuery, QueryCommand } from '@aws-sdk/lib-dynamodb'
import { type Phase, Row } from './record.ts'

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

/** The rows of a phase, by index and page by page: a row that changed a moment ago may show as it was. */
export const rowsInPhase =
  (client: DynamoDBDocumentClient, table: string) =>
  async (phase: Phase): Promise<Row[]> => {
    const pages = paginateQuery(
      { client },
      {
        TableName: table,
        IndexName: 'byPhase',
        KeyConditionExpression: '#phase = :phase',
        ExpressionAttributeNames: { '#phase': 'phase' },
        ExpressionAttributeValues: { ':phase': phase },
      },
    )
    const rows: Row[] = []
    for await (const { Items: items = [] } of pages) rows.push(...items.map((item) => Row.parse(item)))
    return rows
  }

/** One row as it stands now; undefined when no event about it was ever judged. */
export const rowNow =
  (client: DynamoDBDocumentClient, table: string) =>
  async (uid: string): Promise<Row | undefined> => {
    const get = new GetCommand({ TableName: table, Key: { uid }, ConsistentRead: true })
    const { Item: item } = await client.send(get)
    return item?.phase === undefined ? undefined : Row.parse(item)
  }

/** VMIDs of a cluster that are claimed, by whomever. */
export const claimedVmids =
  (client: DynamoDBDocumentClient, table: string) =>
  async (cluster: string): Promise<number[]> => {
    const pages = paginateQuery(
      { client },
      {
        TableName: table,
        ConsistentRead: true,
        KeyConditionExpression: '#partition = :partition',
        ProjectionExpression: '#sort',
        ExpressionAttributeNames: { '#partition': 'partition', '#sort': 'sort' },
        ExpressionAttributeValues: { ':partition': `vmid#${cluster}` },
      },
    )
    const vmids: number[] = []
    for await (const { Items: items = [] } of pages) vmids.push(...items.map(({ sort }) => Number(sort)))
    return vmids
  }
