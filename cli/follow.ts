import { setTimeout as pause } from 'node:timers/promises'
import type { Row } from '../lib/record.ts'

export type Followed = {
  /** Called with each state of the row that differs from the one before. */
  onChange(row: Row): void
  read(): Promise<Row | undefined>
  /** What the row says of the wish: undefined while it is under way. */
  ended(row: Row | undefined): End | undefined
  timeoutMs: number
  /** Calls the wait off; it then rejects. */
  signal?: AbortSignal
  everyMs?: number
  now?: () => number
}

export type End = { kind: 'met'; row?: Row } | { kind: 'unmet'; reason: string; row?: Row }

/** Watches a row until its wish is met or given up, or time is up. */
export async function follow(options: Followed): Promise<End> {
  const { onChange, read, ended, timeoutMs, signal, everyMs = 300, now = Date.now } = options
  const untilMs = now() + timeoutMs
  let seen = ''
  for (;;) {
    const row = await read()
    const state = JSON.stringify(row)
    if (row && state !== seen) onChange(row)
    seen = state
    const end = ended(row)
    if (end) return end
    if (now() > untilMs) {
      const where = row ? `it is at ${row.step ?? row.phase}` : 'nothing has taken the message up'
      return {
        kind: 'unmet',
        reason: `not there after ${Math.round(timeoutMs / 1000)} s: ${where}`,
        ...(row && { row }),
      }
    }
    await pause(everyMs, undefined, signal && { signal })
  }
}

/** The end of a request: this generation with this spec is Ready, or never will be. */
export function requestEnded(wish: { generation: number; specHash: string }) {
  return (row: Row | undefined): End | undefined => {
    if (!row) return undefined
    if (row.wish === 'absent') {
      return { kind: 'unmet', reason: `${row.uid} was deleted, and a uid is not used again`, row }
    }
    if (row.generation > wish.generation) {
      return { kind: 'unmet', reason: `generation ${row.generation} of ${row.uid} has replaced it`, row }
    }
    if (row.generation < wish.generation) return undefined
    if (row.specHash !== wish.specHash) {
      const reason = `generation ${row.generation} of ${row.uid} was asked for with another spec: send a higher --generation to replace it`
      return { kind: 'unmet', reason, row }
    }
    if (row.phase === 'Ready') return { kind: 'met', row }
    if (row.phase === 'Failed') return { kind: 'unmet', reason: problemText(row), row }
    return undefined
  }
}

/** The end of a deletion: nothing of the proxy is left, or a person has to look. */
export function deletionEnded(row: Row | undefined): End | undefined {
  if (row?.phase === 'Deleted') return { kind: 'met', row }
  if (row?.phase === 'Failed' && row.wish === 'absent') {
    return { kind: 'unmet', reason: problemText(row), row }
  }
  return undefined
}

function problemText({ problem, failedStep }: Row): string {
  if (!problem) return 'failed'
  const at = failedStep === undefined ? '' : ` at ${failedStep}`
  return [`${problem.code}${at}: ${problem.reason}`, ...(problem.hint ? [`hint: ${problem.hint}`] : [])].join(
    '\n',
  )
}
