import { type TracerProvider, trace } from '@opentelemetry/api'
import type { Context, SQSEvent, SQSRecord } from 'aws-lambda'
import { describe, expect, it } from 'vitest'
import { batchHandler } from '../../lib/lambda.ts'
import type { Invocation } from '../../lib/life-cycle.ts'
import type { Measurement } from '../../lib/metrics.ts'
import type { Delivery } from '../../lib/queue.ts'
import type { Worker } from '../../lib/worker.ts'
import { createMemoryQueues } from '../fakes/queues.ts'
import { collectSpans } from '../lab/spans.ts'

const attributes = {
  ApproximateReceiveCount: '3',
  SentTimestamp: '0',
  SenderId: 'x',
  ApproximateFirstReceiveTimestamp: '0',
}
const record = (messageId: string, over: Partial<SQSRecord> = {}): SQSRecord => ({
  messageId,
  receiptHandle: `receipt-${messageId}`,
  body: messageId,
  attributes,
  messageAttributes: {},
  md5OfBody: '',
  eventSource: 'aws:sqs',
  eventSourceARN: 'arn:aws:sqs:x:1:create',
  awsRegion: 'x',
  ...over,
})
const batch = (...ids: string[]): SQSEvent => ({ Records: ids.map((id) => record(id)) })
const failed = (...ids: string[]) => ({
  batchItemFailures: ids.map((itemIdentifier) => ({ itemIdentifier })),
})

function open(
  worker: Worker,
  { leftMs = 60_000, showAgainIn }: { leftMs?: number; showAgainIn?: () => Promise<void> } = {},
) {
  const shown: [string, number][] = []
  const errors: [unknown, string][] = []
  const measurements: Measurement[] = []
  const queues = {
    ...createMemoryQueues(() => 0, 1000),
    async showAgainIn(_: unknown, { messageId }: Delivery, seconds: number) {
      shown.push([messageId, seconds])
      await showAgainIn?.()
    },
  }
  const handler = batchHandler({
    side: 'create',
    worker,
    queues,
    onError: (error, id) => errors.push([error, id]),
    measure: (all) => measurements.push(...all),
  })
  // The handler looks at no other part of a context.
  const context = { awsRequestId: 'r', getRemainingTimeInMillis: () => leftMs } as Context
  return { run: (event: SQSEvent) => handler(event, context), shown, errors, measurements }
}
const acknowledge = async () => ({ kind: 'acknowledge' }) as const

describe('batch handler', () => {
  it('measures what a record throws, since nothing else tells of a table that AWS refuses', async () => {
    const { run, measurements } = open(async () => {
      throw Object.assign(new Error('no'), { name: 'AccessDeniedException' })
    })
    expect(await run(batch('a'))).toEqual(failed('a'))
    expect(measurements).toEqual([{ name: 'Retries', value: 1, by: { code: 'Unexpected' } }])
  })

  it('reports nothing where every record is done with', async () => {
    const { run, shown } = open(acknowledge)
    expect(await run(batch('a', 'b', 'c'))).toEqual(failed())
    expect(shown).toEqual([])
    expect(await run(batch())).toEqual(failed())
  })

  // Report: github-aws-runners/terraform-aws-github-runner#4603
  // Report: aws/aws-lambda-go#289
  it('reports those that are to come again, and says when', async () => {
    const { run, shown } = open(async ({ body }) =>
      body === 'b' ? { kind: 'back', seconds: 7 } : { kind: 'acknowledge' },
    )
    expect(await run(batch('a', 'b', 'c'))).toEqual(failed('b'))
    expect(shown).toEqual([['b', 7]])
  })

  // Report: github-aws-runners/terraform-aws-github-runner#5024
  it('lets a record that throws hurt no neighbour, and shows it again', async () => {
    const { run, shown, errors } = open(async ({ body }) => {
      if (body === 'b') throw new Error('out of the blue')
      return { kind: 'acknowledge' }
    })
    expect(await run(batch('a', 'b', 'c'))).toEqual(failed('b'))
    expect(errors).toEqual([[new Error('out of the blue'), 'b']])
    // Third receive: 1 s doubled twice, the jitter over the upper half.
    expect(shown).toEqual([['b', expect.toSatisfy((seconds: number) => seconds >= 2 && seconds <= 4)]])
  })

  it('reports every record where the handler itself fails', async () => {
    const { run } = open(async () => ({ kind: 'back', seconds: 1 }), {
      showAgainIn: () => Promise.reject(new Error('no')),
    })
    expect(await run(batch('a', 'b'))).toEqual(failed('a', 'b'))
  })

  it('hands the worker what it needs of a record', async () => {
    const seen: Delivery[] = []
    const { run } = open(async (delivery) => {
      seen.push(delivery)
      return { kind: 'acknowledge' }
    })
    await run({
      Records: [
        record('a', { attributes: { ...attributes, SentTimestamp: '1767225600000' } }),
        record('b', { attributes: { ...attributes, ApproximateReceiveCount: '' } }),
      ],
    })
    expect(seen).toEqual([
      {
        messageId: 'a',
        body: 'a',
        receiptHandle: 'receipt-a',
        receiveCount: 3,
        sentAtMs: Date.UTC(2026, 0, 1),
        carrier: {},
      },
      { messageId: 'b', body: 'b', receiptHandle: 'receipt-b', receiveCount: 1, carrier: {} },
    ])
  })

  it('works on the records of a batch at once', async () => {
    let present = 0
    let most = 0
    const { run } = open(async () => {
      most = Math.max(most, ++present)
      await new Promise((resolve) => setImmediate(resolve))
      present -= 1
      return { kind: 'acknowledge' }
    })
    await run(batch('a', 'b', 'c'))
    expect(most).toBe(3)
  })

  // Report: tristanls/dynamodb-lock-client#1
  it('leaves nothing behind that would keep its process from being frozen', async () => {
    const waiting = () => process.getActiveResourcesInfo().filter((one) => one === 'Timeout')
    const before = waiting()
    const { run } = open(acknowledge, { leftMs: 900_000 })
    await run(batch('a', 'b'))
    expect(waiting()).toEqual(before)
  })

  // Report: awslabs/amazon-dynamodb-lock-client#29
  it('cuts calls before the invocation ends, and starts no change shortly before the cut', async () => {
    let seen: Invocation | undefined
    const watching: Worker = async (_, invocation) => {
      seen = invocation
      return { kind: 'acknowledge' }
    }
    const before = Date.now()
    await open(watching, { leftMs: 60_000 }).run(batch('a'))
    const mutateForMs = (seen?.mutateUntilMs ?? 0) - before
    expect(mutateForMs).toBeGreaterThanOrEqual(53_000)
    expect(mutateForMs).toBeLessThan(53_000 + (Date.now() - before) + 1)
    expect(seen?.signal.aborted).toBe(false)

    const untilCut: Worker = async (_, { signal, mutateUntilMs }) => {
      await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
      expect(Date.now()).toBeGreaterThanOrEqual(mutateUntilMs)
      return { kind: 'acknowledge' }
    }
    expect(await open(untilCut, { leftMs: 5010 }).run(batch('a'))).toEqual(failed())
  })
})

describe('batch handler and traces', () => {
  const traceparent = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`
  const attribute = (stringValue: string) => ({ stringValue, dataType: 'String' }) as const
  const withTrace = record('a', {
    messageAttributes: { traceparent: attribute(traceparent), baggage: attribute('x=1') },
  })
  const envelope = (MessageAttributes: object) =>
    record('b', { body: JSON.stringify({ Type: 'Notification', Message: '{}', MessageAttributes }) })
  const carriers = async (...Records: SQSRecord[]) => {
    const seen: Delivery['carrier'][] = []
    const { run } = open(async ({ carrier }) => {
      seen.push(carrier)
      return { kind: 'acknowledge' }
    })
    expect(await run({ Records })).toEqual(failed())
    return seen
  }

  it('hands on the trace of a record, from its attributes or from an envelope of SNS, and nothing else', async () => {
    const spans = collectSpans()
    try {
      const inside = envelope({ traceparent: { Type: 'String', Value: traceparent } })
      const mangled = record('c', { body: '{"traceparent"' })
      expect(await carriers(withTrace, inside, mangled, envelope({}))).toEqual([
        { traceparent },
        { traceparent },
        {},
        {},
      ])
    } finally {
      await spans.stop()
    }
  })

  it('has nothing to do with them where there is no SDK', async () => {
    expect(await carriers(withTrace)).toEqual([{}])
  })

  it('hands the spans over before it answers', async () => {
    const flushes: string[] = []
    trace.setGlobalTracerProvider(flushing(async () => void flushes.push('flushed')))
    const { run } = open(acknowledge)
    expect(await run(batch('a'))).toEqual(failed())
    expect(await run(batch('b'))).toEqual(failed())
    trace.disable()
    expect(flushes).toEqual(['flushed', 'flushed'])
  })

  it.each([
    ['refuses', () => Promise.reject(new Error('collector down'))],
    [
      'throws',
      () => {
        throw new Error('collector down')
      },
    ],
    ['hangs', () => new Promise<void>(() => {})],
  ])(
    'answers all the same when whoever collects them %s, and leaves it alone for a while',
    async (_, forceFlush) => {
      let tries = 0
      const counted = () => {
        tries += 1
        return forceFlush()
      }
      trace.setGlobalTracerProvider(flushing(counted))
      const { run } = open(acknowledge)
      for (const id of ['a', 'b', 'c']) expect(await run(batch(id))).toEqual(failed())
      trace.disable()
      expect(tries).toBe(1)
    },
  )
})

/** An SDK of which nothing is used but that it hands over. */
const flushing = (forceFlush: () => Promise<void>) =>
  ({ getTracer: () => trace.getTracer('none'), forceFlush }) as TracerProvider
