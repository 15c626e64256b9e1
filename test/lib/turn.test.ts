import { beforeEach, describe, expect, it } from 'vitest'
import { Failure, type FailureClass, type FailureCode } from '../../lib/failure.ts'
import { done, fail, next, type Outcome, task, wait } from '../../lib/outcome.ts'
import { errorClass, ProxmoxError, type ProxmoxErrorCode } from '../../lib/proxmox/index.ts'
import type { Problem, Row } from '../../lib/record.ts'
import { aRow, NOW } from './a-row.ts'
import { DEADLINE_SECONDS, type Desk, openDesk } from './desk.ts'

// What a step's decision, or its lack of one, leads to. The steps are a script; the worker, its order of sending and saving,
// its patience and its clock are the real ones.

const acknowledged = { kind: 'acknowledge' }
const go = (turn: number) => ({ type: 'Continue', uid: 'a', turn })
const upid = 'UPID:pve1:0003A2F1:0:0:qmclone:9000:bot@pve!ci:'
const running = { upid, step: 'clone', at: NOW } as const
const slot = 'clone#lab#vmdata#pve1'
const ready = { address: '10.0.0.1', endpoint: 'http://10.0.0.1:3128' }
const failing = (code: FailureCode, failureClass: FailureClass = 'transient') =>
  new Failure(code, `it is ${code}`, { class: failureClass, hint: 'look' })
const proxmox = (code: ProxmoxErrorCode, ambiguous = false) =>
  new ProxmoxError(`it is ${code}`, { code, call: 'POST /x', sent: 'maybe', ambiguous })

let desk: Desk
beforeEach(() => {
  desk = openDesk()
})

/** The step decides, or throws. */
function decides(result: Outcome | Error): void {
  desk.script.run = () => {
    if (result instanceof Error) throw result
    return result
  }
}
/** Stores a row and gives it its Continue. */
async function turnOf(changes: Parameters<typeof aRow>[0] = {}, result?: Outcome | Error) {
  const row = aRow(changes)
  if (result) decides(result)
  await desk.store(row)
  return act()
}
/** The Continue of the row as it now stands, which comes when it is due. */
async function act(receiveCount = 1) {
  const row = desk.row()
  if (!row) throw new Error('there is no row')
  const now = desk.clock.now()
  if (row.dueAt < now) await desk.store({ ...row, dueAt: now })
  const side = desk.sent.at(-1)?.side ?? (row.wish === 'absent' ? 'delete' : 'create')
  return desk.handle(go(row.turn), { side, receiveCount })
}
const hold = (): Promise<boolean> => desk.isHeld()

describe('turn: a decision', () => {
  it('of next sends, then saves, and lets go', async () => {
    expect(await turnOf({}, next('seed', { cloned: true }))).toEqual(acknowledged)
    expect(desk.acts).toEqual(['run', 'send', 'save'])
    expect(desk.sent).toEqual([{ side: 'create', message: go(4), delaySeconds: 0 }])
    expect(desk.row()).toEqual(
      aRow({
        step: 'seed',
        turn: 4,
        cloned: true,
        placedOn: 'lab/pve1',
        timeline: [{ step: 'clone', at: NOW, ms: 0, outcome: 'seed' }],
      }),
    )
    expect(await hold()).toBe(false)
  })

  it('of next with a delay is due after it, and enters its step now', async () => {
    desk.clock.advance(7000)
    await turnOf({ step: 'start' }, next('address', {}, 20))
    expect(desk.sent).toMatchObject([{ delaySeconds: 20 }])
    expect(desk.row()).toMatchObject({ since: NOW + 7000, dueAt: NOW + 27_000 })
  })

  it.each([
    ['clone', 'stop', 'delete'],
    ['release', 'reserve', 'create'],
    ['stop', 'unseed', 'delete'],
  ] as const)('of next, from %s to %s, goes by the queue of its new step: %s', async (step, to, side) => {
    desk.sent.push({ side: step === 'clone' ? 'create' : 'delete', message: {}, delaySeconds: 0 })
    await turnOf({ step }, next(to))
    expect(desk.sent.at(-1)).toMatchObject({ side, message: go(4) })
  })

  it('takes away what it patches to undefined, and where the row was placed', async () => {
    await turnOf(
      { placedOn: 'lab/pve1', ended: { ...running, ok: true } },
      next('reserve', { place: undefined, ended: undefined }),
    )
    for (const field of ['place', 'placedOn', 'ended']) expect(desk.row()).not.toHaveProperty(field)
  })

  it('of wait comes again later at the same step, its time of entry unchanged', async () => {
    desk.clock.advance(30_000)
    await turnOf({}, wait('busy', 4, { patch: { probed: 16 } }))
    expect(desk.sent).toEqual([{ side: 'create', message: go(4), delaySeconds: 4 }])
    expect(desk.row()).toEqual(aRow({ turn: 4, probed: 16, dueAt: NOW + 34_000 }))
  })

  it('of a task notes it, with the step it belongs to', async () => {
    await turnOf({}, task(upid, 'cloning', { seededOn: ['pve1'] }))
    expect(desk.row()).toEqual(aRow({ turn: 4, task: running, seededOn: ['pve1'], dueAt: NOW + 1000 }))
    expect(desk.sent).toMatchObject([{ delaySeconds: 1 }])
  })

  it('of done tells the world, then saves, and sends nothing', async () => {
    desk.clock.advance(90_000)
    expect(
      await turnOf({ step: 'verify', ...ready, lookedAgain: 2, task: { ...running, step: 'start' } }, done()),
    ).toEqual(acknowledged)
    expect(desk.acts).toEqual(['run', 'publish', 'save'])
    expect(desk.outcomes).toEqual([
      expect.objectContaining({ type: 'ProxyReady', eventId: 'a:1:3', timeToReadyMs: 90_000 }),
    ])
    expect(desk.row()).toEqual(
      aRow({
        ...ready,
        step: undefined,
        phase: 'Ready',
        turn: 4,
        dueAt: NOW + 90_000,
        readyAt: NOW + 90_000,
        announced: { generation: 1, address: '10.0.0.1' },
        timeline: [{ step: 'verify', at: NOW, ms: 90_000, outcome: 'done' }],
      }),
    )
    expect(desk.sent).toEqual([])
  })

  it('of done, where the world was told the same before, tells nothing, and is ready since then', async () => {
    const announced = { generation: 1, address: '10.0.0.1' }
    await turnOf({ step: 'verify', ...ready, announced, readyAt: NOW - 5000 }, done())
    expect(desk.outcomes).toEqual([])
    expect(desk.row()).toMatchObject({ phase: 'Ready', readyAt: NOW - 5000, announced })
  })

  it('of done at another address than the world was told tells the change, once a turn', async () => {
    const announced = { generation: 1, address: '10.0.0.9' }
    await turnOf({ step: 'verify', ...ready, announced }, done())
    expect(desk.outcomes).toMatchObject([
      { type: 'ProxyChanged', eventId: 'a:1:3', address: '10.0.0.1', previousAddress: '10.0.0.9' },
    ])
    expect(desk.row()?.announced).toEqual({ generation: 1, address: '10.0.0.1' })
  })

  it('of done, where absence was wished, leaves a tombstone that tells of nothing that is not there', async () => {
    await desk.userData.put('a', 1, 'x')
    const whole: Partial<Row> = {
      ...ready,
      placedOn: 'lab/pve1',
      cloned: true,
      seededOn: ['pve1'],
      swept: ['pve1'],
      unsettledUntil: NOW - 1,
      expiresAt: NOW,
      ended: { ...running, ok: true },
    }
    await turnOf({ ...whole, wish: 'absent', phase: 'Deleting', step: 'release' }, done())
    expect(desk.outcomes).toEqual([
      {
        type: 'ProxyDeleted',
        eventId: 'a:1:3',
        uid: 'a',
        generation: 1,
        deletedAt: '2026-01-01T00:00:00.000Z',
      },
    ])
    expect(desk.row()).toEqual(
      aRow({
        wish: 'absent',
        phase: 'Deleted',
        step: undefined,
        turn: 4,
        place: undefined,
        seed: undefined,
        timeline: [{ step: 'release', at: NOW, ms: 0, outcome: 'done' }],
        purgeAt: NOW / 1000 + 35 * 86_400,
      }),
    )
    expect(await desk.userData.get('a', 1)).toBeUndefined()
  })

  it('of fail goes to report, by the queue of the step that failed, with all a person needs', async () => {
    await turnOf({ step: 'destroy', wish: 'absent' }, fail('Protected', 'it is protected', 'unprotect it'))
    expect(desk.sent).toEqual([{ side: 'delete', message: go(4), delaySeconds: 0 }])
    expect(desk.row()).toMatchObject({
      step: 'report',
      failedStep: 'destroy',
      phase: 'Deleting',
      turn: 4,
      problem: {
        code: 'Protected',
        reason: 'it is protected',
        hint: 'unprotect it',
        firstAt: NOW,
        lastAt: NOW,
        permanent: true,
      },
      timeline: [{ step: 'destroy', outcome: 'Protected' }],
    })
    expect(desk.outcomes).toEqual([])
  })

  it('keeps a timeline of the last sixty steps', async () => {
    const entry = (ms: number) => ({ step: 'clone', at: NOW, ms, outcome: 'seed' }) as const
    await turnOf({ timeline: Array.from({ length: 60 }, (_, ms) => entry(ms)) }, next('seed'))
    const { timeline = [] } = desk.row() ?? {}
    expect([timeline.length, timeline[0]?.ms, timeline.at(-1)?.ms]).toEqual([60, 1, 0])
  })
})

describe('turn: a report', () => {
  const problem: Problem = {
    code: 'NoSpace',
    reason: 'full',
    hint: 'make room',
    firstAt: NOW - 5,
    lastAt: NOW,
    times: 1,
    permanent: true,
  }
  const reporting = { step: 'report', failedStep: 'clone', problem, task: running } as const

  // Report: runs-on/runs-on#543
  it('buries its message with the reason, tells the world, and rests', async () => {
    expect(await turnOf(reporting)).toEqual(acknowledged)
    expect(desk.acts).toEqual(['bury', 'publish', 'save'])
    expect(desk.queues.deadLetters).toEqual([
      {
        side: 'create',
        body: JSON.stringify(go(3)),
        obituary: {
          code: 'NoSpace',
          uid: 'a',
          turn: 3,
          step: 'clone',
          failedAt: '2026-01-01T00:00:00.000Z',
          problem: {
            reason: 'full',
            hint: 'make room',
            zone: 'lab-1',
            cluster: 'lab',
            node: 'pve1',
            vmid: 5001,
            upid,
          },
        },
      },
    ])
    expect(desk.outcomes).toEqual([
      {
        type: 'ProxyFailed',
        eventId: 'a:1:3',
        uid: 'a',
        generation: 1,
        code: 'NoSpace',
        reason: 'full',
        hint: 'make room',
        step: 'clone',
        retriable: true,
      },
    ])
    expect(desk.row()).toEqual(
      aRow({ failedStep: 'clone', problem, task: running, step: undefined, phase: 'Failed', turn: 4 }),
    )
  })

  it('of a deletion goes to the dead letters of the delete queue', async () => {
    await turnOf({ ...reporting, wish: 'absent', failedStep: 'stop' })
    expect(desk.queues.deadLetters).toMatchObject([{ side: 'delete', obituary: { step: 'stop' } }])
  })

  it('of an orphan is no news to publishers', async () => {
    await turnOf({ ...reporting, wish: 'absent', failedStep: 'stop', orphanOf: 'z' })
    expect(desk.outcomes).toEqual([])
    expect(desk.queues.deadLetters).toHaveLength(1)
  })

  it.each(['bury', 'publish', 'save'] as const)(
    'that was cut short at its %s is made again, known by the same turn and event',
    async (act) => {
      desk.breakNext(act)
      expect((await turnOf(reporting)).kind).toBe('back')
      expect(desk.row()?.phase).not.toBe('Failed')
      expect(await desk.isHeld()).toBe(false)
      expect(await desk.handle(go(3), { receiveCount: 2 })).toEqual(acknowledged)
      expect(desk.row()).toMatchObject({ phase: 'Failed', turn: 4 })
      expect(
        new Set(desk.queues.deadLetters.map(({ obituary }) => `${obituary.uid}/${obituary.turn}`)),
      ).toEqual(new Set(['a/3']))
      expect(new Set(desk.outcomes.map(({ eventId }) => eventId))).toEqual(new Set(['a:1:3']))
    },
  )

  it('that was made already is not made again', async () => {
    await turnOf(reporting)
    await desk.handle(go(3), { receiveCount: 2 })
    expect(desk.queues.deadLetters).toHaveLength(1)
    expect(desk.outcomes).toHaveLength(1)
  })

  // Report: runs-on/runs-on#543
  it('is made though those who read the row died ten times: it is how a Crashing row is told of', async () => {
    await desk.store(aRow({ ...reporting }))
    for (let death = 0; death < 10; death++) {
      await desk.ledger.take('a', { kind: 'event' })
      desk.clock.advance(desk.leaseMs + 1)
    }
    await desk.handle(go(3))
    expect(desk.row()?.phase).toBe('Failed')
  })
})

describe('turn: cut short between sending and saving', () => {
  /** Sends its message, and then nothing more is heard of it. */
  async function died() {
    await desk.store(aRow())
    desk.script.run = ({ step }) => (step === 'clone' ? next('seed') : next('configure'))
    desk.dieAfter('send')
    await desk.handle(go(3))
    desk.revive()
    expect(desk.sent).toMatchObject([{ message: go(4) }])
    expect(desk.row()).toMatchObject({ turn: 3, step: 'clone' })
    expect(await hold()).toBe(true)
  }
  const steps = () => desk.runs.map(({ step }) => step)

  it('leaves two messages, of which one acts: the new one first', async () => {
    await died()
    expect((await desk.handle(go(4))).kind).toBe('back')
    desk.clock.advance(desk.leaseMs + 1)
    expect(await desk.handle(go(4))).toEqual(acknowledged)
    expect(steps()).toEqual(['clone'])
    expect(await desk.handle(go(3), { receiveCount: 2 })).toEqual(acknowledged)
    expect(desk.row()).toMatchObject({ turn: 4, step: 'seed' })
    expect(steps()).toEqual(['clone', 'clone'])
  })

  it('leaves two messages, of which one acts: the old one first', async () => {
    await died()
    desk.clock.advance(desk.leaseMs + 1)
    await desk.handle(go(3), { receiveCount: 2 })
    expect(desk.sent).toMatchObject([{ message: go(4) }, { message: go(4) }])
    await desk.handle(go(4))
    await desk.handle(go(4))
    expect(steps()).toEqual(['clone', 'clone', 'seed'])
    expect(desk.row()).toMatchObject({ turn: 5, step: 'configure' })
  })

  it('makes whoever takes over believe that a call may still run', async () => {
    await died()
    desk.clock.advance(desk.leaseMs + 1)
    await desk.handle(go(3), { receiveCount: 2 })
    expect(desk.runs.map(({ settled }) => settled)).toEqual([true, false])
  })

  it('with the old message saved by another in between is a lost race: back, and the other’s lease stands', async () => {
    await desk.store(aRow())
    let other = ''
    desk.script.run = async () => {
      desk.clock.advance(desk.leaseMs + 1)
      const taken = await desk.ledger.take('a', { kind: 'turn', turn: 3 })
      if (taken.kind === 'taken') other = taken.token
      return next('seed')
    }
    expect(await desk.handle(go(3))).toEqual({ kind: 'back', seconds: 1 })
    expect(desk.acts).toEqual(['run', 'send', 'save'])
    expect(desk.row()).toMatchObject({ turn: 3, step: 'clone' })
    expect(await hold()).toBe(true)
    await desk.ledger.save(aRow({ turn: 4 }), other)
  })
})

describe('turn: AWS in trouble', () => {
  it.each(['send', 'save'] as const)(
    'at %s brings the message back, frees the row, and holds a call of the step to be unsettled',
    async (act) => {
      desk.breakNext(act)
      expect(await turnOf({}, task(upid, 'cloning'))).toEqual({ kind: 'back', seconds: 1 })
      expect(desk.row()).toEqual(aRow({ unsettledUntil: NOW + desk.settleMs }))
      expect(await hold()).toBe(false)
      await desk.handle(go(3), { receiveCount: 2 })
      expect(desk.runs.map(({ settled }) => settled)).toEqual([true, false])
    },
  )

  it('at publish brings the message back; the row is not Ready before the world was told', async () => {
    desk.breakNext('publish')
    expect((await turnOf({ step: 'verify', ...ready }, done())).kind).toBe('back')
    expect(desk.row()).toMatchObject({ phase: 'Provisioning', step: 'verify', turn: 3 })
    await desk.handle(go(3), { receiveCount: 2 })
    expect(desk.outcomes).toMatchObject([{ eventId: 'a:1:3' }])
    expect(desk.row()?.phase).toBe('Ready')
  })

  it('after publishing tells the world again, with the same event', async () => {
    desk.breakNext('save')
    await turnOf({ step: 'verify', ...ready }, done())
    await desk.handle(go(3), { receiveCount: 2 })
    expect(desk.outcomes.map(({ eventId }) => eventId)).toEqual(['a:1:3', 'a:1:3'])
  })
})

describe('turn: a step that throws', () => {
  it('something transient notes it, its turn unchanged, and has the queue bring it back', async () => {
    expect(await turnOf({}, failing('Locked'))).toEqual({ kind: 'back', seconds: 5 })
    expect(desk.sent).toEqual([])
    expect(desk.row()).toEqual(
      aRow({
        dueAt: NOW + 5000,
        problem: {
          code: 'Locked',
          reason: 'it is Locked',
          hint: 'look',
          firstAt: NOW,
          lastAt: NOW,
          times: 1,
        },
      }),
    )
    expect(await hold()).toBe(false)
    expect(desk.decisions).toMatchObject([{ outcome: 'back', code: 'Locked', step: 'clone', turn: 3 }])
  })

  it.each((Object.keys(errorClass) as ProxmoxErrorCode[]).map((code) => [code, errorClass[code]] as const))(
    '%s of Proxmox is %s',
    async (code, kind) => {
      const verdict = await turnOf({}, proxmox(code))
      expect(verdict.kind).toBe(kind === 'transient' ? 'back' : 'acknowledge')
      expect(desk.row()).toMatchObject(
        {
          transient: { step: 'clone', turn: 3, problem: { code } },
          permanent: { step: 'report', turn: 4, problem: { code, permanent: true } },
          wait: { step: 'clone', turn: 4 },
        }[kind],
      )
      if (kind === 'wait') expect(desk.row()).not.toHaveProperty('problem')
    },
  )

  // Report: github-aws-runners/terraform-aws-github-runner#5024
  it('something unknown takes it for transient, with a short window', async () => {
    expect((await turnOf({}, new TypeError('x is undefined'))).kind).toBe('back')
    expect(desk.row()?.problem).toMatchObject({ code: 'Unexpected', reason: 'TypeError: x is undefined' })
  })

  it('a permanent failure fails with its words and its hint', async () => {
    await turnOf({}, failing('Misconfigured', 'permanent'))
    expect(desk.row()).toMatchObject({
      step: 'report',
      failedStep: 'clone',
      problem: { code: 'Misconfigured', reason: 'it is Misconfigured', hint: 'look', permanent: true },
    })
  })

  it('one that says wait waits, and is no trouble', async () => {
    await turnOf({ step: 'address' }, proxmox('AgentSilent'))
    expect(desk.sent).toEqual([{ side: 'create', message: go(4), delaySeconds: 5 }])
    expect(desk.row()).toEqual(aRow({ step: 'address', turn: 4, dueAt: NOW + 5000 }))
  })

  it('waits for a lock for six hours, and for anything else as long as the step may', async () => {
    await turnOf({}, proxmox('VmLocked'))
    desk.clock.advance(6 * 3600_000)
    await act()
    expect(desk.row()).toMatchObject({ step: 'clone', turn: 5 })
    decides(proxmox('AgentSilent'))
    await act()
    desk.clock.advance(DEADLINE_SECONDS * 1000 + 1)
    await act()
    expect(desk.row()).toMatchObject({ step: 'report', problem: { code: 'StepTimedOut' } })
  })

  it.each([
    ['transient', 'Unreachable', 'clone'],
    ['permanent', 'Rejected', 'report'],
    ['wait', 'VmLocked', 'clone'],
  ] as const)('an ambiguous error (%s) is remembered: the call may still run', async (_, code, step) => {
    await turnOf({}, proxmox(code, true))
    expect(desk.row()).toMatchObject({ step, unsettledUntil: NOW + desk.settleMs })
  })
})

describe('turn: unsettled', () => {
  it('lasts until its time has passed, and not a millisecond less', async () => {
    desk.clock.advance(1000)
    await turnOf({ unsettledUntil: NOW + 1000 }, wait('x', 1))
    desk.clock.advance(1)
    await act()
    expect(desk.runs.map(({ settled }) => settled)).toEqual([false, true])
  })

  it('is remembered after it has passed, until a step says that it does not matter any more', async () => {
    await turnOf({ unsettledUntil: NOW - 5 }, next('seed'))
    expect(desk.row()?.unsettledUntil).toBe(NOW - 5)
    decides(next('clone', { unsettledUntil: undefined }))
    await act()
    expect(desk.row()).not.toHaveProperty('unsettledUntil')
  })
})

describe('turn: a stretch of trouble', () => {
  it('begins once, whatever the codes, and counts', async () => {
    await turnOf({}, failing('Locked'))
    desk.clock.advance(5000)
    decides(failing('Unreachable'))
    await act(2)
    desk.clock.advance(5000)
    decides(failing('NoSpace'))
    await act(3)
    expect(desk.row()?.problem).toEqual({
      code: 'NoSpace',
      reason: 'it is NoSpace',
      hint: 'look',
      firstAt: NOW,
      lastAt: NOW + 10_000,
      times: 3,
    })
  })

  it('ends with the first decision, and does not count against the step’s time', async () => {
    desk.clock.advance(100_000)
    await turnOf({}, failing('Unreachable'))
    desk.clock.advance(7200_000)
    decides(wait('busy', 3))
    await act(9)
    expect(desk.row()).toEqual(aRow({ turn: 4, since: NOW + 7200_000, dueAt: NOW + 7303_000 }))
    // Of its ten minutes, the step had used up 100 seconds before the trouble.
    desk.clock.advance((DEADLINE_SECONDS - 100) * 1000)
    await act()
    expect(desk.row()?.step).toBe('clone')
    desk.clock.advance(1)
    await act()
    expect(desk.row()).toMatchObject({ step: 'report', problem: { code: 'StepTimedOut' } })
  })

  it('is told in the timeline of the step that ends in it, and not of one that got over it', async () => {
    await turnOf({}, failing('Unreachable'))
    desk.clock.advance(1000)
    decides(next('seed'))
    await act(2)
    expect(desk.row()?.timeline).toEqual([{ step: 'clone', at: NOW + 1000, ms: 0, outcome: 'seed' }])
  })

  it.each([
    ['Unexpected', 600],
    ['Unknown', 600],
    ['Unauthorized', 900],
    ['NoSpace', 3600],
    ['Unreachable', 86_400],
    ['RangeExhausted', 86_400],
  ] as const)('is given up after the window of its latest code: %s, %d s', async (code, seconds) => {
    await turnOf({}, failing('Locked'))
    desk.clock.advance(seconds * 1000)
    decides(failing(code))
    expect((await act(50)).kind).toBe('back')
    desk.clock.advance(1)
    expect(await act(51)).toEqual(acknowledged)
    expect(desk.row()).toMatchObject({
      step: 'report',
      failedStep: 'clone',
      problem: {
        code: 'RetriesExhausted',
        reason: `nothing but transient errors since 2026-01-01T00:00:00.000Z, last ${code}: it is ${code}`,
        hint: 'look',
        permanent: true,
      },
    })
  })

  it('is given up after the window that is configured', async () => {
    desk = openDesk({ timings: { retryWindowSeconds: { Unreachable: 30 } } })
    await turnOf({}, failing('Unreachable'))
    desk.clock.advance(30_001)
    await act(2)
    expect(desk.row()?.problem?.code).toBe('RetriesExhausted')
  })

  it('is never too long for a step that goes on after it', async () => {
    await turnOf({}, failing('Unexpected'))
    desk.clock.advance(40 * 86_400_000)
    decides(next('seed'))
    await act(60)
    expect(desk.row()).toMatchObject({ step: 'seed', turn: 4 })
    expect(desk.row()).not.toHaveProperty('problem')
  })
})

describe('turn: a message that comes late', () => {
  const lateBy = async (ms: number, changes: Parameters<typeof aRow>[0], result: Outcome | Error) => {
    await desk.store(aRow(changes))
    decides(result)
    desk.clock.advance(ms)
    await desk.handle(go(3))
  }

  it('does not let the step be late: nobody asked meanwhile', async () => {
    await lateBy(24 * 3600_000, {}, wait('not yet', 1))
    expect(desk.row()).toMatchObject({ step: 'clone', turn: 4, since: NOW + 24 * 3600_000 })
  })

  it('does not use up the window of a stretch of trouble', async () => {
    const problem = { code: 'Unknown', reason: 'it is', firstAt: NOW - 1000, lastAt: NOW, times: 1 } as const
    await lateBy(24 * 3600_000, { problem }, failing('Unknown'))
    expect(desk.row()).toMatchObject({ step: 'clone', turn: 3, problem: { times: 2 } })
  })

  it('but by no more than clocks may differ and a minute is not late', async () => {
    await lateBy(60_000, {}, wait('not yet', 1))
    expect(desk.row()).toMatchObject({ turn: 4, since: NOW })
  })
})

describe('turn: deadlines', () => {
  const late = DEADLINE_SECONDS * 1000 + 1

  it('are judged only when a step says wait', async () => {
    desk.clock.advance(10 * late)
    await turnOf({}, next('seed'))
    expect(desk.row()?.step).toBe('seed')
    desk.clock.advance(10 * late)
    decides(failing('Locked'))
    expect((await act()).kind).toBe('back')
  })

  it('are kept to the millisecond', async () => {
    desk.clock.advance(late - 1)
    await turnOf({}, wait('busy', 3))
    expect(desk.row()?.step).toBe('clone')
    desk.clock.advance(1)
    await act()
    expect(desk.row()).toMatchObject({
      step: 'report',
      problem: { code: 'StepTimedOut', reason: 'clone: busy, for 600 s' },
    })
  })

  it('have a name of their own where the step has one', async () => {
    desk.clock.advance(late)
    await turnOf({ step: 'address' }, wait('the guest has no address yet', 2))
    expect(desk.row()?.problem).toMatchObject({
      code: 'AgentNeverUp',
      reason: 'address: the guest has no address yet, for 600 s',
      hint: 'look at its console',
    })
  })

  it('give way to the patience of a kind of waiting', async () => {
    desk.clock.advance(late)
    await turnOf({}, wait('waits for its turn', 30, { capSeconds: 7200 }))
    desk.clock.advance(7200_000)
    await act()
    expect(desk.row()?.step).toBe('clone')
    desk.clock.advance(1)
    await act()
    expect(desk.row()).toMatchObject({ step: 'report', problem: { code: 'StepTimedOut' } })
    expect(desk.row()).not.toHaveProperty('parkedAt')
  })

  it('call a patience that ran out by the name it was given', async () => {
    await turnOf({}, wait('the address is another’s', 30, { capSeconds: 7200, late: 'AddressTaken' }))
    desk.clock.advance(7200_001)
    await act()
    expect(desk.row()).toMatchObject({ step: 'report', problem: { code: 'AddressTaken' } })
  })

  it('time each kind of such waiting by itself: hours in a queue take nothing from the patience with an address', async () => {
    await turnOf({}, wait('another guest is being asked', 15, { capSeconds: 86_400, why: 'agent' }))
    desk.clock.advance(5 * 3600_000)
    await act()
    decides(wait('the address is another’s', 30, { capSeconds: 1800, late: 'AddressTaken' }))
    await act()
    expect(desk.row()).toMatchObject({ step: 'clone', parkedFor: 'AddressTaken' })
    desk.clock.advance(1800_001)
    await act()
    expect(desk.row()).toMatchObject({ step: 'report', problem: { code: 'AddressTaken' } })
    expect(desk.row()).not.toHaveProperty('parkedFor')
  })

  it('leave out the time that a step spent in such waiting: a clone that had to queue for hours is not late', async () => {
    await turnOf({}, wait('waits for its turn', 30, { capSeconds: 86_400 }))
    desk.clock.advance(5 * 3600_000)
    await act()
    decides(task(upid, 'cloning'))
    await act()
    expect(desk.row()).toMatchObject({ step: 'clone', task: { upid } })
    desk.clock.advance(DEADLINE_SECONDS * 1000)
    await act()
    expect(desk.row()?.step).toBe('clone')
    desk.clock.advance(1)
    await act()
    expect(desk.row()).toMatchObject({ step: 'report', problem: { code: 'StepTimedOut' } })
  })

  it('count the patience of a kind of waiting from its own beginning, trouble left out', async () => {
    const locked = wait('locked (backup)', 15, { capSeconds: 7200 })
    desk.clock.advance(DEADLINE_SECONDS * 1000)
    await turnOf({}, locked)
    desk.clock.advance(3600_000)
    decides(failing('Unreachable'))
    await act()
    desk.clock.advance(3600_000)
    decides(locked)
    await act()
    desk.clock.advance(3600_000)
    await act()
    expect(desk.row()?.step).toBe('clone')
    desk.clock.advance(1)
    await act()
    expect(desk.row()?.problem).toMatchObject({
      code: 'StepTimedOut',
      reason: 'clone: locked (backup), for 7200 s',
    })
  })

  it('begin anew with each step', async () => {
    desk.clock.advance(late - 1)
    await turnOf({}, next('seed'))
    desk.clock.advance(late - 1)
    decides(wait('busy', 3))
    await act()
    expect(desk.row()?.step).toBe('seed')
  })
})

describe('turn: a task of the step', () => {
  const withTask = { task: running }

  it.each([
    [0, 1],
    [3999, 1],
    [8000, 2],
    [60_000, 5],
  ])(
    'that runs for %d ms is asked for again in %d s, and the step is not run',
    async (ageMs, delaySeconds) => {
      desk.clock.advance(ageMs)
      await turnOf(withTask)
      expect(desk.runs).toEqual([])
      expect(desk.sent).toMatchObject([{ message: go(4), delaySeconds }])
      expect(desk.row()).toMatchObject({ task: running, step: 'clone' })
    },
  )

  it('that ended well is told to the step', async () => {
    desk.script.task = () => ({ running: false, ok: true })
    desk.clock.advance(5000)
    await turnOf(withTask, wait('look', 0))
    expect(desk.runs).toMatchObject([{ ended: { ...running, at: NOW + 5000, ok: true }, endedSecondsAgo: 0 }])
    expect(desk.runs[0]).not.toHaveProperty('task')
    desk.clock.advance(61_000)
    await act()
    expect(desk.runs[1]?.endedSecondsAgo).toBe(61)
  })

  it.each(['TaskLost', 'AlreadyExists', 'Interrupted', 'VolumeMissing', 'VmMissing', 'Running'] as const)(
    'that ended with %s has the step look again',
    async (code) => {
      desk.script.task = () => ({ running: false, ok: false, error: proxmox(code) })
      await turnOf(withTask, wait('look', 0))
      expect(desk.runs).toMatchObject([{ ended: { ok: false, code } }])
    },
  )

  it.each(['Locked', 'NoSpace', 'StorageOffline', 'Unknown'] as const)(
    'that ended with %s is trouble of the step, which comes again without the task',
    async (code) => {
      desk.script.task = () => ({ running: false, ok: false, error: proxmox(code) })
      expect((await turnOf(withTask)).kind).toBe('back')
      expect(desk.runs).toEqual([])
      expect(desk.row()).toMatchObject({ turn: 3, ended: { ok: false, code }, problem: { code } })
      expect(desk.row()).not.toHaveProperty('task')
    },
  )

  it('that ended for good fails the step', async () => {
    desk.script.task = () => ({ running: false, ok: false, error: proxmox('Forbidden') })
    await turnOf(withTask)
    expect(desk.row()).toMatchObject({ step: 'report', failedStep: 'clone', problem: { code: 'Forbidden' } })
  })

  it('of which nothing is known any more has the step look', async () => {
    desk.script.task = () => {
      throw proxmox('NoSuchTask')
    }
    await turnOf(withTask, wait('look', 0))
    expect(desk.runs).toMatchObject([{ ended: { ok: false, code: 'NoSuchTask' } }])
    expect(desk.runs[0]?.ended?.unseen).toBeUndefined()
  })

  it('whose node is silent is trouble, and not forgotten', async () => {
    desk.script.task = () => {
      throw proxmox('Unreachable')
    }
    expect((await turnOf(withTask)).kind).toBe('back')
    expect(desk.row()).toMatchObject({ task: running, problem: { code: 'Unreachable' } })
  })

  it('that belongs to an earlier step is this step’s business while it runs', async () => {
    await turnOf({ step: 'stop', wish: 'absent', task: running }, wait('look', 0))
    expect(desk.runs).toMatchObject([{ task: running }])
  })

  it('that belongs to an earlier step leaves its end in the row, and fails nothing', async () => {
    desk.script.task = () => ({ running: false, ok: false, error: proxmox('TaskLost') })
    await turnOf({ step: 'stop', wish: 'absent', task: running }, wait('look', 0))
    expect(desk.runs).toMatchObject([{ ended: { ...running, ok: false, code: 'TaskLost' } }])
    expect(desk.row()).not.toHaveProperty('task')
  })

  it('that is shown to another token only may be running still', async () => {
    desk.script.task = () => {
      throw proxmox('Forbidden')
    }
    await turnOf(withTask, wait('look', 0))
    expect(desk.runs).toMatchObject([{ settled: false, ended: { code: 'NoSuchTask', unseen: true } }])
  })

  it('that runs longer than the step may wait fails it', async () => {
    desk.clock.advance(DEADLINE_SECONDS * 1000 + 1)
    await turnOf(withTask)
    expect(desk.row()).toMatchObject({ step: 'report', task: running, problem: { code: 'StepTimedOut' } })
  })
})

describe('turn: the slot of a step', () => {
  const held = async () => (await desk.claims.takeSlot(slot, 1, 'other')) === false

  it.each<[string, Outcome | Error]>([
    ['goes on', next('seed')],
    ['goes back', next('reserve', { place: undefined })],
    ['fails', fail('NoSpace', 'full')],
    ['throws for good', failing('Misconfigured', 'permanent')],
  ])('is given back when the row %s', async (_, result) => {
    await desk.claims.takeSlot(slot, 1, 'a')
    await turnOf({}, result)
    expect(await held()).toBe(false)
  })

  it('is given back when a row is done', async () => {
    await desk.claims.takeSlot(slot, 1, 'a')
    await turnOf({ step: 'destroy', wish: 'absent' }, done())
    expect(await held()).toBe(false)
  })

  it.each<[string, Outcome | Error]>([
    ['waits', wait('busy', 3)],
    ['has a task at work', task(upid, 'cloning')],
    ['is in trouble', failing('Locked')],
  ])('is kept while the row %s', async (_, result) => {
    await desk.claims.takeSlot(slot, 1, 'a')
    await turnOf({}, result)
    expect(await held()).toBe(true)
  })

  it('of another is nobody’s to give back', async () => {
    await desk.claims.takeSlot(slot, 1, 'z')
    await turnOf({}, next('seed'))
    expect(await held()).toBe(true)
  })
})
