import { describe, expect, it } from 'vitest'
import { phaseOf, successorComment, successorOf } from '../../cli/rotation-phase.ts'
import { UsageError } from '../../cli/usage.ts'

const A = 'egress@pve!ctl'
const B = 'egress@pve!ctl-b'
const entry = (id: string, replaces?: string, at = 0) => ({
  id,
  comment: replaces === undefined ? 'made by hand' : successorComment(replaces, at),
})

describe('the name of a successor', () => {
  it.each([
    ['egress@pve!ctl', 'egress@pve!ctl-b'],
    ['egress@pve!ctl-b', 'egress@pve!ctl-a'],
    ['egress@pve!ctl-a', 'egress@pve!ctl-b'],
    ['x@pam!a-b-c', 'x@pam!a-b-c-b'],
  ])('of %s is %s', (id, successor) => {
    expect(successorOf(id)).toBe(successor)
  })
})

describe('a rotation', () => {
  it.each([
    ['begins', { first: A }, [entry(A)], undefined, ['make', A, B]],
    [
      'switches when the successor is stored',
      { first: A, second: B },
      [entry(A), entry(B, A)],
      undefined,
      ['switch', A, B],
    ],
    [
      'retires when the successor is first',
      { first: B, second: A },
      [entry(A), entry(B, A)],
      undefined,
      ['retire', A, B],
    ],
    [
      'retires when it died between the two writes',
      { first: B, second: B },
      [entry(A), entry(B, A)],
      undefined,
      ['retire', A, B],
    ],
    [
      'retires an old one that is gone already',
      { first: B, second: A },
      [entry(B, A)],
      undefined,
      ['retire', A, B],
    ],
    ['switches from a revoked one', { first: A, second: B }, [entry(B, A)], undefined, ['switch', A, B]],
    [
      'believes the younger of two that replaced each other',
      { first: A, second: B },
      [entry(A, B, 1000), entry(B, A, 2000)],
      undefined,
      ['switch', A, B],
    ],
    [
      'believes the younger the other way round, too',
      { first: A, second: B },
      [entry(A, B, 2000), entry(B, A, 1000)],
      undefined,
      ['retire', B, A],
    ],
    [
      'minds no second that is gone',
      { first: A, second: 'egress@pve!x' },
      [entry(A)],
      undefined,
      ['make', A, B],
    ],
    ['does as it is told: the first is old', { first: A, second: B }, undefined, A, ['switch', A, B]],
    ['does as it is told: the second is old', { first: B, second: A }, undefined, A, ['retire', A, B]],
    ['does as it is told: neither is kept', { first: B, second: B }, undefined, A, ['retire', A, B]],
  ] as const)('%s', (_, stored, entries, old, [step, from, to]) => {
    expect(phaseOf(stored, entries, old)).toEqual({ do: step, old: from, fresh: to })
  })

  it.each([
    ['two tokens and nobody to ask', { first: A, second: B }, undefined, undefined],
    ['two that have nothing to do with each other', { first: A, second: B }, [entry(A), entry(B)], undefined],
    ['a third that is called old', { first: A, second: B }, undefined, 'egress@pve!third'],
  ] as const)('is not guessed from %s', (_, stored, entries, old) => {
    expect(() => phaseOf(stored, entries, old)).toThrow(UsageError)
  })
})
