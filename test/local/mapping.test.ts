import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  CreateQueueCommand,
  GetQueueAttributesCommand,
  SendMessageCommand,
  SQSClient,
} from '@aws-sdk/client-sqs'
import type { SQSEvent } from 'aws-lambda'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { ACCOUNT, credentials, REGION } from '../../local/account.ts'
import type { QueueRef } from '../../local/emulators.ts'
import { type Mapping, mapQueue } from '../../local/mapping.ts'
import { type QueueServer, serveQueues } from '../../local/queue-server.ts'
import { createSandbox, type Sandbox } from '../../local/sandbox.ts'
import { createSandboxPool, type SandboxPool } from '../../local/sandbox-pool.ts'

let folder: string
let server: QueueServer
let client: SQSClient
let queue: QueueRef
let mapping: Mapping | undefined
let problems: { what: string; error: unknown }[]

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'egress-mapping-'))
  server = await serveQueues({ folder, port: 0 })
  client = new SQSClient({ endpoint: `http://127.0.0.1:${server.port}`, region: REGION, credentials })
})
afterAll(async () => {
  client.destroy()
  await server.close()
  rmSync(folder, { recursive: true })
})

let count = 0
beforeEach(async () => {
  const name = `queue-${++count}`
  // Shown again after a second.
  await client.send(new CreateQueueCommand({ QueueName: name, Attributes: { VisibilityTimeout: '1' } }))
  queue = {
    url: `http://127.0.0.1:${server.port}/${ACCOUNT}/${name}`,
    arn: `arn:aws:sqs:${REGION}:${ACCOUNT}:${name}`,
  }
  problems = []
})
afterEach(async () => {
  await mapping?.stop()
  mapping = undefined
})

const send = (MessageBody: string) =>
  client.send(
    new SendMessageCommand({
      QueueUrl: queue.url,
      MessageBody,
      MessageAttributes: {
        traceparent: { DataType: 'String', StringValue: '00-1-2-01' },
        raw: { DataType: 'Binary', BinaryValue: Buffer.from('bytes') },
      },
    }),
  )

function feed(invoke: (event: SQSEvent) => Promise<unknown>, maximumConcurrency = 2) {
  mapping = mapQueue({
    client,
    queue,
    maximumConcurrency,
    pollSeconds: 1,
    invoke: (event) => invoke(event as SQSEvent),
    onProblem: (problem) => void problems.push(problem),
  })
}

async function left(): Promise<number> {
  const { Attributes = {} } = await client.send(
    new GetQueueAttributesCommand({ QueueUrl: queue.url, AttributeNames: ['All'] }),
  )
  return (
    Number(Attributes.ApproximateNumberOfMessages) + Number(Attributes.ApproximateNumberOfMessagesNotVisible)
  )
}

const untilEmpty = () => vi.waitFor(async () => expect(await left()).toBe(0), { timeout: 10_000 })

describe('mapping', () => {
  it('makes the event that Lambda makes', async () => {
    await send('{"type":"X"}')
    const events: SQSEvent[] = []
    feed(async (event) => void events.push(event))
    await untilEmpty()
    expect(events[0]?.Records).toEqual([
      {
        messageId: expect.stringMatching(/^[0-9a-f-]{36}$/),
        receiptHandle: expect.any(String),
        body: '{"type":"X"}',
        attributes: {
          ApproximateReceiveCount: '1',
          SentTimestamp: expect.stringMatching(/^\d{13}$/),
          SenderId: ACCOUNT,
          ApproximateFirstReceiveTimestamp: expect.stringMatching(/^\d{13}$/),
        },
        messageAttributes: {
          traceparent: {
            dataType: 'String',
            stringValue: '00-1-2-01',
            stringListValues: [],
            binaryListValues: [],
          },
          raw: { dataType: 'Binary', binaryValue: 'Ynl0ZXM=', stringListValues: [], binaryListValues: [] },
        },
        md5OfBody: createHash('md5').update('{"type":"X"}').digest('hex'),
        md5OfMessageAttributes: expect.stringMatching(/^[0-9a-f]{32}$/),
        eventSource: 'aws:sqs',
        eventSourceARN: queue.arn,
        awsRegion: REGION,
      },
    ])
  })

  it('deletes what succeeded, and brings back only what failed, counted', async () => {
    await send('good')
    await send('bad')
    const seen: string[] = []
    feed(async ({ Records }) => {
      const failed = Records.filter(
        ({ body, attributes }) => body === 'bad' && attributes.ApproximateReceiveCount === '1',
      )
      seen.push(...Records.map(({ body, attributes }) => `${body} ${attributes.ApproximateReceiveCount}`))
      return { batchItemFailures: failed.map(({ messageId }) => ({ itemIdentifier: messageId })) }
    })
    await untilEmpty()
    expect(seen.sort()).toEqual(['bad 1', 'bad 2', 'good 1'])
    expect(problems).toEqual([])
  })

  it('brings the whole batch back when the function throws', async () => {
    await send('a')
    await send('b')
    const seen: string[] = []
    feed(async ({ Records }) => {
      const first = Records.filter(({ attributes }) => attributes.ApproximateReceiveCount === '1')
      seen.push(...Records.map(({ body, attributes }) => `${body} ${attributes.ApproximateReceiveCount}`))
      if (first.length > 0) throw new Error('no')
      return {}
    })
    await untilEmpty()
    expect(seen.sort()).toEqual(['a 1', 'a 2', 'b 1', 'b 2'])
    expect(problems.length).toBeGreaterThan(0)
  })

  it('takes at most ten messages a batch, and has no more batches running than it may', async () => {
    await Promise.all(Array.from({ length: 45 }, (_, index) => send(`m${index}`)))
    const sizes: number[] = []
    let running = 0
    let most = 0
    const held: (() => void)[] = []
    feed(async ({ Records }) => {
      sizes.push(Records.length)
      most = Math.max(most, ++running)
      if (sizes.length <= 3) await new Promise<void>((resolve) => held.push(resolve))
      running -= 1
    }, 3)
    await vi.waitFor(() => expect(held).toHaveLength(3), { timeout: 20_000 })
    // While all three are busy the rest stays in the queue.
    expect(await left()).toBeGreaterThan(14)
    for (const release of held) release()
    await untilEmpty()
    expect(Math.max(...sizes)).toBe(10)
    expect(most).toBe(3)
  })

  it('waits at its stop for the batch in flight, and takes no other', async () => {
    await send('slow')
    const started = Promise.withResolvers<void>()
    const release = Promise.withResolvers<void>()
    let finished = false
    feed(async () => {
      started.resolve()
      await release.promise
      finished = true
    }, 1)
    await started.promise
    const stopped = mapping?.stop()
    await send('later')
    release.resolve()
    await stopped
    expect(finished).toBe(true)
    expect(await left()).toBe(1)
  })

  describe('with the handler in threads', () => {
    let pool: SandboxPool
    const made: Sandbox[] = []
    beforeEach(() => {
      made.length = 0
      pool = createSandboxPool(() => {
        const sandbox = createSandbox({
          handler: new URL('./fixtures/handler.ts', import.meta.url).href,
          functionName: 'egress-test',
          functionArn: 'arn:aws:lambda:us-east-1:000000000000:function:egress-test',
          env: {},
          timeoutMs: 400,
          onLine: () => undefined,
        })
        made.push(sandbox)
        return sandbox
      })
    })
    afterEach(async () => {
      await mapping?.stop()
      await pool.close()
    })

    it('ends a function that runs out of time, brings its batch back, and goes on in a new environment', async () => {
      await send('hang')
      feed((event) => pool.invoke(event), 1)
      // The message comes back when its visibility ends, and hangs the next environment.
      await vi.waitFor(() => expect(problems).toHaveLength(2), { timeout: 10_000 })
      expect(problems.map(({ error }) => error)).toMatchObject([{ code: 'TimedOut' }, { code: 'TimedOut' }])
      expect(made.map(({ alive }) => alive)).toEqual([false, false])
      expect(await left()).toBe(1)
    })
  })
})
