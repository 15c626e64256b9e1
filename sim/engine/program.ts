import type { Cluster } from './cluster.ts'
import type { LockMode } from './state.ts'

/** What a stage of a task decides. Each stage is one change of the world; between two, time passes. */
export type Go =
  | { go: 'next'; stage: string; afterMs: number }
  | { go: 'lock'; name: string; mode: LockMode; timeoutMs: number; stage: string; failure: string }
  | { go: 'end' }

export const next = (stage: string, afterMs = 0): Go => ({ go: 'next', stage, afterMs })
export const end: Go = { go: 'end' }
export const lock = (
  name: string,
  mode: LockMode,
  timeoutMs: number,
  stage: string,
  failure: string,
): Go => ({
  go: 'lock',
  name,
  mode,
  timeoutMs,
  stage,
  failure,
})

/** A running task as its stages see it. */
export type Run<Data> = {
  cluster: Cluster
  node: string
  user: string
  data: Data
  log(line: string): void
  /** A line that counts: the task ends as `WARNINGS: n`. */
  warn(line: string): void
  unlock(name: string): void
}

export type Program<Data> = {
  stages: Record<string, (run: Run<Data>) => Go>
  /** Cleans up after a stage died and gives the exit text. */
  failed?(run: Run<Data>, text: string): string
  /** The text a stage dies with when the worker gets SIGTERM in it. */
  interrupted?(run: Run<Data>, stage: string): string | undefined
  /** The same when only the tool that copies is hit. */
  toolKilled?(run: Run<Data>, stage: string, signal: number): string | undefined
}

// A program only ever meets the data its own fork has put there; the task keeps it as plain JSON.
export type AnyProgram = Program<never>
