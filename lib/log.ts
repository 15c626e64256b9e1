import { AsyncLocalStorage } from 'node:async_hooks'
import { type Logger, pino } from 'pino'
import { activeIds } from './tracing.ts'

const ids = new AsyncLocalStorage<Record<string, unknown>>()

/** Every line written while `work` runs bears these ids, so that no function hands a logger along. */
export const withIds = <T>(bindings: Record<string, unknown>, work: () => T): T =>
  ids.run({ ...ids.getStore(), ...bindings }, work)

/**
 * JSON lines on standard output, with `level` and `timestamp` as Lambda reads them. What could hold a secret never reaches
 * it: see the redacted paths. Source: AWS Lambda, "Log-level filtering".
 */
export function createLogger(level: string): Logger {
  return pino({
    level,
    base: null,
    messageKey: 'message',
    timestamp: () => `,"timestamp":"${new Date().toISOString()}"`,
    formatters: { level: (label) => ({ level: label }) },
    mixin: () => ({ ...ids.getStore(), ...activeIds() }),
    redact: ['*.authorization', '*.Authorization', '*.password', '*.token', '*.userData', 'userData', 'body'],
  })
}
