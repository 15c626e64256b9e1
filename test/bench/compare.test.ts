import { describe, expect, it } from 'vitest'
import { compared, readRecorded } from '../../bench/compare.ts'

const figure = (value: number, over = {}) => ({ name: 'n', value, unit: 'ms', noise: 0.1, ...over })
const since = (before: number, now: number, over = {}) =>
  compared({ part: [figure(now, over)] }, { takenAt: '2026-12-01', parts: { part: [figure(before, over)] } })

describe('a comparison with what was recorded', () => {
  it('passes over what is within its noise, and a figure that was not there', () => {
    expect(since(100, 109)).toMatchObject({ worse: 0, sheet: { rows: [] } })
    expect(compared({ part: [figure(1)] }, { takenAt: '', parts: {} })).toMatchObject({ worse: 0 })
  })

  it.each([
    [100, 112, {}, 1, 'WORSE', '+12.0 %'],
    [100, 80, {}, 0, 'better', '-20.0 %'],
    [100, 80, { moreIsBetter: true as const }, 1, 'WORSE', '-20.0 %'],
    [54, 55, { noise: 0 }, 1, 'WORSE', '+1.9 %'],
  ])('tells from %d to %d with %o', (before, now, over, worse, word, change) => {
    const found = since(before, now, over)
    expect(found.worse).toBe(worse)
    expect(found.sheet.rows).toEqual([['part', 'n', expect.any(String), expect.any(String), change, word]])
  })

  it('finds a record in the repository', () => {
    const { parts } = readRecorded()
    expect(Object.keys(parts).sort()).toEqual([
      'calls',
      'cold-start',
      'iso',
      'money',
      'overhead',
      'scale',
      'throughput',
    ])
  })
})
