import { DynamoDBClient } from '@aws-sdk/client-dynamodb'
import { SNSClient } from '@aws-sdk/client-sns'
import { SQSClient } from '@aws-sdk/client-sqs'
import { SSMClient } from '@aws-sdk/client-ssm'
import { DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb'
import { createClaims } from './claims.ts'
import { loadConfig } from './config.ts'
import { readEnvironment } from './environment.ts'
import { assemble, type Definition, leaseMs, type Surroundings } from './function.ts'
import { batchHandler } from './lambda.ts'
import { createLedger } from './ledger.ts'
import type { LifeCycle } from './life-cycle.ts'
import { countOn } from './listing.ts'
import { createLogger } from './log.ts'
import { probe } from './probe.ts'
import { createQueues } from './queue.ts'
import { createSecrets } from './secrets.ts'
import { createPublish } from './topic.ts'
import { createUserDataStore } from './user-data.ts'

/**
 * A function on AWS, or on emulators of it: environment, configuration, clients, worker. Made once, at cold start.
 * @throws {Error} naming all that is wrong with the environment or the configuration
 */
export function createFunction<E extends { type: string }>(
  definition: Definition<E>,
  environment: Readonly<Record<string, string | undefined>>,
  cycle: (surroundings: Surroundings & { debug(entry: object): void }) => LifeCycle,
) {
  const env = readEnvironment(environment)
  const config = loadConfig(env.EGRESS_CONFIG)
  const log = createLogger(env.EGRESS_LOG_LEVEL)
  const client = DynamoDBDocumentClient.from(new DynamoDBClient({}), {
    marshallOptions: { removeUndefinedValues: true },
  })
  const table = env.EGRESS_PROXIES_TABLE
  const settleMs = config.timings.settleSeconds * 1000
  const queues = createQueues({
    client: new SQSClient({}),
    urls: {
      create: { queue: env.EGRESS_CREATE_QUEUE_URL, deadLetters: env.EGRESS_CREATE_DLQ_URL },
      delete: { queue: env.EGRESS_DELETE_QUEUE_URL, deadLetters: env.EGRESS_DELETE_DLQ_URL },
    },
    onVisibilityFailure: ({ message }) => log.warn({ reason: message }, 'the queue’s own time-out applies'),
  })
  const surroundings: Surroundings = {
    config,
    ledger: createLedger({ client, table, leaseMs: leaseMs(config), settleMs }),
    claims: createClaims({ client, table: env.EGRESS_CLAIMS_TABLE }),
    queues,
    userData: createUserDataStore(client, table),
    secrets: createSecrets({ ssm: () => new SSMClient({}), parameters: config.parameters }),
    publish: createPublish(new SNSClient({}), env.EGRESS_TOPIC_ARN),
    probe,
    countOn: countOn(client, table),
    log: (decision) => log.info(decision, 'decision'),
  }
  const debug = (entry: object) => log.debug(entry, 'call')
  return batchHandler({
    side: definition.side,
    worker: assemble(definition, cycle({ ...surroundings, debug }), surroundings),
    queues,
    onError: (error, messageId) =>
      log.error({ err: error, messageId }, 'the record was not processed; it comes again'),
  })
}
