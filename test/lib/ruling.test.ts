import { describe, expect, it } from 'vitest'
import type { Problem, Row } from '../../lib/record.ts'
import { judgeResume, restarted } from '../../lib/ruling.ts'
import { aRow, NOW } from './a-row.ts'

const stallMs = 900_000
const problem: Problem = {
  code: 'StuckLock',
  reason: 'stuck',
  firstAt: NOW,
  lastAt: NOW,
  times: 1,
  permanent: true,
}
const task = { upid: 'UPID:a', step: 'clone', at: NOW } as const
/** That its end was never seen is kept: it may have left something half made. */
const ended = { ...task, ok: false, code: 'TaskLost' } as const
const failed = aRow({ phase: 'Failed', step: undefined, failedStep: 'clone', problem, task })
const ready = aRow({ phase: 'Ready', step: undefined, address: '10.0.0.1' })
const judged = (row: Row, { to, now = NOW }: { to?: 'start' | 'stop'; now?: number } = {}) =>
  judgeResume({ type: 'Resume', uid: 'a', turn: 3, ...(to && { to }) }, row, { now, stallMs })

describe('resume', () => {
  it('runs a failed row again at the step that failed, nothing remembered but a task whose end was not seen', () => {
    expect(judged(failed)).toEqual({ kind: 'next', reason: 'redriven', row: aRow({ step: 'clone', ended }) })
  })

  it('runs a deletion that failed as a deletion', () => {
    const ruling = judged(
      aRow({ wish: 'absent', phase: 'Failed', step: undefined, failedStep: 'destroy', problem }),
    )
    expect(ruling).toMatchObject({ kind: 'next', row: { step: 'destroy', phase: 'Deleting' } })
  })

  it('kicks a row once it has stalled, and not a millisecond earlier', () => {
    const row = aRow({ dueAt: NOW, task })
    expect(judged(row, { now: NOW + stallMs - 1 })).toMatchObject({ kind: 'drop' })
    expect(judged(row, { now: NOW + stallMs })).toEqual({
      kind: 'next',
      reason: 'stalled, so kicked',
      row: aRow({ dueAt: NOW, ended }),
    })
  })

  it('keeps what a stalled report has to tell', () => {
    const row = aRow({ step: 'report', failedStep: 'clone', problem, phase: 'Provisioning', task })
    const ruling = judged(row, { now: NOW + stallMs })
    expect(ruling).toMatchObject({ kind: 'next', row: { step: 'report', failedStep: 'clone', problem } })
  })

  it.each(['start', 'stop'] as const)('takes a Ready row up at %s', (to) => {
    expect(judged(ready, { to })).toMatchObject({
      kind: 'next',
      row: { step: to, phase: 'Provisioning', address: '10.0.0.1' },
    })
  })

  it.each<[string, Row, { to?: 'start' }]>([
    ['a Ready row without a step to take it up at', ready, {}],
    ['a moving row with one', aRow(), { to: 'start' }],
    ['a failed row with one', failed, { to: 'start' }],
    ['a deleted row', aRow({ phase: 'Deleted', step: undefined }), {}],
    ['a deleted row with a step', aRow({ phase: 'Deleted', step: undefined }), { to: 'start' }],
    ['a moving row that is not late', aRow(), {}],
  ])('drops %s', (_, row, how) => {
    expect(judged(row, how).kind).toBe('drop')
  })
})

describe('restarted', () => {
  it('keeps the place, the seed and what was proven', () => {
    const row = restarted(
      aRow({ phase: 'Failed', problem, failedStep: 'start', cloned: true, seededOn: ['pve1'] }),
      'start',
    )
    expect(row).toEqual(aRow({ step: 'start', cloned: true, seededOn: ['pve1'] }))
  })
})
