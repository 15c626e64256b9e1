import { DynamoDBClient } from '@aws-sdk/client-dynamodb'
import { SQSClient } from '@aws-sdk/client-sqs'
import { SSMClient } from '@aws-sdk/client-ssm'
import { DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb'
import { loadConfig } from './config.ts'
import { createEmf } from './emf.ts'
import { readEnvironment } from './environment.ts'
import { createLogger } from './log.ts'
import { createQueues } from './queue.ts'
import { createSecrets } from './secrets.ts'

/**
 * What every function starts with on AWS, or on emulators of it: environment, configuration, log, tables, queues, secrets.
 * @throws {Error} naming all that is wrong with the environment or the configuration
 */
export function coldStart(environment: Readonly<Record<string, string | undefined>>) {
  const env = readEnvironment(environment)
  const config = loadConfig(env.EGRESS_CONFIG)
  const log = createLogger(env.EGRESS_LOG_LEVEL)
  return {
    env,
    config,
    log,
    /** One line a call of Proxmox. */
    debug: (entry: object) => log.debug(entry, 'call'),
    /** Lines of the same output as the log's. Who wants no log, as a command that prints a report, gets none of them either. */
    measure:
      env.EGRESS_LOG_LEVEL === 'silent'
        ? () => {}
        : createEmf(config.deployment, (line) => void process.stdout.write(line)),
    client: DynamoDBDocumentClient.from(new DynamoDBClient({}), {
      marshallOptions: { removeUndefinedValues: true },
    }),
    queues: createQueues({
      client: new SQSClient({}),
      urls: {
        create: { queue: env.EGRESS_CREATE_QUEUE_URL, deadLetters: env.EGRESS_CREATE_DLQ_URL },
        delete: { queue: env.EGRESS_DELETE_QUEUE_URL, deadLetters: env.EGRESS_DELETE_DLQ_URL },
      },
      onVisibilityFailure: ({ message }) => log.warn({ reason: message }, 'the queue’s own time-out applies'),
    }),
    secrets: createSecrets({ ssm: () => new SSMClient({}), parameters: config.parameters }),
  }
}
