import { randomUUID } from 'node:crypto'
import { credentials } from '../local/account.ts'
import type { Connection } from './connection.ts'
import { UsageError } from './usage.ts'

/** What a scheduled function asks of whoever runs it. */
type RunContext = { awsRequestId: string; getRemainingTimeInMillis(): number }
type Handler<T> = (event: unknown, context: RunContext) => Promise<T>

/**
 * Runs a scheduled function in this process, as its schedule would run it where it is deployed: on the tables and queues of the
 * `egress up` that runs here, or of the stage on AWS that the environment names. Its clusters must be reachable from here.
 * @throws {UsageError} when a stage is not named whole
 */
export async function runHere<T>(
  load: () => Promise<{ handler: Handler<T> }>,
  event: unknown,
  { connection, env }: { connection: Connection; env: NodeJS.ProcessEnv },
): Promise<T> {
  const config = connection.run?.config ?? env.EGRESS_CONFIG
  if (config === undefined) throw new UsageError('no configuration: set EGRESS_CONFIG')
  const endpoints = connection.run?.endpoints
  // A handler reads its environment once, when it is loaded.
  Object.assign(process.env, {
    EGRESS_CONFIG: config,
    EGRESS_PROXIES_TABLE: connection.place('table'),
    EGRESS_CLAIMS_TABLE: connection.place('claimsTable'),
    EGRESS_CREATE_QUEUE_URL: connection.place('createQueueUrl'),
    EGRESS_DELETE_QUEUE_URL: connection.place('deleteQueueUrl'),
    EGRESS_CREATE_DLQ_URL: connection.place('createDlqUrl'),
    EGRESS_DELETE_DLQ_URL: connection.place('deleteDlqUrl'),
    EGRESS_TOPIC_ARN: connection.place('topicArn'),
    EGRESS_LOG_LEVEL: 'silent',
    ...(connection.run && {
      AWS_REGION: connection.run.region,
      AWS_ACCESS_KEY_ID: credentials.accessKeyId,
      AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey,
    }),
    ...(endpoints && {
      AWS_ENDPOINT_URL_DYNAMODB: endpoints.dynamodb,
      AWS_ENDPOINT_URL_SQS: endpoints.sqs,
      AWS_ENDPOINT_URL_SNS: endpoints.sns,
    }),
  })
  const { handler } = await load()
  const seconds = connection.config()?.timings.functionTimeoutSeconds ?? 60
  const endsAt = Date.now() + seconds * 1000
  return handler(event, {
    awsRequestId: randomUUID(),
    getRemainingTimeInMillis: () => Math.max(0, endsAt - Date.now()),
  })
}
