import { readFileSync } from 'node:fs'
import { parseDocument } from 'yaml'
import * as z from 'zod'
import { queueSettings } from '../lib/queue-settings.ts'
import type { SourceId } from './resources.ts'

export type Declared = { name: string; handler: URL; timeoutMs: number }

/** The functions of serverless.yml with what starts them, and their queues: what AWS is told, read for one machine. */
export type Declarations = {
  fed: (Declared & { source: SourceId; batchSize: number; maximumConcurrency: number })[]
  scheduled: (Declared & { rateSeconds: number })[]
  queues: Record<SourceId, DeclaredQueue>
}

export type DeclaredQueue = {
  visibilitySeconds: number
  maxReceiveCount: number
  retentionSeconds: number
  deadLetterRetentionSeconds: number
}

const Service = z.object({
  provider: z.object({ timeout: z.int() }),
  functions: z.record(
    z.string(),
    z.object({
      handler: z.string(),
      timeout: z.int().optional(),
      events: z
        .array(
          z.object({
            sqs: z.object({ arn: z.string(), batchSize: z.int(), maximumConcurrency: z.int() }),
          }),
        )
        .default([]),
    }),
  ),
})

const Source = z.object({
  Properties: z.object({
    MessageRetentionPeriod: z.int(),
    VisibilityTimeout: z.int(),
    RedrivePolicy: z.object({ maxReceiveCount: z.int() }),
  }),
})
const DeadLetters = z.object({ Properties: z.object({ MessageRetentionPeriod: z.int() }) })
const Queues = z.object({
  Resources: z.object({
    CreateQueue: Source,
    CreateDeadLetters: DeadLetters,
    DeleteQueue: Source,
    DeleteDeadLetters: DeadLetters,
  }),
})

const Schedules = z.object({
  Resources: z.record(
    z.string(),
    z.object({
      Properties: z.object({
        ScheduleExpression: z.string().optional(),
        Target: z.object({ Arn: z.string() }).optional(),
      }),
    }),
  ),
})

/** @throws {Error} when the files no longer say what is read here */
export function readDeclarations(functionTimeoutSeconds: number): Declarations {
  const settings = { ...queueSettings(functionTimeoutSeconds) }
  const { functions, provider } = Service.parse(read('serverless.yml', settings))
  const { Resources: queues } = Queues.parse(read('infra/queues.yml', settings))
  const { Resources: schedules } = Schedules.parse(read('infra/schedules.yml', settings))
  const rates = new Map(
    Object.values(schedules).flatMap(({ Properties: { ScheduleExpression: rate, Target } }) =>
      rate === undefined || !Target ? [] : [[Target.Arn, rateSeconds(rate)] as const],
    ),
  )
  const declared = Object.entries(functions).map(
    ([name, { handler, timeout = provider.timeout, events }]) => ({
      name,
      handler: new URL(`../${handler.replace(/\.handler$/, '.ts')}`, import.meta.url),
      timeoutMs: timeout * 1000,
      events,
    }),
  )
  return {
    fed: declared.flatMap(({ events, ...one }) =>
      events.map(({ sqs: { arn, ...batches } }) => ({ ...one, ...batches, source: sourceOf(arn) })),
    ),
    scheduled: declared.flatMap(({ events: _, ...one }) => {
      const seconds = rates.get(`${capital(one.name)}LambdaFunction.Arn`)
      return seconds === undefined ? [] : [{ ...one, rateSeconds: seconds }]
    }),
    queues: {
      create: queue(queues.CreateQueue, queues.CreateDeadLetters),
      delete: queue(queues.DeleteQueue, queues.DeleteDeadLetters),
    },
  }
}

function queue({ Properties }: z.infer<typeof Source>, dead: z.infer<typeof DeadLetters>): DeclaredQueue {
  return {
    visibilitySeconds: Properties.VisibilityTimeout,
    maxReceiveCount: Properties.RedrivePolicy.maxReceiveCount,
    retentionSeconds: Properties.MessageRetentionPeriod,
    deadLetterRetentionSeconds: dead.Properties.MessageRetentionPeriod,
  }
}

/** CloudFormation's tags (`!GetAtt`) are left as the text behind them; a setting is its number, one that only AWS has its fallback. */
function read(file: string, settings: Readonly<Record<string, number>>): unknown {
  const text = readFileSync(new URL(`../${file}`, import.meta.url), 'utf8')
  const resolved = text.replace(
    /\$\{self:custom\.settings\.([\w.]+)(?:, ([^}]+))?\}/g,
    (whole, name: string, fallback: string | undefined) => String(settings[name] ?? fallback ?? whole),
  )
  return parseDocument(resolved, { merge: true, logLevel: 'silent' }).toJS()
}

function sourceOf(arn: string): SourceId {
  const side = /^(Create|Delete)Queue\.Arn$/.exec(arn)?.[1]?.toLowerCase()
  if (side === 'create' || side === 'delete') return side
  throw new Error(`serverless.yml feeds a function from ${arn}, which one machine does not have`)
}

const UNITS: Record<string, number> = { minute: 60, hour: 3600, day: 86_400 }

function rateSeconds(expression: string): number {
  const [, count, unit = ''] = /^rate\((\d+) (minute|hour|day)s?\)$/.exec(expression) ?? []
  const seconds = Number(count) * (UNITS[unit] ?? Number.NaN)
  if (Number.isNaN(seconds)) throw new Error(`one machine runs functions at a rate, not by ${expression}`)
  return seconds
}

const capital = (word: string) => word.charAt(0).toUpperCase() + word.slice(1)
