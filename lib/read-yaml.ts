import { type Document, isScalar, parseDocument, visit } from 'yaml'

/**
 * The plain values of a YAML (or JSON) text, or why it has none. Nothing of the text is repeated, which may hold a secret, and
 * nothing is said to anybody else: the parser's own warnings go to standard error with the line they are about. `asTyped`
 * leaves every value the text that was typed: a password `007` is no number.
 */
export function readYaml(text: string, { asTyped = false } = {}): { document: unknown } | { fault: string } {
  try {
    // Its own look for keys that come twice takes minutes for a map of some ten thousand.
    const document = parseDocument(text, {
      logLevel: 'error',
      uniqueKeys: false,
      ...(asTyped && { schema: 'failsafe' }),
    })
    // A tag that nobody knows is but a warning, after which the value is an empty text.
    const complaint = document.errors[0] ?? document.warnings[0]
    if (complaint) return { fault: wordsOf(complaint) }
    const odd = firstOddKey(document)
    if (odd) return { fault: `${odd.what} in line ${lineAt(text, odd.at)}` }
    return { document: document.toJS({ maxAliasCount: MAX_ALIASES }) }
  } catch (error) {
    return { fault: faultOf(error) }
  }
}

/** Of one anchor, through whatever other aliases: enough for any file that a person writes. */
const MAX_ALIASES = 100

/** The parser's own, up to where they quote; its position stands before that. */
function wordsOf({ message, linePos }: Document['errors'][number]): string {
  if (message.startsWith('Maximum call stack')) return ENDLESS
  const [words = ''] = message.split(/: |["'\n]| at line /)
  const at = linePos?.[0]
  return at === undefined ? words : `${words} in line ${at.line}, column ${at.col}`
}

const ENDLESS = 'lists or maps nested without end'

function faultOf(error: unknown): string {
  if (error instanceof RangeError) return ENDLESS
  if (!(error instanceof ReferenceError)) throw error
  return error.message.startsWith('Excessive alias count')
    ? 'aliases of aliases without end'
    : 'an alias without its anchor'
}

/** The first key that its map has already, or that some would take for the map's own nature and others leave out. */
function firstOddKey(document: Document): { what: string; at: number } | undefined {
  let found: { what: string; at: number } | undefined
  visit(document, {
    Map(_, { items }) {
      const seen = new Set<unknown>()
      for (const { key } of items) {
        if (!isScalar(key)) continue
        const at = key.range?.[0] ?? 0
        if (seen.has(key.value)) found = { what: 'a key that comes twice', at }
        if (key.value === '__proto__') found = { what: 'a key __proto__', at }
        if (found) return visit.BREAK
        seen.add(key.value)
      }
      return undefined
    },
  })
  return found
}

const lineAt = (text: string, offset: number) => text.slice(0, offset).split('\n').length
