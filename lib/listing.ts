import { type DynamoDBDocumentClient, QueryCommand } from '@aws-sdk/lib-dynamodb'

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
