import { beforeEach, describe, expect, it } from 'vitest'
import { next, wait } from '../../lib/outcome.ts'
import type { Problem, Row } from '../../lib/record.ts'
import { CRASHING_AFTER } from '../../lib/worker.ts'
import { aRow, aSpec, NOW } from './a-row.ts'
import { type Desk, openDesk } from './desk.ts'

// The table of messages: what becomes of a record once it was read, row by row. What steps lead to is in turn.test.ts.

const acknowledged = { kind: 'acknowledge' }
const problem: Problem = {
  code: 'StuckLock',
  reason: 'stuck',
  hint: 'unlock',
  firstAt: NOW,
  lastAt: NOW,
  times: 1,
  permanent: true,
}
const go = (turn: number) => ({ type: 'Continue', uid: 'a', turn })
const resume = (turn: number, to?: 'start' | 'stop') => ({
  type: 'Resume',
  uid: 'a',
  turn,
  ...(to && { to }),
})
const request = { type: 'ProxyRequested', uid: 'a', name: 'alpha', spec: aSpec }
const deletion = { type: 'ProxyDeletionRequested', uid: 'a' }
const slot = 'clone#lab#vmdata#pve1'

let desk: Desk
beforeEach(() => {
  desk = openDesk()
  desk.script.run = () => next('seed')
})

const reasons = () => desk.decisions.map(({ reason }) => reason)
/** The lease of the row, in another's hands. */
async function heldByAnother() {
  const taken = await desk.ledger.take('a', { kind: 'event' })
  if (taken.kind !== 'taken') throw new Error(`the row is ${taken.kind}`)
  return taken.token
}
async function nothingHappens(message: object, how?: Parameters<Desk['handle']>[1]) {
  const before = desk.row()
  expect(await desk.handle(message, how)).toEqual(acknowledged)
  expect(desk.row()).toEqual(before)
  expect(desk.runs).toEqual([])
  expect(desk.sent).toEqual([])
  expect(desk.queues.deadLetters).toEqual([])
  expect(await desk.isHeld()).toBe(false)
}

describe('worker: what cannot be read', () => {
  it.each(['not JSON', '{"type":"ProxyReqested"}', ' {"type":"ProxyRequested","uid":"a","name":"a_b"} '])(
    'is buried to the letter: %s',
    async (body) => {
      await desk.store(aRow())
      expect(await desk.handle(body)).toEqual(acknowledged)
      expect(desk.queues.deadLetters).toEqual([
        {
          side: 'create',
          body,
          obituary: {
            code: 'InvalidEvent',
            failedAt: '2026-01-01T00:00:00.000Z',
            problem: {
              reason: expect.stringContaining('wanted'),
              hint: expect.stringContaining('egress dlq redrive'),
            },
          },
        },
      ])
      expect(desk.decisions).toMatchObject([{ outcome: 'dead letter', code: 'InvalidEvent' }])
      expect(desk.row()).toEqual(aRow())
    },
  )

  it('goes to the dead letters of the queue it came by', async () => {
    await desk.handle(request, { side: 'delete' })
    expect(desk.queues.deadLetters).toMatchObject([{ side: 'delete', obituary: { code: 'InvalidEvent' } }])
  })

  it('is not acknowledged before it is buried', async () => {
    desk.breakNext('bury')
    await expect(desk.handle('not JSON')).rejects.toThrow('bury failed')
  })
})

describe('worker: a Continue', () => {
  it('of no row is acknowledged, and makes none', async () => {
    expect(await desk.handle(go(0))).toEqual(acknowledged)
    expect(desk.ledger.rows()).toEqual([])
    expect(reasons()).toEqual(['no-row'])
  })

  it('of a row on which no event was judged is acknowledged', async () => {
    await desk.ledger.release('a', await heldByAnother())
    await nothingHappens(go(0))
  })

  it('that is behind is stale', async () => {
    await desk.store(aRow({ turn: 3 }))
    await nothingHappens(go(2))
    expect(desk.acts).toEqual([])
  })

  it('that is behind is stale even while another holds the row', async () => {
    await desk.store(aRow({ turn: 3 }))
    await heldByAnother()
    expect(await desk.handle(go(2))).toEqual(acknowledged)
  })

  it('that is ahead of a sender who died is acknowledged, and the sender fenced', async () => {
    await desk.store(aRow({ turn: 3 }))
    const dead = await heldByAnother()
    desk.clock.advance(desk.leaseMs + 1)
    expect(await desk.handle(go(4))).toEqual(acknowledged)
    expect(reasons()).toEqual(['ahead of its sender'])
    expect(desk.runs).toEqual([])
    await expect(desk.ledger.save(aRow({ turn: 4 }), dead)).rejects.toThrow('saved by another')
    // … whose own message comes back, and acts.
    expect(await desk.handle(go(3), { receiveCount: 2 })).toEqual(acknowledged)
    expect(desk.row()?.turn).toBe(4)
  })

  it.each([3, 5, 99])(
    'of a held row comes back (turn %d), since its holder may be about to save',
    async (turn) => {
      await desk.store(aRow({ turn: 3 }))
      await heldByAnother()
      const verdict = await desk.handle(go(turn), { receiveCount: 5 })
      expect(verdict).toEqual({ kind: 'back', seconds: 16 })
      expect(reasons()).toEqual(['the row is held'])
      expect(desk.pauses).toBe(0)
    },
  )

  it('of a held row comes back no later than the lease runs out, and within a minute', async () => {
    await desk.store(aRow({ turn: 3 }))
    await heldByAnother()
    expect(await desk.handle(go(3), { receiveCount: 20 })).toEqual({ kind: 'back', seconds: 60 })
    desk.clock.advance(desk.leaseMs - 2500)
    expect(await desk.handle(go(3), { receiveCount: 20 })).toEqual({ kind: 'back', seconds: 3 })
  })

  it('that overtook its sender’s save by a moment is waited with, instead of a second in the queue', async () => {
    await desk.store(aRow({ turn: 3 }))
    const token = await heldByAnother()
    desk.onPause = async () => {
      if (desk.pauses === 3) await desk.ledger.save(aRow({ turn: 4 }), token)
    }
    expect(await desk.handle(go(4))).toEqual(acknowledged)
    expect([desk.pauses, desk.row()?.turn, desk.row()?.step]).toEqual([3, 5, 'seed'])
  })

  it('that overtook its sender’s save by more comes back', async () => {
    await desk.store(aRow({ turn: 3 }))
    await heldByAnother()
    expect(await desk.handle(go(4))).toEqual({ kind: 'back', seconds: 1 })
    expect(desk.pauses).toBeLessThan(20)
  })

  it.each(['Ready', 'Failed', 'Deleted'] as const)('of a row at rest (%s) is acknowledged', async (phase) => {
    await desk.store(aRow({ turn: 3, phase, step: undefined, failedStep: 'clone', problem }))
    await nothingHappens(go(3))
  })

  it.each([
    ['create', 'destroy', undefined],
    ['create', 'report', 'stop'],
    ['delete', 'clone', undefined],
    ['delete', 'report', 'clone'],
  ] as const)(
    'by the %s queue, of a row at %s (failed: %s), is the other function’s',
    async (side, step, failedStep) => {
      await desk.store(aRow({ turn: 3, step, failedStep, problem }))
      await nothingHappens(go(3), { side })
    },
  )

  it('of this turn runs the step, once: a duplicate is stale', async () => {
    await desk.store(aRow({ turn: 3 }))
    await desk.handle(go(3))
    await desk.handle(go(3))
    expect(desk.runs.map(({ step, turn }) => [step, turn])).toEqual([['clone', 3]])
    expect(desk.row()).toMatchObject({ turn: 4, step: 'seed' })
  })

  it('delivered fifty times at once runs the step once', async () => {
    await desk.store(aRow({ turn: 3 }))
    const verdicts = await Promise.all(Array.from({ length: 50 }, () => desk.handle(go(3))))
    expect(desk.runs).toHaveLength(1)
    expect(desk.sent).toHaveLength(1)
    expect(verdicts.filter(({ kind }) => kind === 'acknowledge').length).toBeGreaterThanOrEqual(1)
  })
})

describe('worker: an event', () => {
  it('makes a row and sends it on its way', async () => {
    const event = { ...request, spec: { ...aSpec, userData: '#cloud-config\n' } }
    expect(await desk.handle(event)).toEqual(acknowledged)
    expect(desk.sent).toEqual([{ side: 'create', message: go(1), delaySeconds: 0 }])
    expect(desk.row()).toMatchObject({
      wish: 'present',
      generation: 1,
      phase: 'Pending',
      step: 'reserve',
      turn: 1,
      since: NOW,
      dueAt: NOW,
    })
    expect(await desk.userData.get('a', 1)).toBe('#cloud-config\n')
    expect(desk.acts).toEqual(['send', 'save'])
    expect(await desk.isHeld()).toBe(false)
  })

  it('given twice at once makes one row with one message that acts', async () => {
    const verdicts = await Promise.all([desk.handle(request), desk.handle(request)])
    expect(verdicts.map(({ kind }) => kind).sort()).toEqual(['acknowledge', 'back'])
    await desk.handle(request, { receiveCount: 2 })
    expect(desk.sent).toHaveLength(1)
    expect(desk.row()?.turn).toBe(1)
  })

  it('of a held row comes back', async () => {
    await desk.store(aRow())
    await heldByAnother()
    expect((await desk.handle(deletion, { side: 'delete' })).kind).toBe('back')
    expect(desk.row()).toEqual(aRow())
  })

  it('that changes nothing lets the row go as it was', async () => {
    await desk.handle(request)
    const before = desk.row()
    desk.sent.length = 0
    await nothingHappens({ ...request, generation: 1 })
    expect(reasons()).toContain('duplicate')
    expect(desk.row()).toEqual(before)
  })

  it('that reuses a generation is buried with its body, the row untouched', async () => {
    await desk.handle(request)
    const before = desk.row()
    const body = JSON.stringify({ ...request, name: 'beta' })
    expect(await desk.handle(body)).toEqual(acknowledged)
    expect(desk.queues.deadLetters).toEqual([
      {
        side: 'create',
        body,
        obituary: {
          code: 'GenerationReused',
          uid: 'a',
          turn: 1,
          failedAt: '2026-01-01T00:00:00.000Z',
          problem: {
            reason: expect.stringContaining('generation 1'),
            hint: expect.stringContaining('generation 2'),
          },
        },
      },
    ])
    expect(desk.row()).toEqual(before)
    expect(await desk.isHeld()).toBe(false)
  })

  it('of deletion goes to the delete queue, from any step, and gives back the slot it worked in', async () => {
    await desk.claims.takeSlot(slot, 2, 'a')
    await desk.store(aRow({ step: 'clone' }))
    await desk.handle(deletion, { side: 'delete' })
    expect(desk.sent).toEqual([{ side: 'delete', message: go(4), delaySeconds: 0 }])
    expect(desk.row()).toMatchObject({ wish: 'absent', phase: 'Deleting', step: 'stop', turn: 4 })
    expect(desk.claims.all()).toEqual([])
  })

  it('of deletion before the request wins for ever', async () => {
    await desk.handle(deletion, { side: 'delete' })
    expect(desk.row()).toMatchObject({ wish: 'absent', step: 'release', turn: 1 })
    desk.sent.length = 0
    await nothingHappens({ ...request, generation: 5 })
  })

  it('of a higher generation replaces: the old VM goes first, by the delete queue', async () => {
    await desk.store(aRow({ phase: 'Ready', step: undefined, turn: 9 }))
    await desk.handle({ ...request, generation: 2 })
    expect(desk.sent).toEqual([{ side: 'delete', message: go(10), delaySeconds: 0 }])
    expect(desk.row()).toMatchObject({ generation: 2, step: 'stop', phase: 'Provisioning' })
  })

  it('whose message could not be sent comes back, the row as it was and free', async () => {
    await desk.store(aRow({ phase: 'Ready', step: undefined }))
    desk.breakNext('send')
    expect(await desk.handle(deletion, { side: 'delete' })).toEqual({ kind: 'back', seconds: 1 })
    expect(desk.row()).toEqual(aRow({ phase: 'Ready', step: undefined }))
    expect(await desk.isHeld()).toBe(false)
  })

  it('whose row could not be saved comes back, and what it sent finds nothing to do', async () => {
    await desk.store(aRow({ phase: 'Ready', step: undefined }))
    desk.breakNext('save')
    expect((await desk.handle(deletion, { side: 'delete' })).kind).toBe('back')
    expect(await desk.handle(go(4), { side: 'delete' })).toEqual(acknowledged)
    expect(desk.row()).toEqual(aRow({ phase: 'Ready', step: undefined }))
    await desk.handle(deletion, { side: 'delete', receiveCount: 2 })
    expect(desk.row()?.step).toBe('stop')
  })

  it('about a VM without a row gets one of its own', async () => {
    await desk.handle({ type: 'Orphan', cluster: 'lab', vmid: 5001, uid: 'a' }, { side: 'delete' })
    expect(desk.row()).toBeUndefined()
    expect(desk.row('orphan#lab#5001')).toMatchObject({ orphanOf: 'a', step: 'stop' })
    expect(desk.sent).toMatchObject([{ side: 'delete', message: { uid: 'orphan#lab#5001', turn: 1 } }])
  })
})

describe('worker: a Resume', () => {
  const failed = aRow({ phase: 'Failed', step: undefined, failedStep: 'clone', problem, turn: 7 })

  it('runs a failed row again, at the step that failed', async () => {
    await desk.store(failed)
    desk.clock.advance(5000)
    expect(await desk.handle(resume(7))).toEqual(acknowledged)
    expect(desk.sent).toEqual([{ side: 'create', message: go(8), delaySeconds: 0 }])
    expect(desk.row()).toEqual(aRow({ turn: 8, since: NOW + 5000, dueAt: NOW + 5000 }))
  })

  it('sends a failed deletion to the delete queue', async () => {
    await desk.store({ ...failed, wish: 'absent', failedStep: 'destroy' })
    await desk.handle(resume(7), { side: 'delete' })
    expect(desk.sent).toMatchObject([{ side: 'delete' }])
    expect(desk.row()).toMatchObject({ step: 'destroy', phase: 'Deleting' })
  })

  it('kicks a stalled row, its trouble forgotten, and of its task but that its end was not seen', async () => {
    const task = { upid: 'UPID:a', step: 'clone', at: NOW } as const
    await desk.store(aRow({ task, problem: { ...problem, permanent: false }, parkedAt: NOW }))
    await desk.claims.takeSlot(slot, 2, 'a')
    desk.clock.advance(desk.stallMs)
    await desk.handle(resume(3))
    expect(desk.sent).toMatchObject([{ side: 'create', message: go(4) }])
    const ended = { ...task, ok: false, code: 'TaskLost' } as const
    expect(desk.row()).toEqual(aRow({ turn: 4, since: desk.clock.now(), dueAt: desk.clock.now(), ended }))
  })

  it.each(['start', 'stop'] as const)('takes a Ready row up at %s, by that step’s queue', async (to) => {
    await desk.store(aRow({ phase: 'Ready', step: undefined }))
    await desk.handle(resume(3, to))
    expect(desk.sent).toMatchObject([{ side: to === 'stop' ? 'delete' : 'create', message: go(4) }])
    expect(desk.row()).toMatchObject({ step: to, phase: 'Provisioning', turn: 4 })
  })

  it.each<[string, Row, object]>([
    ['behind', failed, resume(6)],
    ['ahead', failed, resume(8)],
    ['of a row that is neither failed nor stalled', aRow(), resume(3)],
    ['of a Ready row', aRow({ phase: 'Ready', step: undefined }), resume(3)],
    ['of a tombstone', aRow({ phase: 'Deleted', step: undefined }), resume(3)],
    ['of a tombstone, with a step', aRow({ phase: 'Deleted', step: undefined }), resume(3, 'start')],
    ['of a moving row, with a step', aRow(), resume(3, 'stop')],
  ])('%s is acknowledged, and changes nothing', async (_, row, message) => {
    await desk.store(row)
    await nothingHappens(message)
  })

  it('of no row makes none', async () => {
    expect(await desk.handle(resume(0))).toEqual(acknowledged)
    expect(desk.ledger.rows()).toEqual([])
  })

  it('of a held row comes back', async () => {
    await desk.store(failed)
    await heldByAnother()
    expect((await desk.handle(resume(7))).kind).toBe('back')
  })
})

describe('worker: a row that kills whoever reads it', () => {
  /** So many holders died over the row. */
  async function died(times: number) {
    for (let count = 0; count < times; count++) {
      await heldByAnother()
      desk.clock.advance(desk.leaseMs + 1)
    }
  }

  it('still has its step run after nine', async () => {
    await desk.store(aRow())
    await died(9)
    await desk.handle(go(3))
    expect(desk.runs).toHaveLength(1)
    expect(desk.row()).toMatchObject({ step: 'seed', deliveries: 0 })
  })

  it('fails as Crashing after ten, without its step being run', async () => {
    await desk.store(aRow())
    await died(10)
    expect(await desk.handle(go(3))).toEqual(acknowledged)
    expect(desk.runs).toEqual([])
    expect(desk.row()).toMatchObject({
      step: 'report',
      failedStep: 'clone',
      deliveries: 0,
      problem: { code: 'Crashing', permanent: true },
    })
    expect(desk.sent).toMatchObject([{ side: 'create', message: go(4) }])
  })

  it.each([
    ['a request', request, 'create'],
    ['a deletion', deletion, 'delete'],
    ['a Resume', resume(3), 'create'],
  ] as const)('sends %s to the dead letters, and is not touched', async (_, message, side) => {
    await desk.store(aRow())
    await died(CRASHING_AFTER)
    expect(await desk.handle(message, { side })).toEqual(acknowledged)
    expect(desk.queues.deadLetters).toMatchObject([
      { side, body: JSON.stringify(message), obituary: { code: 'Crashing', uid: 'a', turn: 3 } },
    ])
    expect(desk.row()).toMatchObject({ step: 'clone', turn: 3, deliveries: CRASHING_AFTER })
    expect(await desk.isHeld()).toBe(false)
  })

  it('is buried as an event’s even before it is a row', async () => {
    await died(CRASHING_AFTER + 1)
    await desk.handle(request)
    expect(desk.queues.deadLetters).toMatchObject([{ obituary: { code: 'Crashing' } }])
  })
})

describe('worker: its log', () => {
  it('says in one line what became of a delivery, and for which step of which turn', async () => {
    await desk.store(aRow())
    desk.script.run = () => {
      desk.clock.advance(250)
      return wait('busy', 3)
    }
    await desk.handle(go(3))
    expect(desk.decisions).toEqual([
      { uid: 'a', turn: 3, step: 'clone', outcome: 'wait', reason: 'busy', ms: 250 },
    ])
  })

  it('holds nothing of what a publisher sent', async () => {
    await desk.handle({ ...request, spec: { ...aSpec, userData: '#cloud-config\n# canary' } })
    await desk.handle('{"canary":1}')
    expect(JSON.stringify(desk.decisions[0])).not.toContain('canary')
    expect(desk.decisions[1]).toMatchObject({
      reason: 'type: got nothing, wanted ProxyRequested or Continue or Resume',
    })
  })
})
