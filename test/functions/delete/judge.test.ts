import { describe, expect, it } from 'vitest'
import type { Orphan } from '../../../functions/delete/event.ts'
import { judge } from '../../../functions/delete/judge.ts'
import type { BlankRow, Problem, Row } from '../../../lib/record.ts'
import { aRow, NOW } from '../../lib/a-row.ts'

const deletion = { type: 'ProxyDeletionRequested', uid: 'a' } as const
const problem: Problem = {
  code: 'Protected',
  reason: 'no',
  firstAt: NOW,
  lastAt: NOW,
  times: 1,
  permanent: true,
}
const blank: BlankRow = { uid: 'a', turn: 0, deliveries: 0 }
const bare = { place: undefined, seed: undefined, mac: undefined }

function going(event: typeof deletion | Orphan, row: Row | BlankRow): Row {
  const ruling = judge(event, row, NOW)
  if (ruling.kind !== 'next') throw new Error(`expected the row to go on, got ${JSON.stringify(ruling)}`)
  return ruling.row
}

describe('delete: a wish for absence', () => {
  it('that comes before its request goes straight to release, and stays', () => {
    expect(going(deletion, { ...blank, unsettledUntil: NOW + 5 })).toMatchObject({
      wish: 'absent',
      phase: 'Deleting',
      step: 'release',
      generation: 0,
      unsettledUntil: NOW + 5,
    })
  })

  it.each<[string, Row, Row['step']]>([
    ['in the making', aRow(), 'stop'],
    ['that is Ready', aRow({ phase: 'Ready', step: undefined }), 'stop'],
    ['that Failed', aRow({ phase: 'Failed', step: undefined, failedStep: 'clone', problem }), 'stop'],
    ['whose failure is about to be reported', aRow({ step: 'report', failedStep: 'clone', problem }), 'stop'],
    ['being replaced', aRow({ step: 'unseed' }), 'stop'],
    ['that has a seed and no place', aRow({ place: undefined }), 'stop'],
    ['that has nothing yet', aRow({ step: 'reserve', ...bare }), 'release'],
  ])('sends a proxy %s on its way out', (_, row, step) => {
    const after = going(deletion, row)
    expect(after).toMatchObject({ wish: 'absent', phase: 'Deleting', step })
    expect(after).not.toHaveProperty('problem')
    expect(after).not.toHaveProperty('failedStep')
  })

  it('keeps the task in flight and all that must be cleared away', () => {
    const task = { upid: 'UPID:a', step: 'clone', at: NOW } as const
    const row = aRow({ task, unsettledUntil: NOW, seededOn: ['pve1'], cloned: true })
    expect(going(deletion, row)).toEqual({ ...row, wish: 'absent', phase: 'Deleting', step: 'stop' })
  })

  it('is a redrive where the deletion failed', () => {
    const failed = aRow({ wish: 'absent', phase: 'Failed', step: undefined, failedStep: 'destroy', problem })
    expect(going(deletion, failed)).toEqual(aRow({ wish: 'absent', phase: 'Deleting', step: 'destroy' }))
  })

  const underWay = 'being deleted already'
  it.each<[string, Row, string]>([
    ['a proxy on its way out', aRow({ wish: 'absent', phase: 'Deleting', step: 'destroy' }), underWay],
    [
      'a deletion about to be reported',
      aRow({ wish: 'absent', phase: 'Deleting', step: 'report', failedStep: 'stop', problem }),
      underWay,
    ],
    ['a tombstone', aRow({ wish: 'absent', phase: 'Deleted', step: undefined }), 'deleted already'],
  ])('is dropped for %s', (_, row, reason) => {
    expect(judge(deletion, row, NOW)).toEqual({ kind: 'drop', reason })
  })
})

describe('delete: an orphan', () => {
  const orphan: Orphan = { type: 'Orphan', cluster: 'lab', vmid: 5001, uid: 'a' }
  const key = 'orphan#lab#5001'

  it('gets a row of its own, known by its number and by the uid in its mark', () => {
    expect(going(orphan, { ...blank, uid: key })).toMatchObject({
      uid: key,
      orphanOf: 'a',
      wish: 'absent',
      phase: 'Deleting',
      step: 'stop',
      place: { cluster: 'lab', vmid: 5001, node: '' },
    })
  })

  it('found a second time at the same number begins anew, its turn counting on', () => {
    const before = aRow({
      uid: key,
      orphanOf: 'z',
      wish: 'absent',
      phase: 'Deleted',
      step: undefined,
      turn: 12,
    })
    expect(going(orphan, before)).toMatchObject({ orphanOf: 'a', step: 'stop', turn: 12 })
  })

  it('is a redrive where its deletion failed, and dropped while it is on its way', () => {
    const row = aRow({ uid: key, orphanOf: 'a', wish: 'absent', phase: 'Deleting', step: 'stop' })
    expect(judge(orphan, row, NOW).kind).toBe('drop')
    const failed = aRow({
      uid: key,
      orphanOf: 'a',
      wish: 'absent',
      phase: 'Failed',
      step: undefined,
      failedStep: 'stop',
      problem,
    })
    expect(going(orphan, failed)).toMatchObject({ step: 'stop', phase: 'Deleting' })
  })
})
