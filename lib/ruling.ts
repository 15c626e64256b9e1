import type { Resume } from './events.ts'
import type { FailureCode } from './failure.ts'
import { patched, type Row } from './record.ts'

/** How a message other than Continue changes a row; decided without side effects, carried out by the worker. */
export type Ruling =
  | { kind: 'drop'; reason: string }
  | { kind: 'bury'; code: FailureCode; reason: string; hint?: string }
  /** The row as it is to go on at its `step`, but for its turn and times. */
  | { kind: 'next'; row: Row; reason: string; userData?: string }

/** A Resume that names the row's very turn: runs a failed row again, kicks a stalled one, takes a Ready one up at a step. */
export function judgeResume(
  resume: Resume,
  row: Row,
  { now, stallMs }: { now: number; stallMs: number },
): Ruling {
  if (row.phase === 'Deleted') return { kind: 'drop', reason: 'deleted' }
  if (resume.to !== undefined) {
    if (row.phase !== 'Ready') return { kind: 'drop', reason: `${row.phase}, so not taken up again` }
    return { kind: 'next', row: restarted(row, resume.to), reason: `taken up again at ${resume.to}` }
  }
  if (row.phase === 'Failed' && row.failedStep) {
    // A person has seen to what made it vanish, so it may be looked for as often as at first.
    return { kind: 'next', row: restarted({ ...row, lookedAgain: 0 }, row.failedStep), reason: 'redriven' }
  }
  if (row.step === undefined || row.dueAt + stallMs > now)
    return { kind: 'drop', reason: 'neither failed nor stalled' }
  // What a report has to tell is not cleared away.
  const kicked = row.step === 'report' ? patched(row, { task: undefined }) : restarted(row, row.step)
  return { kind: 'next', row: kicked, reason: 'stalled, so kicked' }
}

/**
 * The row at a step, as if nothing had gone wrong. A task of its own is not asked after again, since its node may be
 * lost; but that its end was never seen stays written down, for it may have left something half made.
 */
export function restarted(row: Row, step: NonNullable<Row['step']>): Row {
  const phase = row.wish === 'absent' ? 'Deleting' : 'Provisioning'
  const unseen = row.task && { ended: { ...row.task, ok: false, code: 'TaskLost' as const } }
  return patched(row, { ...unseen, step, phase, failedStep: undefined, problem: undefined, task: undefined })
}
