import { DynamoDBClient } from '@aws-sdk/client-dynamodb'
import { SNSClient } from '@aws-sdk/client-sns'
import { SQSClient } from '@aws-sdk/client-sqs'
import { SSMClient } from '@aws-sdk/client-ssm'
import { DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb'
import { type Claims, createClaims, slotPartition } from './claims.ts'
import { type Config, loadConfig } from './config.ts'
import { readEnvironment } from './environment.ts'
import type { Continue, Resume } from './events.ts'
import { batchHandler } from './lambda.ts'
import { createLedger } from './ledger.ts'
import type { LifeCycle } from './life-cycle.ts'
import { createLogger } from './log.ts'
import { createQueues } from './queue.ts'
import type { BlankRow, Row, Side } from './record.ts'
import type { Ruling } from './ruling.ts'
import { createSecrets, type Secrets } from './secrets.ts'
import { createPublish } from './topic.ts'
import { createTurn } from './turn.ts'
import { createUserDataStore, type UserDataStore } from './user-data.ts'
import { createWorker } from './worker.ts'

/** What a life cycle is joined to when its function starts. */
export type Surroundings = {
  config: Config
  claims: Claims
  userData: UserDataStore
  secrets: Secrets
  documents: DynamoDBDocumentClient
  proxiesTable: string
  debug(entry: object, message: string): void
}

/**
 * One of the two functions, wired: environment, configuration, clients, worker. Runs once, at cold start.
 * @throws {Error} naming all that is wrong with environment or configuration
 */
export function createFunction<E extends { type: string }>(options: {
  side: Side
  env: Readonly<Record<string, string | undefined>>
  parse(body: string, config: Config): E | Continue | Resume
  keyOf(event: E): string
  judge(event: E, row: Row | BlankRow, now: number, config: Config): Ruling
  cycle(surroundings: Surroundings): LifeCycle
}) {
  const { side } = options
  const env = readEnvironment(options.env)
  const config = loadConfig(env.EGRESS_CONFIG)
  const log = createLogger(env.EGRESS_LOG_LEVEL)
  const documents = DynamoDBDocumentClient.from(new DynamoDBClient({}), {
    marshallOptions: { removeUndefinedValues: true },
  })
  const { timings } = config
  const settleMs = timings.settleSeconds * 1000
  const ledger = createLedger({
    client: documents,
    table: env.EGRESS_PROXIES_TABLE,
    leaseMs: leaseMs(config),
    settleMs,
  })
  const claims = createClaims({ client: documents, table: env.EGRESS_CLAIMS_TABLE })
  const userData = createUserDataStore(documents, env.EGRESS_PROXIES_TABLE)
  const queues = createQueues({
    client: new SQSClient({}),
    urls: {
      create: { queue: env.EGRESS_CREATE_QUEUE_URL, deadLetters: env.EGRESS_CREATE_DLQ_URL },
      delete: { queue: env.EGRESS_DELETE_QUEUE_URL, deadLetters: env.EGRESS_DELETE_DLQ_URL },
    },
    onVisibilityFailure: (error) => log.warn({ error: error.message }, 'the queue’s own time-out applies'),
  })
  const secrets = createSecrets({ ssm: () => new SSMClient({}), parameters: config.parameters })
  const leave = (row: Row) => leaveSlot(row, claims, config)
  const cycle = options.cycle({
    config,
    claims,
    userData,
    secrets,
    documents,
    proxiesTable: env.EGRESS_PROXIES_TABLE,
    debug: (entry, message) => log.debug(entry, message),
  })
  const turn = createTurn({
    cycle,
    ledger,
    queues,
    userData,
    publish: createPublish(new SNSClient({}), env.EGRESS_TOPIC_ARN),
    leave,
    settleMs,
    tombstoneDays: timings.tombstoneDays,
    retryWindowSeconds: timings.retryWindowSeconds,
  })
  const worker = createWorker<E>({
    side,
    parse: (body) => options.parse(body, config),
    keyOf: options.keyOf,
    judge: (event, row, now) => options.judge(event, row, now, config),
    turn,
    ledger,
    queues,
    userData,
    leave,
    stallMs: timings.stallSeconds * 1000,
    log: (decision) => log.info(decision, 'decision'),
  })
  return batchHandler({
    side,
    worker,
    queues,
    onError: (error, messageId) =>
      log.error({ err: error, messageId }, 'the record could not be processed; it comes again'),
  })
}

/** Longer than any invocation can run, clocks that disagree included. */
const leaseMs = ({ timings }: Config) =>
  (timings.functionTimeoutSeconds + 30 + timings.maxClockSkewSeconds) * 1000

/** The steps that work in a place of their storage's queue. */
const SLOT_STEPS = new Set<Row['step']>(['clone', 'destroy'])

async function leaveSlot(row: Row, claims: Claims, config: Config): Promise<void> {
  const { step, place, uid } = row
  const cluster = place && config.clusters[place.cluster]
  if (SLOT_STEPS.has(step) && place && cluster) await claims.freeSlots(slotPartition(place, cluster), uid)
}
