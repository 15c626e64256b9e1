import * as z from 'zod'
import { counted } from './counted.ts'
import { escapeControls } from './escape-controls.ts'

/** An error map for one field: says what was wanted, in words a person can act on. */
export const wanted = (what: string) => ({ error: `wanted ${what}` })

const rangeText = wanted('an address range such as 10.0.0.0/8 or 2001:db8::/32')
export const Range = z.union([z.cidrv4(rangeText), z.cidrv6(rangeText)], rangeText)

/** One thing wrong with a document: where, what came, what was wanted. `got` never shows a secret or a long text. */
export type Complaint = { path: string; got: string; wanted: string }

/** A document can be wrong in as many places as it is long: beyond these nobody reads on. */
const MAX_COMPLAINTS = 30

/** Every complaint of a failed parse, in the order of the document; of very many the first, and how many more there are. */
export function complaints(error: z.ZodError, document: unknown): Complaint[] {
  const all = error.issues.flatMap((issue) => fromIssue(issue, document))
  if (all.length <= MAX_COMPLAINTS) return all
  const more = { path: '(document)', got: counted(all.length - MAX_COMPLAINTS, 'more fault'), wanted: 'none' }
  return [...all.slice(0, MAX_COMPLAINTS), more]
}

/** Parses or returns all complaints; the one way in for events, configuration and request files. */
export function parseWith<T>(
  schema: z.ZodType<T>,
  document: unknown,
): { value: T } | { complaints: Complaint[] } {
  const parsed = schema.safeParse(document)
  return parsed.success ? { value: parsed.data } : { complaints: complaints(parsed.error, document) }
}

export const complaintLine = ({ path, got, wanted: text }: Complaint) => `${path}: got ${got}, wanted ${text}`

function fromIssue(issue: z.core.$ZodIssue, document: unknown): Complaint[] {
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => ({
      path: pathText([...issue.path, key]),
      got: 'a field of this name',
      wanted: 'no such field (is it misspelt?)',
    }))
  }
  if (issue.code === 'invalid_key') {
    return [
      { path: pathText(issue.path), got: 'a key of this name', wanted: 'keys of letters, digits . _ / -' },
    ]
  }
  return [
    { path: pathText(issue.path), got: show(at(document, issue.path), issue.path), wanted: issueText(issue) },
  ]
}

function issueText(issue: z.core.$ZodIssue): string {
  if (issue.message.startsWith('wanted ')) return issue.message.slice('wanted '.length)
  if (issue.code === 'invalid_type') return article(issue.expected)
  if (issue.code === 'invalid_value') return issue.values.map(String).join(' or ')
  if (issue.code === 'invalid_format' && issue.format === 'regex') return `text that matches ${issue.pattern}`
  return issue.message
}

const article = (type: string) => (/^[aeiou]/.test(type) ? `an ${type}` : `a ${type}`)
const pathText = (path: PropertyKey[]) => path.map(keyText).join('.') || '(document)'

/** A key that nobody expected may be anything: of any length, and with characters that a terminal obeys. */
function keyText(key: PropertyKey): string {
  const text = shortened(String(key), 80)
  return /^[\p{L}\p{N} ._/#:@+-]*$/u.test(text) ? text : escapeControls(JSON.stringify(text))
}

/** Names that a document gave itself, for what was wanted: some of them, since there may be thousands. */
export function namesText(names: readonly string[]): string {
  const told = names.slice(0, MAX_NAMES).map(keyText).join(', ')
  return names.length > MAX_NAMES ? `${told} or ${names.length - MAX_NAMES} more` : told
}
const MAX_NAMES = 10

const shortened = (text: string, length: number) =>
  text.length <= length ? text : `${text.slice(0, length - 3)}…`

/** What came, as JSON on one line and of bounded length, whatever it is: a text nested without end has no other form. */
export function shown(value: unknown): string {
  if (typeof value === 'object' && value !== null)
    return Array.isArray(value) ? `a list of ${value.length}` : 'an object'
  return escapeControls(shortened(JSON.stringify(value), 80))
}

function at(document: unknown, path: PropertyKey[]): unknown {
  return path.reduce<unknown>(
    (value, key) =>
      typeof value === 'object' && value !== null ? (value as Record<PropertyKey, unknown>)[key] : undefined,
    document,
  )
}

const SECRETIVE = /^(userData|auth|password.*|token|secret)$/i

function show(value: unknown, path: PropertyKey[]): string {
  if (value === undefined) return 'nothing'
  const isSecret = typeof value !== 'object' && path.some((key) => SECRETIVE.test(String(key)))
  return isSecret ? `a ${typeof value} (not shown)` : shown(value)
}
