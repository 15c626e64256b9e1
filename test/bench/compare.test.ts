import { describe, expect, it } from 'vitest'
import { compared, readRecorded } from '../../bench/compare.ts'
import { TIMED } from '../../bench/report.ts'

const figure = (value: number, over = {}) => ({ name: 'n', value, unit: 'ms', noise: 0.1, ...over })
const since = (before: number, now: number, over = {}, crowded = { before: 0, now: 0 }) =>
  compared(
    { part: [figure(now, over)] },
    { takenAt: '2026-12-01', crowding: crowded.before, parts: { part: [figure(before, over)] } },
    crowded.now,
  )

describe('a comparison with what was recorded', () => {
  it('passes over what is within its noise, and a figure that was not there', () => {
    expect(since(100, 109)).toMatchObject({ worse: 0, sheet: { rows: [] } })
    expect(compared({ part: [figure(1)] }, { takenAt: '', crowding: 0, parts: {} }, 0)).toMatchObject({
      worse: 0,
    })
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

  it('leaves out what the machine’s clock says when the machine was crowded, then or now', () => {
    const timed = { noise: TIMED }
    expect(since(100, 300, timed)).toMatchObject({ worse: 1, leftOut: 0 })
    expect(since(100, 300, timed, { before: 0, now: 2 })).toMatchObject({ worse: 0, leftOut: 1 })
    expect(since(100, 300, timed, { before: 2, now: 0 })).toMatchObject({ worse: 0, leftOut: 1 })
    expect(since(100, 300, {}, { before: 2, now: 2 })).toMatchObject({ worse: 1, leftOut: 0 })
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
