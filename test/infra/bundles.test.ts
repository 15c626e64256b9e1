import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  DeleteMessageCommand,
  ReceiveMessageCommand,
  SendMessageCommand,
  SQSClient,
} from '@aws-sdk/client-sqs'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { parseDocument, stringify } from 'yaml'
import { loadConfig } from '../../lib/config.ts'
import { METRICS, type MetricName, NAMESPACE } from '../../lib/metrics.ts'
import { ACCOUNT, credentials, REGION } from '../../local/account.ts'
import { type Emulators, startEmulators } from '../../local/emulators.ts'
import { type Lab, startLab } from '../../local/lab.ts'
import { type Mapping, mapQueue } from '../../local/mapping.ts'
import { servePage } from '../../local/page-server.ts'
import { openPorts } from '../../local/ports.ts'
import { sources } from '../../local/resources.ts'
import { type Deployed, deploy } from './deployed.ts'
import { type Packaged, packageStage } from './package.ts'
import { serveParameters } from './parameter-store.ts'
import { type Recorder, record, type Seen } from './recorder.ts'
import { functions as declared, roomOf } from './rules/functions.ts'
import { rules } from './rules/index.ts'
import { granted } from './rules/roles.ts'
import type { Given } from './rules/rule.ts'
import { target } from './template.ts'

// What is tested is what is deployed: the zips that Lambda is given, each in a process of its own with nothing else, on the
// environment that the template gives it; emulators and a simulated cluster around them.

const sdk = new URL('./fixtures/otel.mjs', import.meta.url).pathname
const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'

const LAYER = 'arn:aws:lambda:us-east-1:123456789012:layer:AWSOpenTelemetryDistroJs:9'
const STAGE = 'lab'
const TOKEN = '/egress/local/lab/token'
const PASSWORD = '/egress/local/passwords/demo'

let folder: string
let lab: Lab
let emulators: Emulators
let packaged: Packaged
let given: Given
const opened: (() => unknown)[] = []
const functions: Record<string, { deployed: Deployed; recorders: Recorder[] }> = {}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'egress-bundles-'))
  const ports = openPorts(folder)
  const page = await servePage({ port: 0 })
  opened.push(() => page.close())
  lab = await startLab({ folder, ports, pageUrl: `http://127.0.0.1:${page.port}/` })
  opened.push(() => lab.close())

  // As on AWS: secrets in the parameter store, the network somebody else's.
  const document = parseDocument(readFileSync(lab.config, 'utf8'))
  const token = readFileSync(String(document.getIn(['clusters', 'lab', 'token', 0, 'file'])), 'utf8').trim()
  document.setIn(['clusters', 'lab', 'token'], { ssm: TOKEN })
  document.setIn(['parameters'], { ssm: true })
  const stage = stringify({
    region: REGION,
    protect: true,
    concurrency: { create: 2, delete: 2 },
    logRetentionDays: 7,
    secretsKeyArn: `arn:aws:kms:${REGION}:${ACCOUNT}:key/1a2b3c4d-5e6f-7a8b-9c0d-1e2f3a4b5c6d`,
    network: { existing: { subnetIds: ['subnet-0a1b2c3d'], securityGroupIds: ['sg-0a1b2c3d'] } },
    tracing: { layers: [LAYER], environment: { OTEL_SERVICE_NAME: 'egress' } },
  })
  packaged = await packageStage(STAGE, { config: String(document), stage })
  opened.push(() => packaged.remove())
  const config = join(folder, 'lab.yml')
  writeFileSync(config, String(document))
  given = {
    stage: STAGE,
    config: loadConfig(config),
    concurrency: { create: 2, delete: 2 },
    logRetentionDays: 7,
  }

  const { functionTimeoutSeconds } = given.config.timings
  emulators = await startEmulators({ folder, ports, functionTimeoutSeconds })
  opened.push(() => emulators.close())
  const parameters = await serveParameters(
    new Map([
      [TOKEN, token],
      [PASSWORD, 'open-sesame'],
    ]),
  )
  opened.push(() => parameters.close())
  for (const [, resource] of declared(packaged.template)) {
    const room = roomOf(resource)
    functions[room] = await start(room, parameters.url)
  }

  const client = new SQSClient({ endpoint: emulators.endpoints.sqs, region: REGION, credentials })
  opened.push(() => client.destroy())
  const feeds: Mapping[] = []
  for (const side of sources) {
    const { Properties } =
      packaged.template.Resources[`${capital(side)}EventSourceMappingSQS${capital(side)}Queue`] ?? {}
    feeds.push(
      mapQueue({
        client,
        queue: emulators.queues[side],
        batchSize: Properties?.BatchSize,
        maximumConcurrency: Properties?.ScalingConfig.MaximumConcurrency,
        pollSeconds: 1,
        invoke: (event) => (functions[side] as { deployed: Deployed }).deployed.invoke(event),
        onProblem: ({ what, error }) => problems.push(`${side}: ${what}: ${error}`),
      }),
    )
  }
  opened.push(() => Promise.all(feeds.map((feed) => feed.stop())))
}, 120_000)

afterAll(async () => {
  for (const close of opened.reverse()) await close()
  rmSync(folder, { recursive: true, force: true })
})

const problems: string[] = []
const capital = (word: string) => word.charAt(0).toUpperCase() + word.slice(1)

/** The function of the template, in the environment that the template gives it. */
async function start(room: string, parametersUrl: string) {
  const { Properties } = packaged.template.Resources[`${capital(room)}LambdaFunction`] ?? {}
  if (!Properties) throw new Error(`the template has no function ${room}`)
  const before = { dynamodb: emulators.endpoints.dynamodb, sqs: emulators.endpoints.sqs, ssm: parametersUrl }
  const [dynamodb, sqs, ssm] = await Promise.all(Object.values(before).map(record))
  if (!dynamodb || !sqs || !ssm) throw new Error('a recorder is missing')
  const recorders = [dynamodb, sqs, ssm]
  opened.push(() => Promise.all(recorders.map((one) => one.close())))
  const through = (queueUrl: string) => `${sqs.url}${new URL(queueUrl).pathname}`
  const { queues, tables, topicArn } = emulators
  const made: Record<string, string> = {
    ProxiesTable: tables.proxies,
    ClaimsTable: tables.claims,
    CreateQueue: through(queues.create.url),
    DeleteQueue: through(queues.delete.url),
    CreateDeadLetters: through(queues.create.deadLetters.url),
    DeleteDeadLetters: through(queues.delete.deadLetters.url),
    OutcomeTopic: topicArn,
  }
  const variables = Object.entries(Properties.Environment.Variables).map(([name, value]) => [
    name,
    typeof value === 'string' ? value : made[target(value) ?? ''],
  ])
  const deployed = await deploy({
    folder: join(folder, room),
    zip: packaged.zip(room),
    handler: Properties.Handler,
    functionName: Properties.FunctionName,
    timeoutSeconds: Properties.Timeout,
    env: {
      ...Object.fromEntries(variables),
      // As the wrapper of a layer would. The other functions have no SDK.
      ...(room === 'create' && {
        NODE_OPTIONS: `${Object.fromEntries(variables).NODE_OPTIONS} --import ${sdk}`,
      }),
      AWS_REGION: REGION,
      AWS_ACCESS_KEY_ID: credentials.accessKeyId,
      AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey,
      AWS_ENDPOINT_URL_DYNAMODB: dynamodb.url,
      AWS_ENDPOINT_URL_SQS: sqs.url,
      AWS_ENDPOINT_URL_SNS: sqs.url,
      AWS_ENDPOINT_URL_SSM: ssm.url,
    },
  })
  opened.push(() => deployed.close())
  return { deployed, recorders }
}

const sqs = () => new SQSClient({ endpoint: emulators.endpoints.sqs, region: REGION, credentials })

const send = (QueueUrl: string, message: object | string) =>
  sqs().send(
    new SendMessageCommand({
      QueueUrl,
      MessageAttributes: { traceparent: { DataType: 'String', StringValue: traceparent } },
      MessageBody: typeof message === 'string' ? message : JSON.stringify(message),
    }),
  )

async function take(QueueUrl: string) {
  const { Messages = [] } = await sqs().send(
    new ReceiveMessageCommand({
      QueueUrl,
      WaitTimeSeconds: 2,
      MaxNumberOfMessages: 10,
      MessageAttributeNames: ['All'],
    }),
  )
  for (const { ReceiptHandle } of Messages)
    await sqs().send(new DeleteMessageCommand({ QueueUrl, ReceiptHandle }))
  return Messages
}

const said = () =>
  JSON.stringify(
    Object.values(functions).flatMap(({ deployed }) => deployed.lines.slice(-5)),
    null,
    1,
  )

/** The next event on the topic. */
async function outcome(): Promise<{ type: string; uid: string } & Record<string, unknown>> {
  const [message] = await vi
    .waitUntil(
      async () => {
        const messages = await take(emulators.events.url)
        return messages.length > 0 && messages
      },
      { timeout: 50_000, interval: 10 },
    )
    .catch(() => {
      throw new Error(`no outcome; problems: ${problems.join('; ')}; last said: ${said()}`)
    })
  const { Message, MessageAttributes } = JSON.parse(message?.Body ?? '')
  carriedByOutcomes.push(MessageAttributes.traceparent?.Value)
  return JSON.parse(Message)
}

/** The lines of a function that CloudWatch makes metrics of. */
const embedded = (room: string) =>
  (functions[room]?.deployed.lines ?? []).map((line) => JSON.parse(line)).filter((line) => '_aws' in line)

/** What a function measured, by name. */
const metricsOf = (room: string): [name: string, value: unknown][] =>
  embedded(room).flatMap(({ _aws, ...line }) =>
    _aws.CloudWatchMetrics[0].Metrics.map(({ Name }: { Name: string }) => [Name, line[Name]]),
  )

const carriedByOutcomes: (string | undefined)[] = []

/** The spans that an SDK in the function's process was given. */
const spansOf = (room: string) =>
  (functions[room]?.deployed.lines ?? []).map((line) => JSON.parse(line)).filter((line) => 'span' in line)

const seenBy = (room: string): Seen[] => functions[room]?.recorders.flatMap(({ seen }) => seen) ?? []

/** As the template would call it. */
function inTemplate({ action, on }: Seen): string {
  const { tables, topicArn } = emulators
  const [name = '', index] = on.split('/index/')
  const known: Record<string, string> = {
    [tables.proxies]: 'ProxiesTable',
    [tables.claims]: 'ClaimsTable',
    create: 'CreateQueue',
    delete: 'DeleteQueue',
    'create-dlq': 'CreateDeadLetters',
    'delete-dlq': 'DeleteDeadLetters',
    [topicArn]: 'OutcomeTopic',
    [TOKEN]: 'tokens',
    [PASSWORD]: 'passwords',
  }
  return `${action} ${known[name] ?? on}${index === undefined ? '' : `/index/${index}`}`
}

describe('packaged bundles', () => {
  const uid = 'bundled-1'
  const spec = {
    zone: 'lab-1',
    image: 'debian-12',
    proxy: { auth: { username: 'demo', passwordParameter: PASSWORD } },
    userData: '#cloud-config\nwrite_files:\n  - path: /etc/motd\n    content: hello\n',
  }
  const request = { uid, name: 'bundled', spec }

  it('make a proxy from an event of the bus, with its secrets from the parameter store', async () => {
    await send(emulators.queues.create.url, {
      version: '0',
      id: 'e1',
      source: 'egress.requests',
      account: ACCOUNT,
      'detail-type': 'ProxyRequested',
      detail: request,
    })
    expect(await outcome()).toMatchObject({ type: 'ProxyReady', uid, generation: 1 })
  })

  it('replace it, by way of both queues', async () => {
    await send(emulators.queues.create.url, {
      type: 'ProxyRequested',
      ...request,
      generation: 2,
      spec: { zone: 'lab-1', image: 'debian-12' },
    })
    expect(await outcome()).toMatchObject({ type: 'ProxyReady', uid, generation: 2 })
  })

  it.each(['create', 'delete'] as const)('bury what cannot be read, on the side %s', async (side) => {
    await send(emulators.queues[side].url, '{"type":"Nonsense"}')
    const [letter] = await vi.waitUntil(
      async () => {
        const letters = await take(emulators.queues[side].deadLetters.url)
        return letters.length > 0 && letters
      },
      { timeout: 20_000, interval: 10 },
    )
    expect(letter).toMatchObject({
      Body: '{"type":"Nonsense"}',
      MessageAttributes: { code: { StringValue: 'InvalidEvent' } },
    })
  })

  it('delete it and leave nothing behind', async () => {
    await send(emulators.queues.delete.url, { type: 'ProxyDeletionRequested', uid })
    expect(await outcome()).toMatchObject({ type: 'ProxyDeleted', uid })
    const vms = await (await fetch(`${lab.admin}/vms`)).text()
    expect(vms).toContain('9000')
    expect(vms).not.toContain('bundled')
  })

  it('find in a scheduled run of gc that nothing is left over', async () => {
    const { Properties } = packaged.template.Resources.GcSchedule ?? {}
    const report = await functions.gc?.deployed.invoke(JSON.parse(Properties?.Target.Input))
    expect(report).toMatchObject({
      dryRun: false,
      actions: [],
      warnings: [],
      looked: { silentNodes: 0, rows: 0 },
    })
    await vi.waitFor(() => expect(metricsOf('gc')).toContainEqual(['GcRuns', 1]))
    expect(metricsOf('gc')).toContainEqual(['Orphans', 0])
  })

  it('see in a scheduled round of check that all is well', async () => {
    const { Properties } = packaged.template.Resources.CheckSchedule ?? {}
    const round = await functions.check?.deployed.invoke(JSON.parse(Properties?.Target.Input))
    expect(round).toMatchObject({ summary: { clusters: ['lab'], counts: { failure: 0 } } })
    await vi.waitFor(() => expect(metricsOf('check')).toContainEqual(['ReadyProxies', 0]))
    expect(metricsOf('check')).toContainEqual(['CheckFailures', 0])
  })

  it('give their spans to an SDK that was put into the process, in the trace of whoever published', () => {
    const spans = spansOf('create')
    const [, traceId, publisher] = traceparent.split('-')
    const asked = spans.find(({ span }) => span === 'process ProxyRequested')
    expect(asked).toMatchObject({ traceId, parent: publisher, attributes: { 'egress.uid': uid } })
    const clone = spans.find(({ span }) => span === 'step clone')
    expect(clone).toMatchObject({ traceId, parent: asked?.spanId })
    const call = spans.find(({ span }) => span === 'POST /nodes/{node}/qemu/{vmid}/clone')
    expect(call).toMatchObject({
      traceId,
      parent: clone?.spanId,
      attributes: { 'http.response.status_code': 200 },
    })
    expect(carriedByOutcomes[0]).toContain(traceId)
    // Handed over at the end of each invocation, before Lambda may freeze the process.
    const handed = (functions.create?.deployed.lines ?? []).filter((line) => line === '{"flushed":true}')
    expect(handed.length).toBeGreaterThan(5)
  })

  it('have nothing to do with traces where there is none', () => {
    expect(spansOf('delete')).toEqual([])
    // Of ProxyDeleted, which the function without one told.
    expect(carriedByOutcomes.at(-1)).toBeUndefined()
  })

  it('print what they measure as CloudWatch reads it, each metric with its unit and its dimensions', () => {
    const written = [...sources, 'gc', 'check'].flatMap(embedded)
    for (const { _aws, ...line } of written) {
      const [{ Namespace, Dimensions, Metrics, ...more }] = _aws.CloudWatchMetrics
      expect({ Namespace, more }).toEqual({ Namespace: NAMESPACE, more: {} })
      for (const { Name, Unit } of Metrics) {
        const { by, unit } = METRICS[Name as MetricName]
        expect({ Name, Unit, Dimensions }).toEqual({ Name, Unit: unit, Dimensions: [['deployment', ...by]] })
      }
      const names = [...Metrics.map(({ Name }: { Name: string }) => Name), ...Dimensions[0]]
      expect(Object.keys(line).sort()).toEqual(names.sort())
      expect(line.deployment).toBe(given.config.deployment)
    }
    const names = new Set(sources.flatMap(metricsOf).map(([name]) => name))
    for (const name of [
      'ProxyReady',
      'TimeToReady',
      'ProxyDeleted',
      'TimeInStep',
      'MessageAge',
      'Lateness',
      'Waits',
    ])
      expect(names).toContain(name)
  })

  it.each(sources)('called nothing that the role of %s does not allow', (room) => {
    const seen = new Set(seenBy(room).map(inTemplate))
    const role = target(packaged.template.Resources[`${capital(room)}LambdaFunction`]?.Properties.Role) ?? ''
    const grants = granted(packaged.template, role, given)
    expect([...seen].filter((call) => !grants.has(call))).toEqual([])
    expect(seen).toContain('dynamodb:UpdateItem ProxiesTable')
    expect(seen).toContain(`sqs:SendMessage ${capital(room)}DeadLetters`)
    expect(seen).toContain('ssm:GetParameter tokens')
  })

  it.each([
    ['gc', 'dynamodb:Query ProxiesTable/index/byPhase'],
    ['check', 'dynamodb:Query ProxiesTable/index/byPhase'],
  ])('called nothing that the role of %s does not allow', (room, call) => {
    const seen = new Set(seenBy(room).map(inTemplate))
    const grants = granted(packaged.template, `${capital(room)}Role`, given)
    expect([...seen].filter((one) => !grants.has(one))).toEqual([])
    expect(seen).toContain(call)
  })

  it('let tombstones and reports be forgotten one day, and neither a row that lives nor a claim', () => {
    const forgotten = [...sources, 'gc', 'check'].flatMap(seenBy).flatMap(({ forgets }) => forgets ?? [])
    expect(new Set(forgotten)).toEqual(new Set(['Deleted', 'gc-report', 'check-report']))
  })

  // With LogFormat JSON, Lambda hands on a line that is a JSON object as it is, and wraps what is none. It takes `level` and
  // `timestamp` from the line; metrics have a time of their own. Source: AWS Lambda, "Log-level filtering".
  it('print lines that Lambda hands on as they are, with the level and the time that it looks for', () => {
    const lines = Object.values(functions).flatMap(({ deployed }) => deployed.lines)
    const ours = lines
      .map((line) => JSON.parse(line))
      .filter((line) => !('span' in line || 'flushed' in line))
    const metrics = ours.filter((line) => '_aws' in line)
    const said = ours.filter((line) => !('_aws' in line))
    expect(said.length).toBeGreaterThan(10)
    for (const line of said) {
      expect(line.level).toMatch(/^(trace|debug|info|warn|error|fatal)$/)
      expect(new Date(line.timestamp).toISOString()).toBe(line.timestamp)
    }
    for (const { _aws, level } of metrics) {
      expect(level).toBeUndefined()
      expect(Date.now() - _aws.Timestamp).toBeLessThan(600_000)
    }
  })

  it('never said a secret', () => {
    const lines = Object.values(functions).flatMap(({ deployed }) => deployed.lines)
    expect(lines.length).toBeGreaterThan(10)
    expect(lines.join('\n')).not.toContain('open-sesame')
    expect(problems).toEqual([])
  })
})

describe('template of a stage in an existing network, with a layer for traces', () => {
  it('puts the layer into every function, starts it, and lets it send to X-Ray', () => {
    for (const [, { Properties }] of declared(packaged.template)) {
      expect(Properties).toMatchObject({
        Layers: [LAYER],
        TracingConfig: { Mode: 'Active' },
        Environment: {
          Variables: {
            AWS_LAMBDA_EXEC_WRAPPER: '/opt/otel-instrument',
            OTEL_SERVICE_NAME: 'egress',
            // The wrapper adds to it.
            NODE_OPTIONS: '--enable-source-maps',
          },
        },
      })
      const role = packaged.template.Resources[target(Properties.Role) ?? '']
      expect(JSON.stringify(role?.Properties.ManagedPolicyArns)).toContain('AWSXRayDaemonWriteAccess')
    }
  })

  it.each(Object.keys(rules))('%s', async (name) => {
    expect(await rules[name as keyof typeof rules](packaged.template, given)).toEqual([])
  })
})
