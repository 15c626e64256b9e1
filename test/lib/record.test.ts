import { describe, expect, it } from 'vitest'
import {
  CREATE_STEPS,
  DELETE_STEPS,
  firstRow,
  patched,
  Row,
  rowFor,
  StepName,
  sideOf,
} from '../../lib/record.ts'
import { aRow, NOW } from './a-row.ts'

describe('record', () => {
  it('survives the way through the table', () => {
    const row = aRow()
    expect(Row.parse({ ...row, savedBy: 'token', lease: { token: 'x', until: 1 } })).toEqual(row)
  })

  it('fills in counters that an older row does not have', () => {
    const { deliveries: _, lookedAgain: __, probed: ___, timeline: ____, ...older } = aRow()
    expect(Row.parse(older)).toEqual(aRow())
  })

  it('belongs to the function of its step, and a report to that of the step that failed', () => {
    for (const step of CREATE_STEPS)
      expect([sideOf(step), sideOf('report', step)]).toEqual(['create', 'create'])
    for (const step of DELETE_STEPS)
      expect([sideOf(step), sideOf('report', step)]).toEqual(['delete', 'delete'])
    expect(StepName.options).toHaveLength(CREATE_STEPS.length + DELETE_STEPS.length + 1)
  })

  it.each([
    ['reserve', 'spec'],
    ['clone', 'place'],
    ['seed', 'mac'],
    ['configure', 'seed'],
    ['start', 'place'],
    ['address', 'mac'],
    ['verify', 'address'],
  ] as const)('is no row for %s without its %s', (step, field) => {
    const whole = aRow({ step, address: '10.0.0.1' })
    expect(rowFor(step, whole)).toBe(whole)
    expect(() => rowFor(step, aRow({ step, address: '10.0.0.1', [field]: undefined }))).toThrow(
      `row a is at step ${step} without ${field}`,
    )
  })

  it.each(DELETE_STEPS)('may be as bare as it likes at %s', (step) => {
    const bare = firstRow({ uid: 'a', turn: 0, deliveries: 0 }, 'absent', NOW)
    expect(rowFor(step, bare)).toBe(bare)
  })

  it('loses what is patched to undefined, and nothing else', () => {
    const row = aRow({ address: '10.0.0.1' })
    const after = patched(row, { address: undefined, probed: 16 })
    expect(after).toEqual(aRow({ probed: 16 }))
    expect(Object.keys(after)).not.toContain('address')
    expect(row.address).toBe('10.0.0.1')
  })

  it('begins with what its key has seen: turn, leases that ran out, a call that may still run', () => {
    const blank = { uid: 'a', turn: 2, deliveries: 3, unsettledUntil: NOW + 5 }
    expect(firstRow(blank, 'present', NOW)).toMatchObject({
      ...blank,
      wish: 'present',
      phase: 'Pending',
      generation: 0,
      createdAt: NOW,
    })
    expect(firstRow({ uid: 'a', turn: 0, deliveries: 0 }, 'absent', NOW)).toMatchObject({ phase: 'Deleting' })
    expect(Object.keys(firstRow({ uid: 'a', turn: 0, deliveries: 0 }, 'absent', NOW))).not.toContain(
      'unsettledUntil',
    )
  })

  it('begins anew with nothing of its former life', () => {
    const first = firstRow(aRow({ phase: 'Deleted', address: '10.0.0.1', turn: 40 }), 'present', NOW + 1)
    expect(first).toMatchObject({ turn: 40, createdAt: NOW + 1 })
    for (const field of ['place', 'seed', 'mac', 'address', 'spec', 'name'])
      expect(first).not.toHaveProperty(field)
  })
})
