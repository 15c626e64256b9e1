import middy, { type MiddlewareObj } from '@middy/core'
import type { Context, SQSBatchResponse, SQSEvent, SQSRecord } from 'aws-lambda'
import { redeliverySeconds } from './backoff.ts'
import { carrierIn } from './carrier-in.ts'
import { asFailing } from './failure.ts'
import { createFlush } from './flush-traces.ts'
import { invocationOf } from './invocation.ts'
import type { Invocation } from './life-cycle.ts'
import { withIds } from './log.ts'
import { type Measure, measured } from './metrics.ts'
import type { Delivery, Queues } from './queue.ts'
import type { Side } from './record.ts'
import type { Verdict, Worker } from './worker.ts'

type Lambda = (event: SQSEvent, context: Context) => Promise<SQSBatchResponse>
/** What the inner handler hands to `partialBatch`: for each record, whether it is done with. */
type Outcomes = { messageId: string; done: boolean }[]

/**
 * A function behind a queue: each record is processed by itself, and only those that are to come again are reported as
 * failed (ReportBatchItemFailures). What a record throws hurts no neighbour; it comes again.
 */
export function batchHandler(options: {
  side: Side
  worker: Worker
  queues: Queues
  onError(error: unknown, messageId: string): void
  measure: Measure
}): Lambda {
  const { side, worker, queues, onError, measure } = options
  const flush = createFlush()

  async function isDone(record: SQSRecord, invocation: Invocation): Promise<boolean> {
    const delivery = deliveryOf(record)
    const verdict = await worker(delivery, invocation).catch((error: unknown): Verdict => {
      onError(error, record.messageId)
      // Where AWS refuses the function its tables, this is all that anybody hears of it.
      measure([measured('Retries', 1, { code: asFailing(error).code })])
      return { kind: 'back', seconds: redeliverySeconds('Unexpected', delivery.receiveCount, Math.random) }
    })
    if (verdict.kind === 'acknowledge') return true
    await queues.showAgainIn(side, delivery, verdict.seconds)
    return false
  }

  const inner = async ({ Records: records }: SQSEvent, context: Context): Promise<Outcomes> => {
    const invocation = invocationOf(context)
    const outcomes = await Promise.all(
      records.map((record) =>
        withIds({ requestId: context.awsRequestId, messageId: record.messageId }, async () => ({
          messageId: record.messageId,
          done: await isDone(record, invocation),
        })),
      ),
    )
    await flush()
    return outcomes
  }
  // What middy returns is the handler; the types of the stages meet only at run time.
  return middy(inner as never).use(partialBatch()) as unknown as Lambda
}

/** Turns the outcomes into Lambda's partial batch response. An error of the handler itself fails every record. */
function partialBatch(): MiddlewareObj<SQSEvent, unknown> {
  const failures = (ids: string[]) => ({
    batchItemFailures: ids.map((itemIdentifier) => ({ itemIdentifier })),
  })
  return {
    after(request) {
      // `inner` returns nothing else.
      const outcomes = request.response as Outcomes
      request.response = failures(outcomes.filter(({ done }) => !done).map(({ messageId }) => messageId))
    },
    onError(request) {
      request.response = failures(request.event.Records.map(({ messageId }) => messageId))
    },
  }
}

function deliveryOf(record: SQSRecord): Delivery {
  const { messageId, body, receiptHandle, attributes } = record
  const sentAtMs = Number(attributes.SentTimestamp)
  return {
    messageId,
    body,
    receiptHandle,
    receiveCount: Number(attributes.ApproximateReceiveCount) || 1,
    ...(sentAtMs > 0 ? { sentAtMs } : {}),
    carrier: carrierIn(record),
  }
}
