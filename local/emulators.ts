import { join } from 'node:path'
import {
  CreateTableCommand,
  DynamoDBClient,
  ResourceInUseException,
  waitUntilTableExists,
} from '@aws-sdk/client-dynamodb'
import { CreateTopicCommand, SNSClient, SubscribeCommand } from '@aws-sdk/client-sns'
import {
  CreateQueueCommand,
  GetQueueAttributesCommand,
  GetQueueUrlCommand,
  QueueDoesNotExist,
  SetQueueAttributesCommand,
  SQSClient,
} from '@aws-sdk/client-sqs'
import { ACCOUNT, credentials, REGION } from './account.ts'
import { type DeclaredQueue, readDeclarations } from './declared.ts'
import { createOpened } from './opened.ts'
import { onItsPort, type Ports } from './ports.ts'
import { serveQueues } from './queue-server.ts'
import { outcomes, type SourceId, type TableId, tables } from './resources.ts'
import { serveTables } from './table-server.ts'

export type QueueRef = { url: string; arn: string }

export type Emulators = {
  endpoints: { dynamodb: string; sqs: string; sns: string }
  tables: Record<TableId, string>
  queues: Record<SourceId, QueueRef & { deadLetters: QueueRef }>
  topicArn: string
  events: QueueRef
  close(): Promise<void>
}

/** Starts the emulators on their data and makes what is not there yet. */
export async function startEmulators(options: {
  folder: string
  ports: Ports
  functionTimeoutSeconds: number
}): Promise<Emulators> {
  const { folder, ports } = options
  const opened = createOpened()
  try {
    const tableServer = opened.add(
      await onItsPort(ports, 'dynamodb', (port) => serveTables({ folder: join(folder, 'dynamodb'), port })),
    )
    const queueServer = opened.add(
      await onItsPort(ports, 'sqs', (port) => serveQueues({ folder: join(folder, 'sqs'), port })),
    )
    const dynamodb = `http://127.0.0.1:${tableServer.port}`
    const sqs = `http://127.0.0.1:${queueServer.port}`
    await createTables(dynamodb)
    const { queues } = readDeclarations(options.functionTimeoutSeconds)
    const made = await createQueuesAndTopic(sqs, queues)
    return {
      endpoints: { dynamodb, sqs, sns: sqs },
      tables: { proxies: 'proxies', claims: 'claims' },
      ...made,
      close: opened.close,
    }
  } catch (error) {
    await opened.close()
    throw error
  }
}

async function createTables(endpoint: string): Promise<void> {
  const client = new DynamoDBClient({ endpoint, region: REGION, credentials })
  try {
    for (const [name, shape] of Object.entries(tables)) {
      const command = new CreateTableCommand({
        TableName: name,
        BillingMode: 'PAY_PER_REQUEST',
        KeySchema: [...shape.keys],
        AttributeDefinitions: [...shape.attributes],
        GlobalSecondaryIndexes: shape.indexes.map((index) => ({ ...index, KeySchema: [...index.KeySchema] })),
      })
      await client.send(command).catch((error: unknown) => {
        if (!(error instanceof ResourceInUseException)) throw error
      })
      await waitUntilTableExists({ client, maxWaitTime: 30, minDelay: 1 }, { TableName: name })
    }
  } finally {
    client.destroy()
  }
}

async function createQueuesAndTopic(endpoint: string, declared: Record<SourceId, DeclaredQueue>) {
  const client = new SQSClient({ endpoint, region: REGION, credentials })
  const topics = new SNSClient({ endpoint, region: REGION, credentials })
  const queue = (name: string, attributes: Record<string, string>) =>
    ensureQueue(client, endpoint, name, attributes)
  const withDeadLetters = async (id: SourceId) => {
    const { retentionSeconds, deadLetterRetentionSeconds, visibilitySeconds, maxReceiveCount } = declared[id]
    const deadLetters = await queue(`${id}-dlq`, {
      MessageRetentionPeriod: String(deadLetterRetentionSeconds),
    })
    const source = await queue(id, {
      MessageRetentionPeriod: String(retentionSeconds),
      VisibilityTimeout: String(visibilitySeconds),
      RedrivePolicy: JSON.stringify({
        deadLetterTargetArn: deadLetters.arn,
        maxReceiveCount,
      }),
    })
    return { ...source, deadLetters }
  }
  try {
    const queues = { create: await withDeadLetters('create'), delete: await withDeadLetters('delete') }
    const events = await queue(outcomes.queue.name, {
      MessageRetentionPeriod: String(outcomes.queue.retentionSeconds),
    })
    const { TopicArn: topicArn = '' } = await topics.send(new CreateTopicCommand({ Name: outcomes.topic }))
    await topics.send(new SubscribeCommand({ TopicArn: topicArn, Protocol: 'sqs', Endpoint: events.arn }))
    return { queues, events, topicArn }
  } finally {
    client.destroy()
    topics.destroy()
  }
}

/** A queue of an earlier start gets today's attributes: the function's time-out may have changed. */
async function ensureQueue(
  client: SQSClient,
  endpoint: string,
  name: string,
  Attributes: Record<string, string>,
): Promise<QueueRef> {
  // Not as the emulator has it, which keeps the port of the queue's first day.
  const url = `${endpoint}/${ACCOUNT}/${name}`
  const exists = await client.send(new GetQueueUrlCommand({ QueueName: name })).catch((error: unknown) => {
    if (error instanceof QueueDoesNotExist) return undefined
    throw error
  })
  if (exists) await client.send(new SetQueueAttributesCommand({ QueueUrl: url, Attributes }))
  else await client.send(new CreateQueueCommand({ QueueName: name, Attributes }))
  const answer = await client.send(
    new GetQueueAttributesCommand({ QueueUrl: url, AttributeNames: ['QueueArn'] }),
  )
  return { url, arn: answer.Attributes?.QueueArn ?? '' }
}
