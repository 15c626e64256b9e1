import * as z from 'zod'
import type { Side, StepName } from '../../lib/record.ts'
import { complaintLine, parseWith } from '../../lib/wanted.ts'

/** How gc is asked for a run. */
export const GcRequest = z.strictObject({
  /** Looks and plans, and neither notes nor does anything. */
  dryRun: z.boolean().default(false),
})
export type GcRequest = z.infer<typeof GcRequest>

/** What a schedule sends, by EventBridge rule or Scheduler: its content says nothing. */
const Scheduled = z.object({ 'detail-type': z.literal('Scheduled Event') })

/** @throws {Error} naming what is wrong with the request */
export function parse(event: unknown): GcRequest {
  if (Scheduled.safeParse(event).success) return { dryRun: false }
  const parsed = parseWith(GcRequest, event)
  if ('value' in parsed) return parsed.value
  throw new Error(`not a request for gc: ${parsed.complaints.map(complaintLine).join('; ')}`)
}

/** Something to be done. Whatever it is, it is proven once more right before. */
export type Action =
  /** A VM that belongs to no row, given to the delete life cycle. */
  | { kind: 'delete orphan'; cluster: string; vmid: number; node: string; uid: string }
  /** Its time is up. */
  | { kind: 'expire'; uid: string; expiresAt: number }
  /** Its message was lost. */
  | { kind: 'kick'; uid: string; turn: number; side: Side; step: StepName; dueAt: number }
  | {
      kind: 'sweep seed'
      cluster: string
      node: string
      storage: string
      /** All nodes see it. */
      shared: boolean
      volume: string
      uid: string
    }
  | {
      kind: 'sweep disk'
      cluster: string
      node: string
      storage: string
      volume: string
      vmid: number
      uid: string
    }
  /** Nobody known to us owned it: shown to a person where nothing holds its number. */
  | { kind: 'show disk'; cluster: string; node: string; volume: string; vmid: number }
  /** A reservation whose owner is gone, or is not where such a one is needed. */
  | { kind: 'free claim'; cluster: string; partition: string; sort: string; owner: string; vmid?: number }

/** What an operator should know, and what to type. Nothing is done about it. */
export type Warning = {
  code: 'TwoVms' | 'StuckLock' | 'NoTags' | 'NoMark' | 'StrayDisk' | 'Held' | 'HiddenVm'
  cluster: string
  vmid?: number
  uid?: string
  text: string
  hint: string
}

/** What could not be looked at, and why. Nothing there is judged in this run. */
export type Skipped = { cluster: string; node?: string; storage?: string; reason: string; hint?: string }

/** What became of an action. `overtaken`: it was not needed any more when it was proven once more. */
export type State = 'done' | 'overtaken' | 'failed' | 'left'

/** Partition of the last report in the table of claims. */
export const GC_REPORT = 'gc-report'

/** An action, since when it was known to be due, and what became of it; `planned` when only planning was asked for. */
export type Reported = Action & { since: string; state: State | 'planned'; why?: string }

/** What one run saw, did and left. */
export type Report = {
  startedAt: string
  ms: number
  dryRun: boolean
  looked: Record<
    'clusters' | 'silentNodes' | 'vms' | 'configs' | 'seeds' | 'disks' | 'rows' | 'claims' | 'suspects',
    number
  >
  /** By kind and what became of them. */
  counts: Record<string, number>
  actions: Reported[]
  /** First looks. */
  noted: string[]
  waiting: { key: string; since: string; why: string }[]
  cleared: string[]
  warnings: Warning[]
  /** What is due beyond what one run may start, by kind. */
  heldBack: Partial<Record<Action['kind'], number>>
  skipped: Skipped[]
  /** How much of the lists was left off, where they were too long. */
  leftOff?: Record<string, number>
}
