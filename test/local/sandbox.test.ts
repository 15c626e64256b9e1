import { afterEach, describe, expect, it, vi } from 'vitest'
import { createSandbox, type Sandbox } from '../../local/sandbox.ts'
import { telemetry } from '../../local/telemetry.ts'

let sandbox: Sandbox
const lines: string[] = []

function open(options: { timeoutMs?: number; handler?: string; env?: object } = {}): Sandbox {
  lines.length = 0
  sandbox = createSandbox({
    handler: new URL(options.handler ?? './fixtures/handler.ts', import.meta.url).href,
    functionName: 'egress-test',
    functionArn: 'arn:aws:lambda:us-east-1:000000000000:function:egress-test',
    env: { EGRESS_SECRET: 'given', ...options.env },
    timeoutMs: options.timeoutMs ?? 10_000,
    onLine: (line) => lines.push(line),
  })
  return sandbox
}

const event = (...bodies: string[]) => ({ Records: bodies.map((body) => ({ body, messageId: body })) })

afterEach(() => sandbox.close())

describe('sandbox', () => {
  it('answers one event after the other from the same modules', async () => {
    open()
    expect(await sandbox.invoke(event('fail', 'fine'))).toEqual({
      batchItemFailures: [{ itemIdentifier: 'fail' }],
    })
    await sandbox.invoke(event('log'))
    await vi.waitFor(() => expect(lines.join('\n')).toContain('"served":2'))
  })

  it('shows the function its own environment only, and brings out every line it writes, by stream or by descriptor', async () => {
    open()
    await sandbox.invoke(event('log'))
    await vi.waitFor(() => expect(lines).toHaveLength(3))
    expect(lines.join('\n')).toContain('through the descriptor')
    const byPino = JSON.parse(lines.find((line) => line.includes('through pino')) ?? '')
    expect(byPino).toMatchObject({ secret: 'given', level: 30 })
    expect(byPino).not.toHaveProperty('path')
    const context = JSON.parse(lines.find((line) => line.includes('remainingMs')) ?? '')
    expect(context.remainingMs).toBeGreaterThan(5_000)
  })

  it('loads into its thread what the NODE_OPTIONS of its environment name', async () => {
    const preload = new URL('./fixtures/preload.mjs', import.meta.url).pathname
    open({
      env: telemetry({ NODE_OPTIONS: `--import ${preload}`, OTEL_SERVICE_NAME: 'egress', HOME: '/root' }),
    })
    await sandbox.invoke(event('fine'))
    await vi.waitFor(() => expect(lines).toEqual(['loaded before the handler, for egress, without HOME']))
  })

  it('says what the handler threw and serves on', async () => {
    open()
    await expect(sandbox.invoke(event('throw'))).rejects.toMatchObject({
      code: 'Threw',
      message: 'egress-test threw TypeError: as asked',
    })
    expect(sandbox.alive).toBe(true)
    expect(await sandbox.invoke(event('fine'))).toEqual({ batchItemFailures: [] })
  })

  it.each(['hang', 'spin'])('ends a handler that does not come back: %s', async (body) => {
    open({ timeoutMs: 300 })
    await sandbox.invoke(event('fine'))
    await expect(sandbox.invoke(event(body))).rejects.toMatchObject({ code: 'TimedOut' })
    expect(sandbox.alive).toBe(false)
  })

  it('notices an environment that ends itself', async () => {
    open()
    await expect(sandbox.invoke(event('exit'))).rejects.toMatchObject({ code: 'Died' })
    expect(sandbox.alive).toBe(false)
  })

  it('fails every event of a handler that cannot be loaded, with the reason', async () => {
    open({ handler: './fixtures/no-such-handler.ts' })
    await expect(sandbox.invoke(event('fine'))).rejects.toThrow('no-such-handler.ts')
  })
})
