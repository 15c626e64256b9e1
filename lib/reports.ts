import { type DynamoDBDocumentClient, GetCommand, PutCommand } from '@aws-sdk/lib-dynamodb'
import { conditional } from './conditional.ts'

/** What a scheduled function found in its last run, kept for the command line. */
export type Reports<R extends { startedAt: string }> = {
  /** Nothing when a run that began later has saved its own already. */
  save(report: R): Promise<void>
  latest(): Promise<R | undefined>
}

// Named part of the condition. ISO 8601 in UTC sorts as text.
const noneOrOlder = 'attribute_not_exists(#startedAt) OR #startedAt <= :startedAt'

/** So long after its last run a report goes: what it tells of may not be there any more. */
const KEPT_SECONDS = 30 * 86_400

/** One item of the table of claims for each kind of report, in a partition that no claim is in. */
export function createReports<R extends { startedAt: string }>(options: {
  client: DynamoDBDocumentClient
  table: string
  partition: 'gc-report' | 'check-report'
  sort?: string
}): Reports<R> {
  const { client, table, partition, sort = 'latest' } = options
  const key = { partition, sort }
  return {
    async save(report) {
      const purgeAt = Math.floor(Date.parse(report.startedAt) / 1000) + KEPT_SECONDS
      await conditional(client, { table, key }, () =>
        client.send(
          new PutCommand({
            TableName: table,
            Item: { ...key, startedAt: report.startedAt, report, purgeAt },
            ConditionExpression: noneOrOlder,
            ExpressionAttributeNames: { '#startedAt': 'startedAt' },
            ExpressionAttributeValues: { ':startedAt': report.startedAt },
          }),
        ),
      )
    },

    async latest() {
      const { Item: item } = await client.send(
        new GetCommand({ TableName: table, Key: key, ConsistentRead: true }),
      )
      // Written by `save` alone.
      return item?.report as R | undefined
    },
  }
}
