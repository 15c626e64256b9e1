import type { FailureCode } from './failure.ts'
import type { WaitReason } from './metrics.ts'
import type { Patch, StepName } from './record.ts'

/** What a step decided. What it cannot decide it throws. */
export type Outcome =
  | { kind: 'next'; step: StepName; delaySeconds: number; patch: Patch } // go on
  | { kind: 'task'; upid: string; reason: string; patch: Patch } // this step again once the task ended
  | {
      kind: 'wait' // this step again
      reason: string
      delaySeconds: number
      patch: Patch
      capSeconds?: number
      late?: FailureCode
      why?: WaitReason
    }
  | { kind: 'done'; patch: Patch }
  | { kind: 'fail'; code: FailureCode; reason: string; hint?: string } // give up, tell a person

export const next = (step: StepName, patch: Patch = {}, delaySeconds = 0): Outcome => ({
  kind: 'next',
  step,
  delaySeconds,
  patch,
})

export const task = (upid: string, reason: string, patch: Patch = {}): Outcome => ({
  kind: 'task',
  upid,
  reason,
  patch,
})

/**
 * `capSeconds` stands in for the step's deadline: how long this kind of waiting may take, and `late` is what it is called then.
 * `why` is what metrics say, where the row does not tell.
 */
export const wait = (
  reason: string,
  delaySeconds: number,
  { patch = {}, ...kind }: { patch?: Patch } & KindOfWait = {},
): Outcome => ({ kind: 'wait', reason, delaySeconds, patch, ...kind })

type KindOfWait = { capSeconds?: number; late?: FailureCode; why?: WaitReason }

export const done = (patch: Patch = {}): Outcome => ({ kind: 'done', patch })

export const fail = (code: FailureCode, reason: string, hint?: string): Outcome => ({
  kind: 'fail',
  code,
  reason,
  ...(hint === undefined ? {} : { hint }),
})
