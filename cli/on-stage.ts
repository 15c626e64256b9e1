import { existsSync } from 'node:fs'
import { GetParameterCommand, ParameterNotFound, SSMClient } from '@aws-sdk/client-ssm'
import * as z from 'zod'
import { stageNameFault } from '../lib/stage-name.ts'
import { parseWith } from '../lib/wanted.ts'
import { refused, UsageError } from './usage.ts'

/** What a deployed stage says of itself, in the parameter that infra/outputs.yml writes. */
export const StageAddresses = z.object({
  region: z.string(),
  createQueueUrl: z.string(),
  deleteQueueUrl: z.string(),
  createDeadLettersUrl: z.string(),
  deleteDeadLettersUrl: z.string(),
  eventsQueueUrl: z.string(),
  proxiesTable: z.string(),
  claimsTable: z.string(),
  topicArn: z.string(),
})

/**
 * The variables that name a deployed stage, as if they had been set by hand. Credentials and region of the look-up are
 * the SDK's usual ones. The stage's configuration is `config/<stage>.yml`, where there is one.
 * @throws {UsageError} when no such stage is deployed there
 */
export async function stageVariables(
  stage: string,
  ssm = new SSMClient({}),
): Promise<Record<string, string>> {
  const addresses = addressesIn(await parameterOf(stage, ssm), stage)
  const config = `config/${stage}.yml`
  return {
    AWS_REGION: addresses.region,
    EGRESS_CREATE_QUEUE_URL: addresses.createQueueUrl,
    EGRESS_DELETE_QUEUE_URL: addresses.deleteQueueUrl,
    EGRESS_CREATE_DLQ_URL: addresses.createDeadLettersUrl,
    EGRESS_DELETE_DLQ_URL: addresses.deleteDeadLettersUrl,
    EGRESS_EVENTS_QUEUE_URL: addresses.eventsQueueUrl,
    EGRESS_PROXIES_TABLE: addresses.proxiesTable,
    EGRESS_CLAIMS_TABLE: addresses.claimsTable,
    EGRESS_TOPIC_ARN: addresses.topicArn,
    ...(existsSync(config) ? { EGRESS_CONFIG: config } : {}),
  }
}

/** @throws {UsageError} for a name that is none: it is a part of names of files and parameters */
export function refuseStageName(stage: string): void {
  const fault = stageNameFault(stage)
  if (fault) throw new UsageError(`--stage: got ${fault.got}, wanted ${fault.wanted}`)
}

const parameterName = (stage: string) => `/egress/stages/${stage}`

/** Written by a deployment, and by whoever may write parameters. */
function addressesIn(text: string, stage: string): z.infer<typeof StageAddresses> {
  const what = `parameter ${parameterName(stage)} does not say where the stage is`
  let document: unknown
  try {
    document = JSON.parse(text)
  } catch {
    throw new UsageError(`${what}: it holds no JSON; deploy the stage again`)
  }
  const parsed = parseWith(StageAddresses, document)
  if ('complaints' in parsed) throw refused(`${what}; deploy the stage again`, parsed.complaints)
  return parsed.value
}

async function parameterOf(stage: string, ssm: SSMClient): Promise<string> {
  const name = parameterName(stage)
  try {
    const { Parameter: parameter } = await ssm.send(new GetParameterCommand({ Name: name }))
    return parameter?.Value ?? ''
  } catch (error) {
    if (!(error instanceof ParameterNotFound)) throw error
    throw new UsageError(
      `no stage ${stage} is deployed in this account and region: there is no parameter ${name} (AWS_PROFILE, AWS_REGION?)`,
    )
  }
}
