export type SeedErrorCode =
  | 'InvalidInstanceId'
  | 'InvalidHostname'
  | 'InvalidMac'
  | 'InvalidPort'
  | 'InvalidMemory'
  | 'EmptyAllow'
  | 'InvalidAllow'
  | 'InvalidUsername'
  | 'InvalidPassword'
  | 'InvalidUserData'
  | 'UserDataTooLarge'

/**
 * What cannot be put into a seed: which field, what came and what was wanted.
 * `got` is absent for a password and for user data, of which nothing may reach a log.
 */
export class SeedError extends Error {
  readonly code: SeedErrorCode
  readonly field: string
  readonly wanted: string
  readonly got: string | undefined

  constructor(code: SeedErrorCode, field: string, wanted: string, got?: unknown) {
    const shown = got === undefined ? undefined : show(got)
    super(`${field}: wanted ${wanted}${shown === undefined ? '' : `, got ${shown}`}`)
    this.name = 'SeedError'
    this.code = code
    this.field = field
    this.wanted = wanted
    this.got = shown
  }
}

const shownCharacters = 64

/** JSON escapes control characters, so that a hostile value cannot forge a log line. */
function show(got: unknown): string {
  const text = String(got)
  return JSON.stringify(text.length > shownCharacters ? text.slice(0, shownCharacters) + '…' : text)
}
