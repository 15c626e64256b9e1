import { existsSync } from 'node:fs'
import { GetParameterCommand, ParameterNotFound, SSMClient } from '@aws-sdk/client-ssm'
import * as z from 'zod'
import { UsageError } from './usage.ts'

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
  const addresses = StageAddresses.parse(JSON.parse(await parameterOf(stage, ssm)))
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

async function parameterOf(stage: string, ssm: SSMClient): Promise<string> {
  const name = `/egress/stages/${stage}`
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
