import { taskPollSeconds } from './backoff.ts'
import { asFailing, type Failing, type FailureCode } from './failure.ts'
import type { Invocation, LifeCycle, TaskState } from './life-cycle.ts'
import { type Outcome, wait } from './outcome.ts'
import { type Moment, patched, type Row } from './record.ts'

/** What a step says of its row, or what kept it from saying anything; and the row with what was learnt on the way. */
export type Attempted = { row: Row; result: Outcome | Failing }

/** After these ends of a task the machine is asked, not the task: the world moved on, or nobody knows. */
const LOOK_AGAIN: ReadonlySet<FailureCode> = new Set([
  'AlreadyExists',
  'AlreadyRunning',
  'DigestMismatch',
  'Interrupted',
  'NoSuchTask',
  'NotRunning',
  'Running',
  'TaskLost',
  'VmMissing',
  'VolumeMissing',
])

/** Runs the row's step once. A task that the step started is waited for first: it is not the step's business. */
export function createAttempt(options: { cycle: LifeCycle; settleMs: number; now: () => number }) {
  const { cycle, settleMs, now } = options

  return async (taken: Row, invocation: Invocation): Promise<Attempted> => {
    let row = taken
    try {
      const { task } = row
      if (task && task.step === row.step) {
        const state = await poll(row, task.upid, invocation)
        if (state.running)
          return { row, result: wait('its task is running', taskPollSeconds(now() - task.at)) }
        const code = state.ok ? undefined : state.error.code
        row = patched(row, {
          task: undefined,
          ended: { ...task, ok: state.ok, at: now(), ...(code && { code }) },
        })
        if (!state.ok && !LOOK_AGAIN.has(state.error.code)) return { row, result: state.error }
      }
      return { row, result: await cycle.run({ ...row, ...moment(row) }, invocation) }
    } catch (error) {
      const failing = asFailing(error)
      if (failing.ambiguous) row = patched(row, { unsettledUntil: now() + settleMs })
      return { row, result: failing }
    }
  }

  async function poll(row: Row, upid: string, invocation: Invocation): Promise<TaskState> {
    try {
      return await cycle.task(row, upid, invocation)
    } catch (error) {
      const failing = asFailing(error)
      if (failing.code !== 'NoSuchTask') throw error
      return { running: false, ok: false, error: failing }
    }
  }

  function moment({ unsettledUntil, since, ended }: Row): Moment {
    return {
      settled: unsettledUntil === undefined || unsettledUntil < now(),
      waitedSeconds: (now() - since) / 1000,
      endedSecondsAgo: ended ? (now() - ended.at) / 1000 : Number.POSITIVE_INFINITY,
    }
  }
}
