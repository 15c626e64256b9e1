import type { Resume } from './events.ts'
import type { Letter } from './letter.ts'
import { Row, type Side, sideOf, UnreadableRow } from './record.ts'

/** The part of a row that says what its letters are worth. */
export const Standing = Row.pick({
  uid: true,
  phase: true,
  turn: true,
  step: true,
  failedStep: true,
  dueAt: true,
})
export type Standing = Pick<Row, 'uid' | 'phase' | 'turn' | 'step' | 'failedStep' | 'dueAt'>

/** What can be done about a letter, as its row stands. */
export type Remedy =
  /** A message about the row as it stands now; the letter has done its duty once it is sent. */
  | { kind: 'resume'; side: Side; message: Resume; why: string }
  /** What was published goes to its queue again, as it is. */
  | { kind: 'again'; side: Side }
  /** The row went on without it: it can be dropped. */
  | { kind: 'overtaken'; why: string }
  /** The row is on its way still: nothing is to be done now, and the letter stays. */
  | { kind: 'pending'; why: string }

/** A redrive acts on a failed row, never on what a letter says of it; a message that was lost on the way becomes a kick. */
export function remedyFor(
  letter: Pick<Letter, 'kind' | 'side' | 'turn'>,
  row: Standing | UnreadableRow | undefined,
  { now, stallMs }: { now: number; stallMs: number },
): Remedy {
  if (letter.kind === 'event') return { kind: 'again', side: letter.side }
  if (!row) return { kind: 'overtaken', why: 'there is no row of it any more' }
  if (row instanceof UnreadableRow) return { kind: 'pending', why: row.message }
  if ((letter.turn ?? 0) > row.turn) return { kind: 'pending', why: `its row is at turn ${row.turn} only` }
  const redrive = redriveOf(row)
  if (redrive) return redrive
  const { phase, step, turn, dueAt } = row
  if (step === undefined) return { kind: 'overtaken', why: `its row is ${phase}` }
  if ((letter.turn ?? 0) < turn)
    return { kind: 'overtaken', why: `its row has moved on: ${phase}, at ${step}` }
  if (letter.kind === 'report') return { kind: 'pending', why: 'its row is being reported as failed' }
  if (dueAt + stallMs > now) {
    const until = new Date(dueAt + stallMs).toISOString()
    return { kind: 'pending', why: `its row is at ${step} and counts as stalled from ${until} on` }
  }
  return { kind: 'resume', ...resumeOf(row, step), why: `kicked at ${step}` }
}

/** A failed row run again from the step that failed, whether or not a letter of it is there. */
export function redriveOf(row: Standing): Extract<Remedy, { kind: 'resume' }> | undefined {
  const { phase, failedStep } = row
  if (phase !== 'Failed' || failedStep === undefined) return undefined
  return { kind: 'resume', ...resumeOf(row, failedStep), why: `run again from ${failedStep}` }
}

const resumeOf = ({ uid, turn, failedStep }: Standing, step: NonNullable<Row['step']>) => ({
  side: sideOf(step, failedStep),
  message: { type: 'Resume', uid, turn } as const,
})
