import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { DynamoDBClient, GetItemCommand, PutItemCommand } from '@aws-sdk/client-dynamodb'
import { PublishCommand, SNSClient } from '@aws-sdk/client-sns'
import {
  ChangeMessageVisibilityCommand,
  CreateQueueCommand,
  DeleteMessageCommand,
  type Message,
  ReceiveMessageCommand,
  SendMessageCommand,
  SQSClient,
} from '@aws-sdk/client-sqs'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { credentials, REGION } from '../../local/account.ts'
import type { Emulators } from '../../local/emulators.ts'

type Known = Omit<Emulators, 'close'>

let folder: string
let child: ChildProcess | undefined

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'egress-emulators-'))
})

afterEach(async () => {
  await kill()
  rmSync(folder, { recursive: true })
})

async function start(): Promise<Known> {
  const script = new URL('./fixtures/emulators.ts', import.meta.url).pathname
  child = spawn(process.execPath, [script, folder], { stdio: ['ignore', 'pipe', 'inherit'] })
  if (!child.stdout) throw new Error('no output')
  const [line] = await once(createInterface(child.stdout), 'line')
  return JSON.parse(String(line))
}

async function kill() {
  if (!child || child.exitCode !== null || child.signalCode !== null) return
  child.kill('SIGKILL')
  await once(child, 'exit')
}

const sqs = ({ endpoints }: Known) => new SQSClient({ endpoint: endpoints.sqs, region: REGION, credentials })

async function take(known: Known, QueueUrl: string, WaitTimeSeconds = 5): Promise<Message[]> {
  const { Messages = [] } = await sqs(known).send(
    new ReceiveMessageCommand({
      QueueUrl,
      WaitTimeSeconds,
      MaxNumberOfMessages: 10,
      MessageSystemAttributeNames: ['All'],
    }),
  )
  return Messages
}

async function takeUntil(known: Known, url: string, count: number): Promise<Message[]> {
  const messages: Message[] = []
  while (messages.length < count) messages.push(...(await take(known, url)))
  return messages
}

describe('emulators', () => {
  it('find rows, waiting, delayed and held messages and the subscription again after kill -9, on the same ports', async () => {
    const before = await start()
    const { url } = before.queues.create
    const send = (MessageBody: string, DelaySeconds = 0) =>
      sqs(before).send(new SendMessageCommand({ QueueUrl: url, MessageBody, DelaySeconds }))
    await send('held')
    expect(await take(before, url)).toHaveLength(1)
    await send('waiting')
    await send('delayed', 2)
    const rows = new DynamoDBClient({ endpoint: before.endpoints.dynamodb, region: REGION, credentials })
    await rows.send(new PutItemCommand({ TableName: 'proxies', Item: { uid: { S: 'a' }, turn: { N: '7' } } }))
    await kill()

    const after = await start()
    expect(after).toEqual(before)
    const bodies = (await takeUntil(after, url, 3)).map(({ Body }) => Body)
    expect(bodies.sort()).toEqual(['delayed', 'held', 'waiting'])
    const { Item } = await rows.send(
      new GetItemCommand({ TableName: 'proxies', Key: { uid: { S: 'a' } }, ConsistentRead: true }),
    )
    expect(Item).toEqual({ uid: { S: 'a' }, turn: { N: '7' } })
    const sns = new SNSClient({ endpoint: after.endpoints.sns, region: REGION, credentials })
    await sns.send(new PublishCommand({ TopicArn: after.topicArn, Message: 'hello' }))
    const [event] = await takeUntil(after, after.events.url, 1)
    expect(JSON.parse(event?.Body ?? '')).toMatchObject({ Type: 'Notification', Message: 'hello' })
  })

  it('counts on over kill -9, and forgets what was deleted', async () => {
    const before = await start()
    const { url } = before.queues.delete
    await sqs(before).send(new SendMessageCommand({ QueueUrl: url, MessageBody: 'kept' }))
    await sqs(before).send(new SendMessageCommand({ QueueUrl: url, MessageBody: 'done' }))
    for (const message of await takeUntil(before, url, 2)) {
      if (message.Body !== 'done') continue
      await sqs(before).send(
        new DeleteMessageCommand({ QueueUrl: url, ReceiptHandle: message.ReceiptHandle }),
      )
    }
    await kill()

    const after = await start()
    const [message] = await takeUntil(after, url, 1)
    expect(message?.Body).toBe('kept')
    expect(message?.Attributes?.ApproximateReceiveCount).toBe('2')
    expect(await take(after, url, 0)).toEqual([])
  })

  it('give queues addresses that resolve everywhere', async () => {
    const known = await start()
    const { QueueUrl } = await sqs(known).send(new CreateQueueCommand({ QueueName: 'another' }))
    expect(QueueUrl).toBe(`${known.endpoints.sqs}/000000000000/another`)
  })

  it('show a message again at once when its visibility is set to 0', async () => {
    const known = await start()
    const { url } = known.queues.create
    await sqs(known).send(new SendMessageCommand({ QueueUrl: url, MessageBody: 'again' }))
    const [first] = await takeUntil(known, url, 1)
    await sqs(known).send(
      new ChangeMessageVisibilityCommand({
        QueueUrl: url,
        ReceiptHandle: first?.ReceiptHandle,
        VisibilityTimeout: 0,
      }),
    )
    const [second] = await takeUntil(known, url, 1)
    expect(second?.Body).toBe('again')
  })

  it('take another port when theirs is taken, and find their data there', async () => {
    const before = await start()
    const { url } = before.queues.create
    await sqs(before).send(new SendMessageCommand({ QueueUrl: url, MessageBody: 'kept' }))
    await kill()
    const squatter = createServer().listen(Number(new URL(url).port), '127.0.0.1')
    await once(squatter, 'listening')
    try {
      const after = await start()
      expect(after.queues.create.url).not.toBe(url)
      expect(await takeUntil(after, after.queues.create.url, 1)).toHaveLength(1)
    } finally {
      squatter.close()
    }
  })

  it('listen on 127.0.0.1 and on no other address', async () => {
    const known = await start()
    for (const endpoint of [known.endpoints.sqs, known.endpoints.dynamodb]) {
      // A server on all interfaces would answer here as well.
      const elsewhere = endpoint.replace('127.0.0.1', '127.0.0.2')
      await expect(fetch(elsewhere)).rejects.toThrow('fetch failed')
    }
  })
})
