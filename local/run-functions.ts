import { SQSClient } from '@aws-sdk/client-sqs'
import { ACCOUNT, credentials, REGION } from './account.ts'
import { type Declared, readDeclarations } from './declared.ts'
import type { Emulators } from './emulators.ts'
import type { LogFile } from './log-file.ts'
import { mapQueue } from './mapping.ts'
import { createOpened } from './opened.ts'
import { createSandbox } from './sandbox.ts'
import { createSandboxPool } from './sandbox-pool.ts'
import { runSchedule } from './schedule.ts'

/** Runs every function of serverless.yml: those of queues on their messages, the others at their rate. */
export function runFunctions(options: {
  emulators: Emulators
  config: string
  /** Of a function for which serverless.yml says nothing else. */
  timeoutMs: number
  logLevel: string | undefined
  log: LogFile
  /** Given to the functions besides. */
  telemetry: Readonly<Record<string, string>>
}): { close(): Promise<void> } {
  const { emulators, log } = options
  const { fed, scheduled } = readDeclarations(options.timeoutMs / 1000)
  const env = environment(options)
  const opened = createOpened()
  const feeds: { stop(): Promise<void> }[] = []

  const poolOf = ({ name, handler, timeoutMs }: Declared) =>
    createSandboxPool(() =>
      createSandbox({
        handler: handler.href,
        functionName: `egress-${name}`,
        functionArn: `arn:aws:lambda:${REGION}:${ACCOUNT}:function:egress-${name}`,
        env: { ...env, AWS_LAMBDA_FUNCTION_NAME: `egress-${name}` },
        timeoutMs,
        onLine: log.line,
      }),
    )
  const reporter = (name: string) => (problem: { what: string; error: unknown }) =>
    log.note({ level: 'warn', function: name, message: problem.what, error: String(problem.error) })

  const client = new SQSClient({ endpoint: emulators.endpoints.sqs, region: REGION, credentials })
  opened.add({ close: () => client.destroy() })
  for (const one of fed) {
    const { invoke } = opened.add(poolOf(one))
    const { batchSize, maximumConcurrency } = one
    const queue = emulators.queues[one.source]
    const onProblem = reporter(one.name)
    feeds.push(mapQueue({ client, queue, batchSize, maximumConcurrency, invoke, onProblem }))
  }
  for (const one of scheduled) {
    const { invoke } = opened.add(poolOf(one))
    const { name, rateSeconds } = one
    feeds.push(runSchedule({ name, rateSeconds, invoke, onProblem: reporter(name) }))
  }
  // All at once: each waits for its own batches in flight.
  opened.add({ close: () => Promise.all(feeds.map((feed) => feed.stop())) })
  return { close: opened.close }
}

/** Everything a function sees; nothing else of the surrounding shell. */
function environment(options: {
  config: string
  emulators: Emulators
  logLevel: string | undefined
  telemetry: Readonly<Record<string, string>>
}): Record<string, string> {
  const { endpoints, tables, queues, topicArn } = options.emulators
  return {
    ...options.telemetry,
    EGRESS_CONFIG: options.config,
    EGRESS_PROXIES_TABLE: tables.proxies,
    EGRESS_CLAIMS_TABLE: tables.claims,
    EGRESS_CREATE_QUEUE_URL: queues.create.url,
    EGRESS_DELETE_QUEUE_URL: queues.delete.url,
    EGRESS_CREATE_DLQ_URL: queues.create.deadLetters.url,
    EGRESS_DELETE_DLQ_URL: queues.delete.deadLetters.url,
    EGRESS_TOPIC_ARN: topicArn,
    EGRESS_LOG_LEVEL: options.logLevel ?? 'info',
    AWS_REGION: REGION,
    AWS_ACCESS_KEY_ID: credentials.accessKeyId,
    AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey,
    AWS_ENDPOINT_URL_DYNAMODB: endpoints.dynamodb,
    AWS_ENDPOINT_URL_SQS: endpoints.sqs,
    AWS_ENDPOINT_URL_SNS: endpoints.sns,
  }
}
