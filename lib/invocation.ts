import type { Context } from 'aws-lambda'
import type { Invocation } from './life-cycle.ts'

/** Calls are cut so long before the invocation's end, to leave time for what must be written still. */
const RESERVE_MS = 5000
/** No change starts later than this before the cut: it would be cut short, and nobody would know how it ended. */
const LAST_CHANGE_MS = 2000

/** What an invocation's calls are bounded by. */
export function invocationOf(context: Pick<Context, 'getRemainingTimeInMillis'>): Invocation {
  const leftMs = Math.max(0, context.getRemainingTimeInMillis() - RESERVE_MS)
  return { signal: AbortSignal.timeout(leftMs), mutateUntilMs: Date.now() + leftMs - LAST_CHANGE_MS }
}
