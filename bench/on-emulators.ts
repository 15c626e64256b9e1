import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ReceiveMessageCommand, SQSClient } from '@aws-sdk/client-sqs'
import type { SQSEvent } from 'aws-lambda'
import { definition as creation } from '../functions/create/definition.ts'
import { cycle as createCycle } from '../functions/create/steps.ts'
import { definition as deletion } from '../functions/delete/definition.ts'
import { cycle as deleteCycle } from '../functions/delete/steps.ts'
import { createFunction } from '../lib/aws.ts'
import { credentials, REGION } from '../local/account.ts'
import type { Emulators } from '../local/emulators.ts'
import { mapQueue } from '../local/mapping.ts'
import { createOpened } from '../local/opened.ts'
import type { Pace } from './in-memory.ts'
import { createInstantProxmox } from './instant.ts'
import { instantConfig, NODES, requested, unwanted } from './instant-config.ts'
import { sendEvents } from './send-events.ts'
import { type Usage, usageNow, used } from './usage.ts'

type Where = Omit<Emulators, 'close'>

/** Whole lives through the functions as they are on AWS, SDK and all, on emulators in another process. */
export async function onEmulators(lives: number, concurrency: number): Promise<Pace> {
  const folder = mkdtempSync(join(tmpdir(), 'egress-bench-'))
  const opened = createOpened()
  opened.add({ close: () => rmSync(folder, { recursive: true, force: true }) })
  try {
    const child = fork(new URL('./emulators-process.ts', import.meta.url), [folder], { stdio: 'inherit' })
    opened.add({
      async close() {
        child.send('close')
        await once(child, 'exit')
      },
    })
    const [where]: [Where] = (await once(child, 'message')) as [Where]
    const config = join(folder, 'bench.yml')
    writeFileSync(config, instantConfig())
    writeFileSync(join(folder, 'token'), 'token')
    const usage = async (): Promise<Usage> => {
      child.send('usage')
      return (await once(child, 'message'))[0]
    }
    const before = await usage()
    const pace = await run({ where, config, lives, concurrency })
    return { ...pace, emulators: used(before, await usage()) }
  } finally {
    await opened.close()
  }
}

async function run(options: {
  where: Where
  config: string
  lives: number
  concurrency: number
}): Promise<Pace> {
  const { where, config, lives, concurrency } = options
  const { endpoints, tables, queues, topicArn } = where
  const environment = {
    EGRESS_CONFIG: config,
    EGRESS_PROXIES_TABLE: tables.proxies,
    EGRESS_CLAIMS_TABLE: tables.claims,
    EGRESS_CREATE_QUEUE_URL: queues.create.url,
    EGRESS_DELETE_QUEUE_URL: queues.delete.url,
    EGRESS_CREATE_DLQ_URL: queues.create.deadLetters.url,
    EGRESS_DELETE_DLQ_URL: queues.delete.deadLetters.url,
    EGRESS_TOPIC_ARN: topicArn,
    EGRESS_LOG_LEVEL: 'silent',
  }
  Object.assign(process.env, {
    AWS_REGION: REGION,
    AWS_ACCESS_KEY_ID: credentials.accessKeyId,
    AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey,
    AWS_ENDPOINT_URL_DYNAMODB: endpoints.dynamodb,
    AWS_ENDPOINT_URL_SQS: endpoints.sqs,
    AWS_ENDPOINT_URL_SNS: endpoints.sns,
  })
  const proxmox = createInstantProxmox(NODES)
  const connect = () => ({ with: () => proxmox })
  const handlers = {
    create: createFunction(creation, environment, (surroundings) => createCycle(surroundings, connect)),
    delete: createFunction(deletion, environment, (surroundings) => deleteCycle(surroundings, connect)),
  }
  const client = new SQSClient({ endpoint: endpoints.sqs, region: REGION, credentials })
  let records = 0
  const feeds = (['create', 'delete'] as const).map((side) =>
    mapQueue({
      client,
      queue: queues[side],
      maximumConcurrency: concurrency,
      invoke: (event) => {
        // Made by the mapping in this shape.
        const batch = event as SQSEvent
        records += batch.Records.length
        return handlers[side](batch, context())
      },
      onProblem: ({ what, error }) => {
        throw new Error(what, { cause: error })
      },
    }),
  )
  try {
    const uids = Array.from({ length: lives }, (_, index) => `proxy-${index}`)
    const startedMs = performance.now()
    const before = usageNow()
    await sendEvents(client, queues.create.url, uids.map(requested))
    await outcomes(client, where.events.url, 'ProxyReady', lives)
    await sendEvents(client, queues.delete.url, uids.map(unwanted))
    await outcomes(client, where.events.url, 'ProxyDeleted', lives)
    return {
      lives,
      records,
      seconds: (performance.now() - startedMs) / 1000,
      ...used(before, usageNow()),
    }
  } finally {
    await Promise.all(feeds.map((feed) => feed.stop()))
    client.destroy()
  }
}

/** Waits for so many events of a type, each uid counted once. */
async function outcomes(client: SQSClient, QueueUrl: string, type: string, count: number): Promise<void> {
  const seen = new Set<string>()
  while (seen.size < count) {
    const { Messages = [] } = await client.send(
      new ReceiveMessageCommand({ QueueUrl, MaxNumberOfMessages: 10, WaitTimeSeconds: 2 }),
    )
    for (const { Body = '{}' } of Messages) {
      const event = JSON.parse(JSON.parse(Body).Message)
      if (event.type === type) seen.add(event.uid)
      if (event.type === 'ProxyFailed') throw new Error(Body)
    }
  }
}

/** What the functions ask of Lambda's context. */
const context = () => {
  const untilMs = Date.now() + 60_000
  return { awsRequestId: 'bench', getRemainingTimeInMillis: () => untilMs - Date.now() } as never
}
