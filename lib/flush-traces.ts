import { diag, trace } from '@opentelemetry/api'

/** A flush takes at most so long … */
const PATIENCE_MS = 2000
/** … and after one that took longer, or failed, none is tried for so long: a collector that is down slows no proxy down. */
const PAUSE_MS = 60_000

/** Hands the spans that have ended to whoever collects them, before the process may be frozen; nothing without an SDK. */
export function createFlush(now: () => number = Date.now): () => Promise<void> {
  let pausedUntilMs = 0
  return async () => {
    const flush = flushOf(trace.getTracerProvider())
    if (!flush || now() < pausedUntilMs) return
    let timer: NodeJS.Timeout | undefined
    const tired = new Promise<'tired'>((resolve) => {
      timer = setTimeout(() => resolve('tired'), PATIENCE_MS)
    })
    const flushed = flush().catch((error: unknown) => {
      diag.warn('spans were not handed over', error)
      return 'failed' as const
    })
    const end = await Promise.race([flushed, tired])
    clearTimeout(timer)
    if (end === 'failed' || end === 'tired') pausedUntilMs = now() + PAUSE_MS
  }
}

/** Found by what it can do: the SDK's copy of the API is another than ours, so its classes are strangers to us. */
function flushOf(provider: object): (() => Promise<void>) | undefined {
  // Both are asked for, not believed in.
  const { getDelegate } = provider as { getDelegate?: () => object }
  const sdk = getDelegate?.call(provider) ?? provider
  const { forceFlush } = sdk as { forceFlush?: () => Promise<void> }
  return forceFlush && (async () => forceFlush.call(sdk))
}
