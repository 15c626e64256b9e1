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
  } catch {
    throw new UnreadableBody(malformed(text, version))
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new UnreadableBody(`Not a HASH reference${diedAt('json', version)}`)
  }
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, toParam(item)]))
}

function malformed(text: string, version: 8 | 9): string {
  const offset = goodLength(text)
  const rest = text.slice(offset) || '(end of string)'
  const what = 'malformed JSON string, neither tag, array, object, number, string or atom'
  return `${what}, at character offset ${offset} (before "${rest}")${diedAt('json', version)}`
}

/** How far the text could still have become JSON. V8 does not always name the place, so it is searched for. */
function goodLength(text: string): number {
  let [low, high] = [0, text.length]
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    if (isBeginning(text.slice(0, middle))) low = middle
    else high = middle - 1
  }
  return low
}

function isBeginning(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch (cause) {
    const words = cause instanceof Error ? cause.message : ''
    const position = /at position (\d+)/.exec(words)?.[1]
    return /^Un(?:expected end|terminated)/.test(words) || Number(position ?? -1) === text.length
  }
}

/** `null` is Perl's undef, which an option without a value is too; what is nested prints as its kind. */
function toParam(item: unknown): ParamValue {
  if (Array.isArray(item))
    return item.map((entry) => (Array.isArray(entry) ? 'ARRAY' : String(toScalar(entry))))
  return toScalar(item)
}

function toScalar(item: unknown): string | number | boolean {
  if (item === null) return ''
  if (typeof item === 'string' || typeof item === 'number' || typeof item === 'boolean') return item
  return 'HASH'
}
