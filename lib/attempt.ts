import { taskPollSeconds } from './backoff.ts'
import { asFailing, type Failing, Failure, type FailureCode } from './failure.ts'
import type { Invocation, LifeCycle, TaskState } from './life-cycle.ts'
import { type Outcome, wait } from './outcome.ts'
import { type Moment, patched, type Row } from './record.ts'

/** What a step says of its row, or what kept it from saying anything; and the row with what was learnt on the way. */
export type Attempted = { row: Row; result: Outcome | Failing }

/** After these ends of a task the machine is asked, not the task: the world moved on, or nobody knows. */
export const LOOK_AGAIN: ReadonlySet<FailureCode> = new Set([
  'AlreadyExists',
  'AlreadyRunning',
  'DigestMismatch',
  'Interrupted',
  'NoSuchTask',
  'NotRunning',
  'Running',
  'TaskLost',
  'VmMissing',
  'VolumeExists',
  'VolumeMissing',
])

/** Runs the row's step once. A task that the step started is waited for first, and how any task ended is written down. */
export function createAttempt(options: { cycle: LifeCycle; settleMs: number; now: () => number }) {
  const { cycle, settleMs, now } = options

  return async (taken: Row, invocation: Invocation): Promise<Attempted> => {
    let row = taken
    try {
      const { task } = row
      const state = task && (await poll(row, task.upid, invocation))
      // A task that an event overtook is the step's business while it runs: it may tell it to stop.
      const isOwn = task?.step === row.step
      if (task && isOwn && state?.running)
        return { row, result: wait('its task is running', taskPollSeconds(now() - task.at)) }
      if (task && state && !state.running) {
        const code = state.ok ? undefined : state.error.code
        const unseen = !state.ok && state.error.ambiguous === true && code === 'NoSuchTask'
        row = patched(row, {
          task: undefined,
          ended: { ...task, ok: state.ok, at: now(), ...(code && { code }), ...(unseen && { unseen }) },
          ...(!state.ok && state.error.ambiguous && { unsettledUntil: now() + settleMs }),
        })
        if (isOwn && !state.ok && !LOOK_AGAIN.has(state.error.code)) return { row, result: state.error }
      }
      return { row, result: await cycle.run({ ...row, ...momentOf(row, now()) }, invocation) }
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
      if (failing.code === 'NoSuchTask') return { running: false, ok: false, error: failing }
      if (failing.code !== 'Forbidden') throw error
      // Only the token that began a task may see it, and tokens are replaced: it may be running still.
      const unseen = new Failure('NoSuchTask', failing.message, { class: 'transient', cause: failing })
      return { running: false, ok: false, error: Object.assign(unseen, { ambiguous: true }) }
    }
  }
}

/** What the clock says of a row; a step is told, and reads none itself. */
export const momentOf = ({ unsettledUntil, since, ended }: Row, nowMs: number): Moment => ({
  settled: unsettledUntil === undefined || unsettledUntil < nowMs,
  waitedSeconds: (nowMs - since) / 1000,
  endedSecondsAgo: ended ? (nowMs - ended.at) / 1000 : Number.POSITIVE_INFINITY,
})
