import type { ParamValue } from '../types.ts'
import type { Params } from './form.ts'
import { diedAt } from './perl.ts'

/** A body that cannot be read; `message` is what pveproxy answers with status 500. */
export class UnreadableBody extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'UnreadableBody'
  }
}

/**
 * Decodes a JSON body into parameters. An empty body is no JSON. Source: captures 02 "JSON body malformed", 19 "POST with
 * content-type JSON and an empty body".
 * @throws {UnreadableBody}
 */
export function decodeJson(text: string, version: 8 | 9): Params {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (cause) {
    throw new UnreadableBody(malformed(text, offsetOf(cause, text), version))
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new UnreadableBody(`Not a HASH reference${diedAt('json', version)}`)
  }
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, toParam(item)]))
}

function malformed(text: string, offset: number, version: 8 | 9): string {
  const rest = text.slice(offset) || '(end of string)'
  const what = 'malformed JSON string, neither tag, array, object, number, string or atom'
  return `${what}, at character offset ${offset} (before "${rest}")${diedAt('json', version)}`
}

/** V8 names the position only when something follows it; otherwise the text ended too early. */
function offsetOf(cause: unknown, text: string): number {
  const position = cause instanceof Error ? /at position (\d+)/.exec(cause.message)?.[1] : undefined
  return position === undefined ? text.length : Number(position)
}

/** `null` is Perl's undef, which an option without a value is too; a nested object prints as its kind. */
function toParam(item: unknown): ParamValue {
  if (item === null) return ''
  if (Array.isArray(item)) return item.map((entry) => String(entry ?? ''))
  if (typeof item === 'string' || typeof item === 'number' || typeof item === 'boolean') return item
  return 'HASH'
}
