import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { stringify } from 'yaml'
import Guard, { type Serverless } from '../../infra/guard.ts'
import { aDocument } from '../lib/a-config.ts'

/** What the account answers, by operation; the real clients ask it over the wire. */
type Input = {
  ExpressionAttributeValues?: { ':phase': { S: string } }
  ExclusiveStartKey?: object
}
let answers: Record<string, (input: Input) => { status?: number; body: object }>
let asked: { operation: string; input: Record<string, unknown> }[]
let server: Server
let folder: string
let protect: boolean

beforeEach(async () => {
  asked = []
  protect = false
  answers = {
    GetParameters: () => ({ body: { Parameters: [{ Name: '/t', Type: 'SecureString', Value: 'sealed' }] } }),
    GetAccountSettings: () => ({
      body: { AccountLimit: { ConcurrentExecutions: 1000, UnreservedConcurrentExecutions: 998 } },
    }),
    GetParameter: () => ({ body: { Parameter: { Value: '{"proxiesTable":"rows"}' } } }),
    Query: () => ({ body: { Count: 0 } }),
  }
  server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const operation = request.url?.includes('account-settings')
      ? 'GetAccountSettings'
      : String(request.headers['x-amz-target']).split('.')[1]
    const body = Buffer.concat(chunks).toString()
    // CloudFormation alone speaks forms, and answers in XML.
    const form = new URLSearchParams(body)
    if (form.has('Action')) {
      asked.push({ operation: form.get('Action') ?? '', input: Object.fromEntries(form) })
      return response.writeHead(200, { 'content-type': 'text/xml' }).end(PROTECTED)
    }
    const input = JSON.parse(body || '{}')
    asked.push({ operation: operation ?? '', input })
    const { status = 200, body: answer } = answers[operation ?? '']?.(input) ?? { status: 500, body: {} }
    response.writeHead(status, { 'content-type': 'application/x-amz-json-1.0' }).end(JSON.stringify(answer))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  folder = mkdtempSync(join(tmpdir(), 'egress-guard-'))
  mkdirSync(join(folder, 'config'))
  const { lab } = aDocument().clusters
  const document = aDocument({
    clusters: { lab: { ...lab, token: { ssm: '/t' } } },
    parameters: { ssm: true },
  })
  writeFileSync(join(folder, 'config/prod.yml'), stringify(document))
})
afterEach(async () => {
  server.closeAllConnections()
  server.close()
  await once(server, 'close')
  rmSync(folder, { recursive: true })
})

const PROTECTED =
  '<UpdateTerminationProtectionResponse xmlns="http://cloudformation.amazonaws.com/doc/2010-05-15/">' +
  '<UpdateTerminationProtectionResult><StackId>arn:stack</StackId></UpdateTerminationProtectionResult>' +
  '</UpdateTerminationProtectionResponse>'

/** As the deployment tool would be, at a stage `prod`. */
const serverless = (): Serverless => ({
  serviceDir: folder,
  classes: { Error },
  service: {
    custom: { settings: { configFile: 'config/prod.yml', protect } },
    functions: {
      create: { events: [{ sqs: { maximumConcurrency: 4 } }] },
      gc: { reservedConcurrency: 1, events: [] },
    },
  },
  getProvider: () => ({
    getStage: () => 'prod',
    naming: { getStackName: () => 'egress-prod' },
    getAwsSdkV3Config: async () => ({
      region: 'eu-central-1',
      endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      credentials: { accessKeyId: 'a', secretAccessKey: 'b' },
      maxAttempts: 1,
    }),
  }),
})

const run = (hook: string) => new Guard(serverless()).hooks[hook]?.()

describe('guard', () => {
  it('lets a deployment through that lacks nothing, and reads no secret for it', async () => {
    await run('before:deploy:deploy')
    const reads = asked.filter(({ operation }) => operation === 'GetParameters')
    expect(reads).toMatchObject([{ input: { Names: ['/t'] } }])
    expect(reads[0]?.input.WithDecryption).toBeUndefined()
  })

  it('refuses a deployment with all that it lacks', async () => {
    answers.GetParameters = () => ({ body: { InvalidParameters: ['/t'] } })
    answers.GetAccountSettings = () => ({
      body: { AccountLimit: { ConcurrentExecutions: 10, UnreservedConcurrentExecutions: 10 } },
    })
    await expect(run('before:deploy:deploy')).rejects.toThrow(
      /refused:\n {2}no token of cluster lab[\s\S]*\n {2}the account allows 10/,
    )
  })

  it('counts what the queues of the stack may take', async () => {
    answers.GetAccountSettings = () => ({
      body: { AccountLimit: { ConcurrentExecutions: 1000, UnreservedConcurrentExecutions: 3 } },
    })
    await expect(run('before:deploy:deploy')).rejects.toThrow(
      'has 3 executions at once to give, the queues may take 4',
    )
  })

  it.each([true, false])('protects the stack itself as the stage says: %s', async (wanted) => {
    protect = wanted
    await run('after:deploy:deploy')
    expect(asked).toMatchObject([
      {
        operation: 'UpdateTerminationProtection',
        input: { StackName: 'egress-prod', EnableTerminationProtection: String(wanted) },
      },
    ])
  })

  it('refuses to remove a stack that the stage protects, before anything is emptied', async () => {
    protect = true
    await expect(run('before:remove:remove')).rejects.toThrow(
      'the stage is protected: write `protect: false` in infra/stages/prod.yml, deploy, and remove it then',
    )
  })

  it('lets a stack go that has no proxies, tombstones apart', async () => {
    await run('before:remove:remove')
    const phases = asked
      .filter(({ operation }) => operation === 'Query')
      .map(({ input }) => input.ExpressionAttributeValues)
    expect(phases).toEqual(
      ['Pending', 'Provisioning', 'Ready', 'Failed', 'Deleting'].map((phase) => ({ ':phase': { S: phase } })),
    )
  })

  it('refuses to remove a stack with proxies, counted over all pages', async () => {
    answers.Query = ({ ExpressionAttributeValues: values, ExclusiveStartKey: from }) => {
      if (values?.[':phase'].S !== 'Ready') return { body: { Count: 0 } }
      return { body: from ? { Count: 2 } : { Count: 5, LastEvaluatedKey: { uid: { S: 'p' } } } }
    }
    await expect(run('before:remove:remove')).rejects.toThrow(
      'there are proxies (7 Ready): delete them first',
    )
  })

  it('lets a stack go that was never there whole', async () => {
    answers.GetParameter = () => ({ status: 400, body: { __type: 'ParameterNotFound' } })
    await run('before:remove:remove')
    expect(asked.map(({ operation }) => operation)).toEqual(['GetParameter'])
  })

  it.each(['', 'nothing', 'null', '[]', '{"proxiesTable":{}}', '{"proxiesTable":""}'])(
    'refuses to remove a stack whose parameter does not name its table: %s',
    async (Value) => {
      answers.GetParameter = () => ({ body: { Parameter: { Value } } })
      await expect(run('before:remove:remove')).rejects.toThrow(
        /^parameter \/egress\/stages\/prod does not name the table of proxies.*deploy the stage again/,
      )
      expect(asked.map(({ operation }) => operation)).toEqual(['GetParameter'])
    },
  )

  it('refuses to remove a stack whose rows it cannot count', async () => {
    answers.Query = () => ({ status: 400, body: { __type: 'AccessDeniedException', message: 'no' } })
    await expect(run('before:remove:remove')).rejects.toThrow('no')
  })
})
