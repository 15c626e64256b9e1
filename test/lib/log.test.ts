import { trace } from '@opentelemetry/api'
import { type Logger, symbols } from 'pino'
import { describe, expect, it, vi } from 'vitest'
import { createLogger, withIds } from '../../lib/log.ts'
import { traceDelivery, traceRun } from '../../lib/tracing.ts'
import { collectSpans } from '../lab/spans.ts'

const CANARY = 'correct-horse-battery-staple'

/** What is written to standard output meanwhile, line by line. */
async function written(work: (log: Logger) => unknown): Promise<Record<string, unknown>[]> {
  const lines: string[] = []
  const log = createLogger('debug')
  // pino types its symbols, but not what they lead to.
  const stream = Reflect.get(log, symbols.streamSym) as { write(line: string): boolean }
  const spy = vi.spyOn(stream, 'write').mockImplementation((line) => lines.push(line) > 0)
  await work(log)
  spy.mockRestore()
  return lines.map((line) => JSON.parse(line))
}

describe('log', () => {
  it('writes one JSON line with level, time and message', async () => {
    const [line] = await written((log) => log.info({ uid: 'a', turn: 3 }, 'decision'))
    expect(line).toEqual({
      level: 'info',
      timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
      uid: 'a',
      turn: 3,
      message: 'decision',
    })
  })

  it.each([
    ['userData', { userData: CANARY }],
    ['a body', { body: CANARY }],
    ['userData of a spec', { spec: { userData: CANARY } }],
    ['a password', { auth: { password: CANARY } }],
    ['a token', { cluster: { token: CANARY } }],
    ['an authorization header', { headers: { authorization: CANARY, Authorization: CANARY } }],
  ])('never shows %s', async (_, entry) => {
    const [line] = await written((log) => log.info(entry, 'x'))
    expect(JSON.stringify(line)).not.toContain(CANARY)
    expect(JSON.stringify(line)).toContain('[Redacted]')
  })

  it('gives every line the ids of the record it is written for, and of no other', async () => {
    const lines = await written((log) => {
      log.info('outside')
      withIds({ requestId: 'r' }, () => {
        withIds({ messageId: 'm1' }, () => log.info('one'))
        withIds({ messageId: 'm2' }, () => log.info('two'))
        log.info('between')
      })
    })
    const ids = lines.map(({ requestId, messageId }) => [requestId, messageId])
    expect(ids).toEqual([
      [undefined, undefined],
      ['r', 'm1'],
      ['r', 'm2'],
      ['r', undefined],
    ])
  })

  it('keeps the ids over awaits that interleave', async () => {
    const lines = await written((log) =>
      Promise.all(
        ['a', 'b'].map((messageId) =>
          withIds({ messageId }, async () => {
            for (let turn = 0; turn < 3; turn++) {
              await Promise.resolve()
              log.info({ said: messageId }, 'x')
            }
          }),
        ),
      ),
    )
    expect(lines.map(({ said }) => said)).toEqual(['a', 'b', 'a', 'b', 'a', 'b'])
    for (const { messageId, said } of lines) expect(messageId).toBe(said)
  })

  it('names the span that a line is written in, the innermost, and none outside of one', async () => {
    const spans = collectSpans()
    try {
      const lines = await written(async (log) => {
        log.info('outside')
        await traceRun('gc', async () => {
          log.info('in the run')
          await trace.getTracer('test').startActiveSpan('call', async (span) => {
            log.info('in the call')
            span.end()
          })
        })
      })
      const [outside, run, call] = lines
      expect(outside).not.toHaveProperty('traceId')
      const ids = (name: string) => {
        const [span] = spans.named(name)
        const { traceId, spanId } = span?.spanContext() ?? {}
        return { traceId, spanId }
      }
      expect(run).toMatchObject(ids('gc'))
      expect(call).toMatchObject(ids('call'))
      expect(run?.spanId).not.toBe(call?.spanId)
    } finally {
      await spans.stop()
    }
  })

  it('names no trace where there is no SDK, whatever a message carries', async () => {
    const carrier = { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' }
    const [line] = await written((log) =>
      traceDelivery({ carrier, continues: true, attributes: {} }, async () => log.info('x')),
    )
    expect(Object.keys(line ?? {}).sort()).toEqual(['level', 'message', 'timestamp'])
  })
})
