import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { heldSeconds, placeSeconds, redeliverySeconds, taskPollSeconds } from '../../lib/backoff.ts'
import { FailureCode } from '../../lib/failure.ts'

const codes = fc.constantFrom(...FailureCode.options)
const receives = fc.integer({ min: 1, max: 1000 })
const chance = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })
const lowest = () => 0
const highest = () => 0.999_999

describe('backoff: redelivery', () => {
  it('is 1 to 300 whole seconds, whatever the code, the count and the luck', () => {
    fc.assert(
      fc.property(codes, receives, chance, (code, count, luck) => {
        const seconds = redeliverySeconds(code, count, () => luck)
        expect(Number.isInteger(seconds) && seconds >= 1 && seconds <= 300).toBe(true)
      }),
    )
  })

  it('never shrinks with the count, luck being equal', () => {
    fc.assert(
      fc.property(codes, receives, chance, (code, count, luck) => {
        const [now, later] = [count, count + 1].map((one) => redeliverySeconds(code, one, () => luck))
        expect(later).toBeGreaterThanOrEqual(now ?? 0)
      }),
    )
  })

  // Report: github-aws-runners/terraform-aws-github-runner#5253
  // Report: aws/aws-lambda-go#289
  it('doubles from a second, the jitter being its upper half', () => {
    const spans = [1, 2, 3, 4, 8, 9, 10].map((count) =>
      [lowest, highest].map((luck) => redeliverySeconds('Unreachable', count, luck)),
    )
    expect(spans).toEqual([
      [1, 1],
      [1, 2],
      [2, 4],
      [4, 8],
      [64, 128],
      [128, 256],
      [150, 300],
    ])
  })

  it.each([
    ['NoSpace', 30],
    ['Unauthorized', 15],
    ['Locked', 5],
  ] as const)('starts later for %s, where asking again at once only adds to the trouble', (code, seconds) => {
    expect(redeliverySeconds(code, 1, highest)).toBe(seconds)
  })

  // Report: DataBiosphere/azul#3708
  it('takes more than a day to use up what a queue allows before it buries a message', () => {
    let seconds = 0
    for (let count = 1; count <= 1000; count++) seconds += redeliverySeconds('Unreachable', count, lowest)
    expect(seconds).toBeGreaterThan(24 * 3600)
  })
})

describe('backoff: held', () => {
  it('is at most a minute, at least a second, and never outlasts the lease by more than the rounding', () => {
    fc.assert(
      fc.property(fc.integer({ min: -5000, max: 400_000 }), receives, chance, (leftMs, count, luck) => {
        const seconds = heldSeconds(leftMs, count, () => luck)
        expect(seconds).toBeGreaterThanOrEqual(1)
        expect(seconds).toBeLessThanOrEqual(Math.min(60, Math.max(1, Math.ceil(leftMs / 1000))))
      }),
    )
  })

  it('grows with the count', () => {
    expect([1, 3, 5, 20].map((count) => heldSeconds(300_000, count, highest))).toEqual([1, 4, 16, 60])
  })
})

describe('backoff: task poll', () => {
  it('is one second for a young task and five for an old one', () => {
    expect([-1, 0, 4000, 8000, 12_000, 20_000, 3_600_000].map(taskPollSeconds)).toEqual([1, 1, 1, 2, 3, 5, 5])
  })
})

describe('backoff: a place in a queue', () => {
  const ask = (uid: string, turn: number, waitedSeconds: number) => placeSeconds({ uid, turn, waitedSeconds })

  it('is asked for again within 4 s at first, and within 20 s however long the wait', () => {
    fc.assert(
      fc.property(
        fc.string(),
        fc.nat(),
        fc.double({ min: 0, max: 1e6, noNaN: true }),
        (uid, turn, waited) => {
          expect(ask(uid, turn, 0)).toBeLessThanOrEqual(4)
          expect(ask(uid, turn, waited)).toBeGreaterThanOrEqual(1)
          expect(ask(uid, turn, waited)).toBeLessThanOrEqual(20)
        },
      ),
    )
  })

  // At 46 to 60 s the bound was nothing, and the next time no number.
  it('is asked for again within 4 s by a clock that is behind', () => {
    for (let behind = 0; behind <= 300; behind++) {
      expect(ask('alpha', behind, -behind)).toBeGreaterThanOrEqual(1)
      expect(ask('alpha', behind, -behind)).toBeLessThanOrEqual(4)
    }
  })

  it('is not asked for by all in the same second, nor by one at the same pace for ever', () => {
    const uids = Array.from({ length: 40 }, (_, index) => `proxy-${index}`)
    expect(new Set(uids.map((uid) => ask(uid, 3, 60))).size).toBe(8)
    expect(new Set(uids.map((_, turn) => ask('alpha', turn, 60))).size).toBe(8)
  })
})
