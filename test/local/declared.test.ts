import { existsSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { readDeclarations } from '../../local/declared.ts'

const text = (file: string) => readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8')

describe('declarations', () => {
  it('are those of serverless.yml: every function, with a handler that is there', () => {
    const { fed, scheduled } = readDeclarations(60)
    const all = [...fed, ...scheduled].map(({ name }) => name)
    expect(all).toEqual(['create', 'delete', 'gc', 'check'])
    for (const { handler } of [...fed, ...scheduled]) expect(existsSync(handler)).toBe(true)
  })

  it('say how functions are fed and for how long they may run, by the configuration where it says so', () => {
    const { fed, scheduled } = readDeclarations(20)
    expect(fed).toMatchObject([
      { source: 'create', batchSize: 10, maximumConcurrency: 4, timeoutMs: 20_000 },
      { source: 'delete', batchSize: 10, maximumConcurrency: 4, timeoutMs: 20_000 },
    ])
    const ofGc = /name: egress-\$\{sls:stage\}-gc\n[\s\S]*?timeout: (\d+)/.exec(text('serverless.yml'))?.[1]
    expect(scheduled.find(({ name }) => name === 'gc')?.timeoutMs).toBe(Number(ofGc) * 1000)
  })

  it('say when scheduled functions run', () => {
    const rates = [...text('infra/schedules.yml').matchAll(/rate\((\d+) minutes\)/g)].map(
      ([, minutes]) => Number(minutes) * 60,
    )
    expect(readDeclarations(60).scheduled.map(({ rateSeconds }) => rateSeconds)).toEqual(rates)
  })

  it('say how long messages are hidden and kept, and how often they are received', () => {
    const day = 86_400
    const queue = {
      visibilitySeconds: 120,
      maxReceiveCount: 1000,
      retentionSeconds: 4 * day,
      deadLetterRetentionSeconds: 14 * day,
    }
    expect(readDeclarations(20).queues).toEqual({ create: queue, delete: queue })
  })
})
