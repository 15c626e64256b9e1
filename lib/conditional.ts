import { ConditionalCheckFailedException } from '@aws-sdk/client-dynamodb'
import { type DynamoDBDocumentClient, GetCommand } from '@aws-sdk/lib-dynamodb'
import { unmarshall } from '@aws-sdk/util-dynamodb'

export type Item = Record<string, unknown>

/**
 * Sends a conditional write. When its condition fails, returns the item that stood in the way: from the exception where
 * the endpoint gives it (`ReturnValuesOnConditionCheckFailure: ALL_OLD`), else from one consistent read.
 */
export async function conditional<T>(
  client: DynamoDBDocumentClient,
  { table, key }: { table: string; key: Item },
  write: () => Promise<T>,
): Promise<{ done: true; result: T } | { done: false; winner: Item | undefined }> {
  try {
    return { done: true, result: await write() }
  } catch (error) {
    if (!(error instanceof ConditionalCheckFailedException)) throw error
    if (error.Item) return { done: false, winner: unmarshall(error.Item) }
    const { Item: winner } = await client.send(
      new GetCommand({ TableName: table, Key: key, ConsistentRead: true }),
    )
    return { done: false, winner }
  }
}
