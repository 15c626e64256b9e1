import type { Failing, FailureCode } from './failure.ts'
import type { Outcome } from './outcome.ts'
import { type Moment, type Row, type RowOf, rowFor } from './record.ts'

/** What bounds one invocation's calls; lib/proxmox takes it as it is. */
export type Invocation = {
  /** Fires shortly before the invocation's end. */
  signal: AbortSignal
  /** Epoch milliseconds after which no call that changes something starts. */
  mutateUntilMs: number
}

export type TaskState =
  | { running: true }
  | { running: false; ok: true }
  | { running: false; ok: false; error: Failing }

/** What the worker itself asks of Proxmox: how a task of ours stands. */
export type TaskPort = { task(upid: string): Promise<TaskState> }

type StepRules = {
  /** How long the step may say "wait", outages left out. */
  deadlineSeconds: number
  /** What a missed deadline is called; `StepTimedOut` when nothing better is known. */
  late?: { code: FailureCode; hint?: string }
}

export type Step<R, D> = StepRules & { run: (row: R & Moment, deps: D) => Promise<Outcome> }

/** A life cycle as a table: a missing or misspelt step is a compile error. */
export type Steps<S extends keyof RowOf, D> = { [K in S]: Step<RowOf[K], D> }

/** A life cycle as the worker sees it. */
export type LifeCycle = {
  /** Undefined for a step of the other function. */
  rules(step: string): StepRules | undefined
  run(row: Row & Moment, invocation: Invocation): Promise<Outcome>
  task(row: Row, upid: string, invocation: Invocation): Promise<TaskState>
}

/** Joins a table of steps with what its steps touch, made anew for each delivery. `deadlineSeconds` stand over the table's. */
export function lifeCycle<S extends keyof RowOf, D extends { vms: TaskPort }>(
  steps: Steps<S, D>,
  prepare: (row: Row, invocation: Invocation) => D,
  deadlineSeconds: Partial<Record<string, number>> = {},
): LifeCycle {
  const isStep = (step: string): step is S => Object.hasOwn(steps, step)
  return {
    rules(step) {
      if (!isStep(step)) return undefined
      const { deadlineSeconds: own, late } = steps[step]
      return { deadlineSeconds: deadlineSeconds[step] ?? own, ...(late && { late }) }
    },
    async run(row, invocation) {
      const { step } = row
      if (step === undefined || !isStep(step)) throw new Error(`${step} is no step of this function`)
      // The table pairs each step with its own row, and rowFor has checked it; TypeScript cannot follow through S.
      const checked = rowFor(step, row) as RowOf[S] & Moment
      return steps[step].run(checked, prepare(row, invocation))
    },
    task: (row, upid, invocation) => prepare(row, invocation).vms.task(upid),
  }
}
