import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Message, ReceiveMessageCommand, SendMessageCommand } from '@aws-sdk/client-sqs'
import { PutCommand, ScanCommand } from '@aws-sdk/lib-dynamodb'
import type { Claim } from '../../lib/claims.ts'
import { createQueues, type Obituary } from '../../lib/queue.ts'
import type { Row, Side } from '../../lib/record.ts'
import { REGION } from '../../local/account.ts'
import { writeRun } from '../../local/run-file.ts'
import { openLocalAws } from '../contract/local-aws.ts'
import { egress, root } from './egress.ts'

/** An installation without functions: what the command line sees of one, on emulators, and nobody else who takes messages. */
export type Stage = Awaited<ReturnType<typeof openStage>>

export async function openStage() {
  const folder = mkdtempSync(join(tmpdir(), 'egress-stage-'))
  const aws = await openLocalAws()
  const { queues, tables, topicArn, events, endpoints } = aws.emulators
  const useConfig = (config: string) =>
    writeRun(folder, {
      pid: process.pid,
      region: REGION,
      config,
      endpoints,
      tables,
      queues,
      topicArn,
      events,
    })
  useConfig(join(root, 'config/local.yml'))
  const urls = {
    create: { queue: queues.create.url, deadLetters: queues.create.deadLetters.url },
    delete: { queue: queues.delete.url, deadLetters: queues.delete.deadLetters.url },
  }
  const ours = createQueues({ client: aws.sqs, urls })

  async function drain(url: string): Promise<Message[]> {
    const all: Message[] = []
    for (;;) {
      const { Messages = [] } = await aws.sqs.send(
        new ReceiveMessageCommand({
          QueueUrl: url,
          MaxNumberOfMessages: 10,
          VisibilityTimeout: 1,
          MessageAttributeNames: ['All'],
        }),
      )
      const fresh = Messages.filter(({ MessageId }) => !all.some((one) => one.MessageId === MessageId))
      if (fresh.length === 0) return all
      all.push(...fresh)
    }
  }

  return {
    urls,
    endpoints,
    topicArn,
    /** Puts a body into the queue that the outcome topic feeds. */
    tell: (body: string) => aws.sqs.send(new SendMessageCommand({ QueueUrl: events.url, MessageBody: body })),
    names: tables,
    folder,
    useConfig,
    here: (...args: string[]) => egress([...args, '--data', folder]),
    store: (row: Row) => aws.tables.send(new PutCommand({ TableName: tables.proxies, Item: row })),
    bury: (side: Side, body: string, obituary: Obituary) => ours.bury(side, body, obituary),
    /** What SQS does with a message that was received too often: it has no attributes of ours. */
    giveUp: (side: Side, body: string) =>
      aws.sqs.send(new SendMessageCommand({ QueueUrl: urls[side].deadLetters, MessageBody: body })),
    bodies: async (side: Side) => (await drain(urls[side].queue)).map(({ Body = '' }) => JSON.parse(Body)),
    messages: (side: Side) => drain(urls[side].queue),
    letters: async () => [
      ...(await drain(urls.create.deadLetters)),
      ...(await drain(urls.delete.deadLetters)),
    ],
    claims: async () => (await aws.tables.send(new ScanCommand({ TableName: tables.claims }))).Items ?? [],
    claim: (claim: Claim) => aws.tables.send(new PutCommand({ TableName: tables.claims, Item: claim })),
    async close() {
      await aws.close()
      rmSync(folder, { recursive: true })
    },
  }
}
