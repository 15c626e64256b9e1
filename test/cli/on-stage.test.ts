import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { GetParameterCommand, ParameterNotFound, SSMClient } from '@aws-sdk/client-ssm'
import { mockClient } from 'aws-sdk-client-mock'
import { afterEach, describe, expect, it } from 'vitest'
import { refuseStageName, StageAddresses, stageVariables } from '../../cli/on-stage.ts'
import { egress } from './egress.ts'
import { openStage } from './stage.ts'

const addresses = {
  region: 'eu-central-1',
  createQueueUrl: 'https://sqs/create',
  deleteQueueUrl: 'https://sqs/delete',
  createDeadLettersUrl: 'https://sqs/create-dead',
  deleteDeadLettersUrl: 'https://sqs/delete-dead',
  eventsQueueUrl: 'https://sqs/events',
  proxiesTable: 'proxies',
  claimsTable: 'claims',
  topicArn: 'arn:aws:sns:eu-central-1:1:outcomes',
}

describe('on-stage', () => {
  const ssm = mockClient(SSMClient)
  afterEach(() => ssm.reset())

  it('takes a stage’s addresses from its parameter', async () => {
    ssm
      .on(GetParameterCommand, { Name: '/egress/stages/prod' })
      .resolves({ Parameter: { Value: JSON.stringify(addresses) } })
    expect(await stageVariables('prod', new SSMClient({ region: 'eu-central-1' }))).toMatchObject({
      AWS_REGION: 'eu-central-1',
      EGRESS_CREATE_DLQ_URL: 'https://sqs/create-dead',
      EGRESS_PROXIES_TABLE: 'proxies',
    })
  })

  it('says which parameter is missing where no such stage is deployed', async () => {
    ssm.on(GetParameterCommand).rejects(new ParameterNotFound({ $metadata: {}, message: '' }))
    const looked = stageVariables('prod', new SSMClient({ region: 'eu-central-1' }))
    await expect(looked).rejects.toThrow(
      'no stage prod is deployed in this account and region: there is no parameter /egress/stages/prod',
    )
  })

  it.each([
    ['no JSON', 'nothing'],
    ['nothing', ''],
    ['a list', '[]'],
    ['null', 'null'],
    ['addresses that are none', JSON.stringify({ ...addresses, proxiesTable: { secret: 1 } })],
    ['addresses left out', '{"region":"eu-central-1"}'],
  ])('says of a parameter with %s what to do about it, in its own words', async (_, Value) => {
    ssm.on(GetParameterCommand).resolves({ Parameter: { Value } })
    const error: unknown = await stageVariables('prod', new SSMClient({ region: 'eu-central-1' })).catch(
      (thrown: unknown) => thrown,
    )
    expect(error).toMatchObject({ name: 'UsageError' })
    expect(String(error)).toContain('parameter /egress/stages/prod does not say where the stage is')
    expect(String(error)).toContain('deploy the stage again')
  })

  it('asks for no stage whose name is none', () => {
    for (const name of ['', '../prod', 'a b', 'x'.repeat(30)])
      expect(() => refuseStageName(name)).toThrow(/^--stage: got .*, wanted a name of lower-case letters/)
  })

  it('reads what the template writes, key by key', () => {
    const template = readFileSync(new URL('../../infra/outputs.yml', import.meta.url), 'utf8')
    const written = [...template.matchAll(/"(\w+)":"\$\{/g)].map(([, key]) => key)
    expect(written.sort()).toEqual(Object.keys(StageAddresses.shape).sort())
  })
})

it('egress --stage drives the stage that the parameter names', async () => {
  const stage = await openStage()
  const value = JSON.stringify({
    ...addresses,
    region: 'us-east-1',
    createQueueUrl: stage.urls.create.queue,
    proxiesTable: stage.names.proxies,
  })
  const ssm = createServer((_, answer) => answer.end(JSON.stringify({ Parameter: { Value: value } }))).listen(
    0,
    '127.0.0.1',
  )
  await new Promise((resolve) => ssm.once('listening', resolve))
  const { port } = ssm.address() as AddressInfo
  const env = {
    AWS_ENDPOINT_URL_SSM: `http://127.0.0.1:${port}`,
    AWS_ENDPOINT_URL_DYNAMODB: stage.endpoints.dynamodb,
    AWS_REGION: 'us-east-1',
    AWS_ACCESS_KEY_ID: 'local',
    AWS_SECRET_ACCESS_KEY: 'local',
  }
  expect(await egress(['list', '--stage', 'prod'], { env })).toMatchObject({ code: 0 })
  ssm.close()
  await stage.close()
})
