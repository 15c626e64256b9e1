import { UsageError } from './usage.ts'

/** What the parser knows of the flags of a command, by their names and aliases. */
type Known = { array: readonly string[]; string: readonly string[]; number: readonly string[] }

/**
 * Flags that the parser takes and a command cannot use: of one that comes twice it makes a list, of `--no-name` and of a number
 * that is none a value of another type.
 * @throws {UsageError}
 */
export function refuseMisgiven(given: Record<string, unknown>, { array, string, number }: Known): void {
  for (const [name, value] of Object.entries(given)) {
    if (name === '_' || name === '$0' || array.includes(name)) continue
    if (Array.isArray(value)) throw new UsageError(`--${name}: got it ${value.length} times, wanted it once`)
    if (string.includes(name) && value !== undefined && typeof value !== 'string')
      throw new UsageError(`--${name}: got --no-${name}, wanted a value`)
    if (number.includes(name) && value !== undefined && !(typeof value === 'number' && value >= 0))
      throw new UsageError(
        `--${name}: got ${Number.isFinite(value) ? value : 'no number'}, wanted a number, 0 or more`,
      )
  }
}
