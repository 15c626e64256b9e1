import { redeliverySeconds } from './backoff.ts'
import type { Config } from './config.ts'
import { FailureCode, retryWindowSeconds } from './failure.ts'

/** SQS's bound: no window of retries may reach it, for it only ends messages that kill whoever reads them. */
const MAX_RECEIVE_COUNT = 1000

/** Times and counts of queues that follow from how long a function may run. */
export type QueueSettings = {
  functionTimeoutSeconds: number
  visibilitySeconds: number
  maxReceiveCount: number
}

/** The same on AWS and on one machine; serverless.yml and infra/queues.yml name them `custom.settings`. */
export const queueSettings = (functionTimeoutSeconds: number): QueueSettings => ({
  functionTimeoutSeconds,
  // As AWS advises: a function may be throttled and tried again before its batch is shown to another.
  visibilitySeconds: 6 * functionTimeoutSeconds,
  maxReceiveCount: MAX_RECEIVE_COUNT,
})

/** @throws {Error} when a window of retries is so long that the queue would give up first */
export function refuseEndlessRetries({ timings }: Pick<Config, 'timings'>): void {
  for (const code of FailureCode.options) {
    const window = retryWindowSeconds(code, timings.retryWindowSeconds)
    if (receivesWithin(code, window) < MAX_RECEIVE_COUNT) continue
    throw new Error(
      `timings.retryWindowSeconds.${code}: ${window} s can take ${MAX_RECEIVE_COUNT} receives or more, at which SQS gives up`,
    )
  }
}

/** The most receives that fit into a window of retries: each pause as short as its jitter can make it. */
export function receivesWithin(code: FailureCode, windowSeconds: number): number {
  let receives = 1
  for (let atSeconds = 0; atSeconds < windowSeconds && receives < MAX_RECEIVE_COUNT; receives++)
    atSeconds += redeliverySeconds(code, receives, () => 0)
  return receives
}
