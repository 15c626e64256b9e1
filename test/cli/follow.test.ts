import { describe, expect, it } from 'vitest'
import { deletionEnded, type End, follow, requestEnded } from '../../cli/follow.ts'
import { Row } from '../../lib/record.ts'

const wish = { generation: 2, specHash: 'abc' }
const row = (over: Partial<Row>): Row =>
  Row.parse({
    uid: 'u',
    wish: 'present',
    generation: 2,
    specHash: 'abc',
    phase: 'Provisioning',
    turn: 1,
    since: 0,
    dueAt: 0,
    createdAt: 0,
    requestedAt: 0,
    ...over,
  })
const problem = { code: 'NoSpace', reason: 'full', firstAt: 0, lastAt: 0, times: 1 } as const

describe('follow', () => {
  it.each<[string, Row | undefined, End['kind'] | undefined, RegExp?]>([
    ['no row', undefined, undefined],
    ['the generation before', row({ generation: 1, phase: 'Ready' }), undefined],
    ['a row under way', row({}), undefined],
    ['a row in trouble that may pass', row({ problem }), undefined],
    ['a ready row', row({ phase: 'Ready' }), 'met'],
    [
      'a failed row',
      row({ phase: 'Failed', failedStep: 'seed', problem }),
      'unmet',
      /^NoSpace at seed: full$/,
    ],
    [
      'a failed row with a hint',
      row({ phase: 'Failed', failedStep: 'seed', problem: { ...problem, hint: 'tidy up' } }),
      'unmet',
      /\nhint: tidy up$/,
    ],
    ['a newer generation', row({ generation: 3 }), 'unmet', /has replaced it/],
    [
      'another spec of the same generation',
      row({ specHash: 'other', phase: 'Ready' }),
      'unmet',
      /another spec/,
    ],
    ['a deleted row', row({ wish: 'absent', phase: 'Deleted' }), 'unmet', /not used again/],
  ])('judges a request by %s', (_, seen, kind, reason) => {
    const end = requestEnded(wish)(seen)
    expect(end?.kind).toBe(kind)
    if (reason) expect(end).toMatchObject({ reason: expect.stringMatching(reason) })
  })

  it.each<[string, Row | undefined, End['kind'] | undefined]>([
    ['no row', undefined, undefined],
    ['a row that was failed before the deletion came', row({ phase: 'Failed', problem }), undefined],
    ['a row under way', row({ wish: 'absent', phase: 'Deleting' }), undefined],
    ['a deletion that failed', row({ wish: 'absent', phase: 'Failed', problem }), 'unmet'],
    ['a tombstone', row({ wish: 'absent', phase: 'Deleted' }), 'met'],
  ])('judges a deletion by %s', (_, seen, kind) => {
    expect(deletionEnded(seen)?.kind).toBe(kind)
  })

  it('tells each change once and ends with the last state', async () => {
    const states = [undefined, row({}), row({}), row({ turn: 2 }), row({ phase: 'Ready', turn: 3 })]
    const seen: number[] = []
    const end = await follow({
      onChange: ({ turn }) => seen.push(turn),
      read: async () => states.shift(),
      ended: requestEnded(wish),
      timeoutMs: 1000,
      everyMs: 1,
    })
    expect(end.kind).toBe('met')
    expect(seen).toEqual([1, 2, 3])
  })

  it('gives up in time and says how far it was', async () => {
    let now = 0
    const options = {
      onChange: () => undefined,
      ended: requestEnded(wish),
      timeoutMs: 5000,
      everyMs: 1,
      now: () => (now += 1000),
    }
    const end = await follow({ ...options, read: async () => row({ step: 'clone' }) })
    expect(end).toMatchObject({ kind: 'unmet', reason: 'not there after 5 s: it is at clone' })
    const lost = await follow({ ...options, read: async () => undefined })
    expect(lost).toMatchObject({ reason: 'not there after 5 s: nothing has taken the message up' })
  })

  it('can be called off', async () => {
    const stop = new AbortController()
    const waiting = follow({
      onChange: () => stop.abort(),
      read: async () => row({}),
      ended: () => undefined,
      timeoutMs: 60_000,
      signal: stop.signal,
    })
    await expect(waiting).rejects.toMatchObject({ name: 'AbortError' })
  })
})
