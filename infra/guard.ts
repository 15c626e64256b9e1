import { createRequire } from 'node:module'
import { join } from 'node:path'
import { DynamoDBClient, QueryCommand } from '@aws-sdk/client-dynamodb'
import { GetParameterCommand, GetParametersCommand, ParameterNotFound, SSMClient } from '@aws-sdk/client-ssm'
import * as z from 'zod'
import { loadConfig } from '../lib/config.ts'
import { reasonToStay } from './leaving.ts'
import { type Account, preflight } from './preflight.ts'
import type { Settings } from './settings.ts'

/** What of the deployment tool is used here. */
export type Serverless = {
  serviceDir: string
  classes: { Error: new (message: string) => Error }
  service: {
    custom: { settings: Pick<Settings, 'configFile' | 'protect'> }
    functions: Record<
      string,
      { reservedConcurrency?: number; events?: { sqs?: { maximumConcurrency: number } }[] }
    >
  }
  getProvider(name: 'aws'): {
    getStage(): string
    naming: { getStackName(): string }
    getAwsSdkV3Config(): Promise<ConstructorParameters<typeof SSMClient>[0]>
  }
}

/**
 * Stands before `deploy` and `remove`: a deployment that cannot work is refused with everything it lacks, and a removal that
 * would leave machines behind which nobody knows of. What is protected is so against the console, too, which asks nobody here.
 */
export default class Guard {
  readonly hooks: Record<string, () => Promise<void>>

  constructor(serverless: Serverless) {
    const refuse = (lines: string[]) => {
      if (lines.length > 0)
        throw new serverless.classes.Error(['refused:', ...lines.map((line) => `  ${line}`)].join('\n'))
    }
    this.hooks = {
      'before:deploy:deploy': async () => refuse(await missing(serverless)),
      'after:deploy:deploy': () => protectStack(serverless),
      'before:remove:remove': async () =>
        refuse([...stillProtected(serverless), ...(await left(serverless))]),
    }
  }
}

async function missing(serverless: Serverless): Promise<string[]> {
  const { settings } = serverless.service.custom
  const aws = serverless.getProvider('aws')
  const functions = Object.values(serverless.service.functions)
  const executions = {
    reserved: sum(functions.map(({ reservedConcurrency = 0 }) => reservedConcurrency)),
    batches: sum(
      functions.flatMap(({ events = [] }) => events.map(({ sqs }) => sqs?.maximumConcurrency ?? 0)),
    ),
  }
  const config = loadConfig(join(serverless.serviceDir, settings.configFile))
  return preflight(aws.getStage(), config, executions, await account(serverless))
}

async function account(serverless: Serverless): Promise<Account> {
  const clientConfig = await serverless.getProvider('aws').getAwsSdkV3Config()
  return {
    async parameterTypes(names) {
      const ssm = new SSMClient(clientConfig ?? {})
      const found = new Map<string, string>()
      // Ten names a call. Without decryption: the type is asked for, not the secret.
      for (let from = 0; from < names.length; from += 10) {
        const { Parameters = [] } = await ssm.send(
          new GetParametersCommand({ Names: names.slice(from, from + 10) }),
        )
        for (const { Name = '', Type = '' } of Parameters) found.set(Name, Type)
      }
      return found
    },
    async concurrency() {
      const { LambdaClient, GetAccountSettingsCommand } = ofTheTool('@aws-sdk/client-lambda')
      const client = new LambdaClient(clientConfig)
      const answer = AccountSettings.parse(await client.send(new GetAccountSettingsCommand({})))
      return {
        limit: answer.AccountLimit.ConcurrentExecutions,
        unreserved: answer.AccountLimit.UnreservedConcurrentExecutions,
      }
    },
  }
}

const AccountSettings = z.object({
  AccountLimit: z.object({ ConcurrentExecutions: z.int(), UnreservedConcurrentExecutions: z.int() }),
})

type Client = new (config: unknown) => { send(command: object): Promise<unknown> }
type Command = new (input: object) => object
/** Declared by what is used of them, since the packages are osls's dependencies and not ours. */
type Clients = {
  '@aws-sdk/client-lambda': { LambdaClient: Client; GetAccountSettingsCommand: Command }
  '@aws-sdk/client-cloudformation': {
    CloudFormationClient: Client
    UpdateTerminationProtectionCommand: Command
  }
}

/** The deployment tool's own clients: it brings those with which it deploys. */
const ofTheTool = <P extends keyof Clients>(name: P): Clients[P] =>
  createRequire(import.meta.resolve('osls'))(name)

/** As the stage says now, so that it is taken away again by a deployment. */
async function protectStack(serverless: Serverless): Promise<void> {
  const aws = serverless.getProvider('aws')
  const { CloudFormationClient, UpdateTerminationProtectionCommand } = ofTheTool(
    '@aws-sdk/client-cloudformation',
  )
  const client = new CloudFormationClient(await aws.getAwsSdkV3Config())
  await client.send(
    new UpdateTerminationProtectionCommand({
      StackName: aws.naming.getStackName(),
      EnableTerminationProtection: serverless.service.custom.settings.protect,
    }),
  )
}

/** Said before anything is emptied: CloudFormation would refuse at the end. */
function stillProtected(serverless: Serverless): string[] {
  const stage = serverless.getProvider('aws').getStage()
  return serverless.service.custom.settings.protect
    ? [
        `the stage is protected: write \`protect: false\` in infra/stages/${stage}.yml, deploy, and remove it then`,
      ]
    : []
}

async function left(serverless: Serverless): Promise<string[]> {
  const aws = serverless.getProvider('aws')
  const clientConfig = (await aws.getAwsSdkV3Config()) ?? {}
  const table = await proxiesTable(new SSMClient(clientConfig), aws.getStage())
  // A stack that was never there whole has no rows.
  if (table === undefined) return []
  const dynamodb = new DynamoDBClient(clientConfig)
  const reason = await reasonToStay((phase) => count(dynamodb, table, phase))
  return reason === undefined ? [] : [reason]
}

async function proxiesTable(ssm: SSMClient, stage: string): Promise<string | undefined> {
  try {
    const { Parameter } = await ssm.send(new GetParameterCommand({ Name: `/egress/stages/${stage}` }))
    return tableIn(Parameter?.Value ?? '', stage)
  } catch (error) {
    if (error instanceof ParameterNotFound) return undefined
    throw error
  }
}

/** @throws {Error} for a parameter that somebody overwrote: whether proxies are left cannot be known then */
function tableIn(text: string, stage: string): string {
  const refuse = () =>
    new Error(
      `parameter /egress/stages/${stage} does not name the table of proxies, so nobody knows whether any are left: deploy the stage again, which writes it anew`,
    )
  let document: unknown
  try {
    document = JSON.parse(text)
  } catch {
    throw refuse()
  }
  const parsed = z.object({ proxiesTable: z.string().min(1) }).safeParse(document)
  if (!parsed.success) throw refuse()
  return parsed.data.proxiesTable
}

async function count(dynamodb: DynamoDBClient, TableName: string, phase: string): Promise<number> {
  let total = 0
  let ExclusiveStartKey: Record<string, never> | undefined
  do {
    const page = await dynamodb.send(
      new QueryCommand({
        TableName,
        IndexName: 'byPhase',
        Select: 'COUNT',
        KeyConditionExpression: 'phase = :phase',
        ExpressionAttributeValues: { ':phase': { S: phase } },
        ExclusiveStartKey,
      }),
    )
    total += page.Count ?? 0
    // Handed back as it came.
    ExclusiveStartKey = page.LastEvaluatedKey as Record<string, never> | undefined
  } while (ExclusiveStartKey)
  return total
}

const sum = (numbers: number[]) => numbers.reduce((so, one) => so + one, 0)
