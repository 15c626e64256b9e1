/** What a command touches besides its arguments. */
export type Context = {
  env: NodeJS.ProcessEnv
  /** Results: what a script reads. */
  out: (line: string) => void
  /** Everything for a person: progress, hints, errors. */
  err: (line: string) => void
  isTTY: boolean
}
