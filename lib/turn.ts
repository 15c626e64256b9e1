import { createAttempt } from './attempt.ts'
import { redeliverySeconds } from './backoff.ts'
import { createEnding, timeInStep, timelineOf } from './ending.ts'
import { asFailing, type Failing, type FailureCode, retryWindowSeconds } from './failure.ts'
import { type Ledger, LostRace } from './ledger.ts'
import type { Invocation, LifeCycle } from './life-cycle.ts'
import { measured, type WaitReason } from './metrics.ts'
import { fail, type Outcome, wait } from './outcome.ts'
import type { Delivery, Queues } from './queue.ts'
import { type Patch, patched, type Row, type StepName, sideOf } from './record.ts'
import type { Trouble } from './symptoms.ts'
import type { Publish } from './topic.ts'
import type { UserDataStore } from './user-data.ts'
import { CRASHING_AFTER, type Decided, decided, leaseRunsOut } from './worker.ts'

/** Runs one step of a row that is ours for now, and carries out what it decided: the message first, then the row. */
export type Turn = (row: Row, token: string, delivery: Delivery, invocation: Invocation) => Promise<Decided>

export type TurnOptions = {
  cycle: LifeCycle
  ledger: Ledger
  queues: Queues
  userData: UserDataStore
  publish: Publish
  /** Gives back what the step that a row is about to leave had taken. */
  leave(row: Row): Promise<void>
  settleMs: number
  /** A message may come so much later than it is due before that counts as absence: more than clocks differ. */
  toleratedLateMs: number
  tombstoneDays: number
  retryWindowSeconds: Partial<Record<FailureCode, number>>
  /** What a person can type about a failure that brings no hint of its own. */
  hint?: (trouble: Trouble, row: Row) => string
  now?: () => number
  random?: () => number
}

const WAIT_SECONDS = 5
const LOCK_CAP_SECONDS = 6 * 3600

export function createTurn(options: TurnOptions): Turn {
  const { cycle, ledger, queues, leave, settleMs, toleratedLateMs } = options
  const { now = Date.now, random = Math.random } = options
  const attempt = createAttempt({ cycle, settleMs, now })
  const { finish, report } = createEnding({ ...options, now })

  return async (taken, token, delivery, invocation) => {
    if (taken.step === 'report') return orLetGo(taken, token, report(taken, token, delivery))
    if (taken.deliveries >= CRASHING_AFTER) {
      const crashing = fail('Crashing', `${taken.deliveries} leases ran out in a row at this step`)
      return orLetGo(taken, token, carryOut(taken, crashing, token))
    }
    const { row, result } = await attempt(afterAbsence(taken), invocation)
    const outcome = result instanceof Error ? asOutcome(row, result) : result
    try {
      if (!outcome) return await again(row, asFailing(result), token, delivery)
      const timed = faltering(row, parked(afterOutage(row), outcome), outcome)
      return await carryOut(timed, inTime(timed, outcome), token)
    } catch (error) {
      if (error instanceof LostRace) throw error
      // The step may have changed something, and the row does not know of it: as good as a call that was not answered.
      // Where this save fails as well, the lease runs out, and whoever takes it over knows the same.
      await ledger.save(patched(row, { unsettledUntil: now() + settleMs }), token).catch(leaseRunsOut)
      throw error
    }
  }

  /** Work that asks nothing of Proxmox: when it fails, there is nothing the row does not know, and it is let go of as it was. */
  async function orLetGo(row: Row, token: string, work: Promise<Decided>): Promise<Decided> {
    try {
      return await work
    } catch (error) {
      if (!(error instanceof LostRace)) await ledger.release(row.uid, token).catch(leaseRunsOut)
      throw error
    }
  }

  /** A failure as a decision; undefined when the queue is to try again. */
  function asOutcome(row: Row, failing: Failing): Outcome | undefined {
    const { code, message } = failing
    const hint = failing.hint ?? options.hint?.(failing, row)
    if (failing.class === 'permanent') return fail(code, message, hint)
    if (failing.class === 'wait') {
      if (code === 'VmLocked') return wait(message, WAIT_SECONDS, { capSeconds: LOCK_CAP_SECONDS })
      return wait(message, WAIT_SECONDS, { why: 'agent' })
    }
    const firstAt = row.failingSince ?? row.problem?.firstAt ?? now()
    if (now() - firstAt <= retryWindowSeconds(code, options.retryWindowSeconds) * 1000) return undefined
    const since = new Date(firstAt).toISOString()
    return fail(
      'RetriesExhausted',
      `nothing but transient errors since ${since}, last ${code}: ${message}`,
      hint,
    )
  }

  /** Nor does time count in which nobody asked: the message lay in its queue, the machine was switched off. */
  function afterAbsence(row: Row): Row {
    const lateMs = now() - row.dueAt
    if (lateMs <= toleratedLateMs) return row
    const { since, parkedAt, failingSince, problem } = row
    return patched(row, {
      since: since + lateMs,
      ...(parkedAt !== undefined && { parkedAt: parkedAt + lateMs }),
      ...(failingSince !== undefined && { failingSince: failingSince + lateMs }),
      ...(problem && !problem.permanent && { problem: { ...problem, firstAt: problem.firstAt + lateMs } }),
    })
  }

  /** Deadlines count only time in which Proxmox answered. */
  function afterOutage(row: Row): Row {
    const { problem, since, parkedAt } = row
    if (!problem || problem.permanent) return row
    const lostMs = now() - problem.firstAt
    const parkedSince = parkedAt === undefined ? {} : { parkedAt: parkedAt + lostMs }
    return patched(row, { problem: undefined, since: since + lostMs, ...parkedSince })
  }

  /** Waiting with a patience of its own is timed by itself, each kind of it, and its time is not the step's. */
  function parked(row: Row, outcome: Outcome): Row {
    const { since, parkedAt = now() } = row
    const parkedFor = isPatient(outcome) ? (outcome.late ?? outcome.why ?? 'lock') : undefined
    if (parkedFor !== undefined && parkedFor === row.parkedFor) return patched(row, { parkedAt, parkedFor })
    const waited = { since: since + (now() - parkedAt), parkedFor }
    return patched(row, { ...waited, parkedAt: parkedFor === undefined ? undefined : now() })
  }

  /** That a task could be begun again is no progress yet: the stretch of its failures goes on until the step says something else. */
  function faltering(before: Row, row: Row, outcome: Outcome): Row {
    const { problem } = before
    const firstAt = before.failingSince ?? (problem?.permanent ? undefined : problem?.firstAt)
    const isOfTask = outcome.kind === 'task' || (outcome.kind === 'wait' && row.task?.step === row.step)
    return patched(row, { failingSince: isOfTask ? firstAt : undefined })
  }

  function inTime(row: Row, outcome: Outcome): Outcome {
    if (outcome.kind !== 'wait' && outcome.kind !== 'task') return outcome
    const rules = row.step === undefined ? undefined : cycle.rules(row.step)
    const [cap, from = row.since] = isPatient(outcome)
      ? [outcome.capSeconds, row.parkedAt]
      : [rules?.deadlineSeconds ?? 0]
    const waited = (now() - from) / 1000
    if (waited <= cap) return outcome
    // Patience for a lock or a place in a queue says nothing of what the step itself waits for.
    const ofItsOwn = isPatient(outcome) && outcome.late ? { code: outcome.late, hint: undefined } : undefined
    const late = isPatient(outcome) ? ofItsOwn : rules?.late
    const { code, hint } = late ?? { code: 'StepTimedOut' as const, hint: undefined }
    const reason = `${row.step}: ${outcome.reason}, for ${Math.round(waited)} s`
    const cause = row.failingSince === undefined ? undefined : row.ended?.code
    if (cause === undefined) return fail(code, reason, hint)
    const told = `${reason}; its tasks ended with ${cause}`
    return fail(code, told, options.hint?.({ code: cause, message: told }, row) ?? hint)
  }

  async function carryOut(row: Row, outcome: Outcome, token: string): Promise<Decided> {
    const { step } = row
    if (outcome.kind !== 'wait' && outcome.kind !== 'task') await leave(row)
    if (outcome.kind === 'next') {
      await move(
        patched(row, { ...outcome.patch, task: undefined }),
        outcome.step,
        outcome.delaySeconds,
        token,
      )
      return decided('next', `on to ${outcome.step}`, timeInStep(row, now()))
    }
    if (outcome.kind === 'fail') {
      const { code, reason } = outcome
      const hint = outcome.hint ?? options.hint?.({ code, message: reason }, row)
      const problem = {
        code,
        reason,
        ...(hint && { hint }),
        firstAt: now(),
        lastAt: now(),
        times: 1,
        permanent: true,
      }
      await move(patched(row, { failedStep: step, problem }), 'report', 0, token)
      return { ...decided('fail', reason), code }
    }
    if (outcome.kind === 'done') return finish(patched(row, outcome.patch), token)
    const patch: Patch =
      outcome.kind === 'task' && step
        ? { ...outcome.patch, task: { upid: outcome.upid, step, at: now() } }
        : outcome.patch
    const delaySeconds = outcome.kind === 'wait' ? outcome.delaySeconds : 1
    await sendThenSave(patched(row, patch), delaySeconds, token)
    const measurements = delaySeconds > 0 ? [measured('Waits', 1, { why: whyItWaits(row, outcome) })] : []
    return decided(outcome.kind, outcome.reason, measurements)
  }

  function whyItWaits(
    { task, unsettledUntil = 0 }: Row,
    outcome: Outcome & { kind: 'wait' | 'task' },
  ): WaitReason {
    if (outcome.kind === 'task') return 'task'
    if (outcome.why !== undefined) return outcome.why
    if (task) return 'task'
    if (unsettledUntil >= now()) return 'unsettled'
    return isPatient(outcome) ? 'lock' : 'step'
  }

  async function move(row: Row, step: StepName, delaySeconds: number, token: string): Promise<void> {
    const phase = row.wish === 'absent' ? 'Deleting' : 'Provisioning'
    const { place } = row
    const placedOn = place && `${place.cluster}/${place.node}`
    await sendThenSave(
      patched(row, {
        step,
        phase,
        placedOn,
        since: now(),
        parkedAt: undefined,
        parkedFor: undefined,
        failingSince: undefined,
        timeline: timelineOf(row, step, now()),
      }),
      delaySeconds,
      token,
    )
  }

  /** A crash between the two leaves two messages, of which the turn lets one act; the other order can lose the chain. */
  async function sendThenSave(row: Row, delaySeconds: number, token: string): Promise<void> {
    const turn = row.turn + 1
    if (row.step === undefined) throw new Error(`the row ${row.uid} was to go on without a step`)
    await queues.send(
      sideOf(row.step, row.failedStep),
      { type: 'Continue', uid: row.uid, turn },
      { delaySeconds },
    )
    await ledger.save({ ...row, turn, dueAt: now() + delaySeconds * 1000 }, token)
  }

  /** A transient failure: noted in the row, its turn unchanged, and brought back by the queue. */
  async function again(row: Row, failing: Failing, token: string, delivery: Delivery): Promise<Decided> {
    const { code, message: reason } = failing
    const hint = failing.hint ?? options.hint?.(failing, row)
    const seconds = redeliverySeconds(code, delivery.receiveCount, random)
    const firstAt = row.problem?.firstAt ?? now()
    const times = (row.problem?.times ?? 0) + 1
    const problem = { code, reason, ...(hint && { hint }), firstAt, lastAt: now(), times }
    await ledger.save(patched(row, { problem, dueAt: now() + seconds * 1000 }), token)
    const measurements = [measured('Retries', 1, { code })]
    return { outcome: 'back', code, reason, verdict: { kind: 'back', seconds }, measurements }
  }
}

const isPatient = (outcome: Outcome): outcome is Outcome & { kind: 'wait'; capSeconds: number } =>
  outcome.kind === 'wait' && outcome.capSeconds !== undefined
