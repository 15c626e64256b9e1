import { DynamoDBClient } from '@aws-sdk/client-dynamodb'
import { SNSClient } from '@aws-sdk/client-sns'
import { SQSClient } from '@aws-sdk/client-sqs'
import { DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb'
import type { Argv } from 'yargs'
import { type Config, loadConfig } from '../lib/config.ts'
import { credentials } from '../local/account.ts'
import { type Run, readRun } from '../local/run-file.ts'
import { UsageError } from './usage.ts'

/** What a stage is known by. Each is a flag and a variable; without any, a running `egress up` is meant. */
const places = {
  createQueueUrl: { flag: 'create-queue-url', variable: 'EGRESS_CREATE_QUEUE_URL', what: 'create queue' },
  deleteQueueUrl: { flag: 'delete-queue-url', variable: 'EGRESS_DELETE_QUEUE_URL', what: 'delete queue' },
  createDlqUrl: {
    flag: 'create-dlq-url',
    variable: 'EGRESS_CREATE_DLQ_URL',
    what: 'dead-letter queue of the create queue',
  },
  deleteDlqUrl: {
    flag: 'delete-dlq-url',
    variable: 'EGRESS_DELETE_DLQ_URL',
    what: 'dead-letter queue of the delete queue',
  },
  table: { flag: 'table', variable: 'EGRESS_PROXIES_TABLE', what: 'table of proxies' },
  claimsTable: { flag: 'claims-table', variable: 'EGRESS_CLAIMS_TABLE', what: 'table of claims' },
  topicArn: { flag: 'topic-arn', variable: 'EGRESS_TOPIC_ARN', what: 'outcome topic' },
  eventsQueueUrl: { flag: 'events-queue-url', variable: 'EGRESS_EVENTS_QUEUE_URL', what: 'event queue' },
} as const
type Place = keyof typeof places

export type ConnectionArgs = { data: string; config?: string | undefined } & {
  [P in Place]?: string | undefined
}

export type Connection = {
  sqs: SQSClient
  sns: SNSClient
  rows: DynamoDBDocumentClient
  /** @throws {UsageError} when nothing says where it is */
  place(place: Place): string
  /** Whether it is said where that is. */
  has(place: Place): boolean
  /** The stage's configuration, where one is at hand. @throws {ConfigError} */
  config(): Config | undefined
  /** The running `egress up`, when that is what we talk to. */
  run?: Run
  close(): void
}

/** Adds the flags that say which installation is meant. */
export function withConnection<T>(argv: Argv<T>) {
  const described = (place: Place) => ({
    type: 'string' as const,
    requiresArg: true,
    group: 'Where (default: the egress up that runs in this folder):',
    describe: `${places[place].what} on AWS (or ${places[place].variable})`,
  })
  return argv
    .option('data', dataOption)
    .option('config', {
      type: 'string',
      requiresArg: true,
      group: 'Where (default: the egress up that runs in this folder):',
      describe: "the stage's configuration (or EGRESS_CONFIG)",
    })
    .option('create-queue-url', described('createQueueUrl'))
    .option('delete-queue-url', described('deleteQueueUrl'))
    .option('create-dlq-url', described('createDlqUrl'))
    .option('delete-dlq-url', described('deleteDlqUrl'))
    .option('table', described('table'))
    .option('claims-table', described('claimsTable'))
    .option('topic-arn', described('topicArn'))
    .option('events-queue-url', described('eventsQueueUrl'))
}

export const dataOption = {
  type: 'string',
  requiresArg: true,
  default: '.egress',
  group: 'Where (default: the egress up that runs in this folder):',
  describe: 'data folder of egress up',
} as const

/** A stage that was looked up by its name may lie in another region than the one it was looked up in. */
const regionOf = ({ AWS_REGION: region }: NodeJS.ProcessEnv) => (region === undefined ? {} : { region })

/** Talks to the AWS stage that flags or variables name, else to the running `egress up`. */
export function connect(args: ConnectionArgs, env: NodeJS.ProcessEnv): Connection {
  const given = Object.fromEntries(
    Object.entries(places).map(([place, { variable }]) => [place, args[place as Place] ?? env[variable]]),
  ) as Record<Place, string | undefined>
  const onAws = Object.values(given).some((value) => value !== undefined)
  const run = onAws ? undefined : readRun(args.data)
  const local: Partial<Record<Place, string>> = run
    ? {
        createQueueUrl: run.queues.create.url,
        deleteQueueUrl: run.queues.delete.url,
        createDlqUrl: run.queues.create.deadLetters.url,
        deleteDlqUrl: run.queues.delete.deadLetters.url,
        table: run.tables.proxies,
        claimsTable: run.tables.claims,
        topicArn: run.topicArn,
        eventsQueueUrl: run.events.url,
      }
    : {}
  const configPath = args.config ?? (onAws ? env.EGRESS_CONFIG : run?.config)
  const at = (service: 'sqs' | 'sns' | 'dynamodb') =>
    run ? { endpoint: run.endpoints[service], region: run.region, credentials } : regionOf(env)

  const sqs = new SQSClient(at('sqs'))
  const sns = new SNSClient(at('sns'))
  const dynamodb = new DynamoDBClient(at('dynamodb'))
  return {
    sqs,
    sns,
    rows: DynamoDBDocumentClient.from(dynamodb),
    place(place) {
      const value = given[place] ?? local[place]
      if (value !== undefined) return value
      const { flag, variable, what } = places[place]
      throw new UsageError(
        onAws
          ? `no ${what}: give --${flag} or set ${variable}`
          : `no egress up runs on ${args.data}: start it with \`egress up\`, or name a stage on AWS with --${flag} or ${variable}`,
      )
    },
    has: (place) => (given[place] ?? local[place]) !== undefined,
    config: () => (configPath === undefined ? undefined : loadConfig(configPath)),
    ...(run ? { run } : {}),
    close() {
      for (const client of [sqs, sns, dynamodb]) client.destroy()
    },
  }
}
