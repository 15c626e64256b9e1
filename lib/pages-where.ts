import { type DynamoDBDocumentClient, paginateQuery } from '@aws-sdk/lib-dynamodb'
import { projection } from './batch-get.ts'
import type { Item } from './conditional.ts'

/** From where: an index is a moment behind, the table itself is not. */
export type From = { table: string; index?: string }

/** The items whose partition key, of the table or of the index, has this value; page by page, of each the paths named or all. */
export function pagesWhere(
  client: DynamoDBDocumentClient,
  { table, index }: From,
  [key, value]: readonly [key: string, value: string],
  paths?: readonly string[],
): AsyncIterable<{ Items?: Item[] | undefined }> {
  const { ExpressionAttributeNames: names, ...projected } = paths ? projection(paths) : {}
  return paginateQuery(
    { client },
    {
      TableName: table,
      ...(index ? { IndexName: index } : { ConsistentRead: true }),
      ...projected,
      KeyConditionExpression: '#key = :value',
      ExpressionAttributeNames: { ...names, '#key': key },
      ExpressionAttributeValues: { ':value': value },
    },
  )
}
