/** What a handler of PVE dies with: a plain text is a 500, an exception carries its own status and the texts per parameter. */
export class PveError extends Error {
  status: number
  errors: Record<string, string> | undefined
  constructor(status: number, message: string, errors?: Record<string, string>) {
    super(message)
    this.name = 'PveError'
    this.status = status
    this.errors = errors
  }
}

/** A plain Perl `die`. */
export function die(message: string): never {
  throw new PveError(500, message)
}

/** `raise_param_exc` of PVE: status 400 with a text per parameter. */
export function refuseParams(errors: Record<string, string>): never {
  throw new PveError(400, 'Parameter verification failed.', errors)
}

/** `raise_perm_exc` of PVE. */
export function forbid(what?: string): never {
  throw new PveError(403, what ? `Permission check failed (${what})` : 'Permission check failed')
}

/** How an error reads in the log and exit status of a task: exceptions with their code, all on one line. */
export function taskText(error: unknown): string {
  if (!(error instanceof PveError)) throw error
  const details = Object.entries(error.errors ?? {}).map(([key, text]) => `${key}: ${text}`)
  const prefix = error.status === 500 ? '' : `${error.status} `
  return `${prefix}${[error.message, ...details].join(' ')}`.replace(/\n/g, ' ').trimEnd()
}
