import { type Document, isCollection, isMap, isScalar, Parser, parseDocument, visit } from 'yaml'

/**
 * Why cloud-init would leave a cloud-config out, all of it, with a line in a log nobody reads; `undefined`: it would not. Stricter
 * than YAML: PyYAML knows no tabs between tokens, has line ends of its own, and no tags but the standard ones. Nothing of the text
 * is repeated.
 *
 * Source: PyYAML 6.0, scanner.py, reader.py and constructor.py; test/host holds both against each other.
 */
export function cloudConfigFault(text: string): string | undefined {
  const odd = unacceptable.exec(text)
  if (odd) return yaml(`a character it does not take in line ${lineAt(text, odd.index)}`)
  const tab = firstTab([...new Parser().parse(text)])
  if (tab !== undefined) return yaml(`a tab outside quotes in line ${lineAt(text, tab)}`)
  // It takes a repeated key, so this does too.
  const document = parseDocument(text, { version: '1.1', uniqueKeys: false, logLevel: 'error' })
  const complaint = document.errors[0] ?? document.warnings[0] ?? aliasFault(document)
  if (complaint) {
    const line = complaint.linePos?.[0].line
    return yaml(`${complaint.code}${line === undefined ? '' : ` in line ${line}`}`)
  }
  // A document of comments alone has no contents: odd, but cloud-init goes on without it.
  if (document.contents !== null && !isMap(document.contents)) return 'a mapping after #cloud-config'
  return hasOddNode(document) ? yaml('a key that is no text, or a lone = or <<') : undefined
}

const yaml = (fault: string) => `valid YAML after #cloud-config (${fault})`

/** What its reader refuses, and what is a line end to it alone. */
const unacceptable = /[^\t\n\r\x20-\x7e\u00a0-\u2027\u202a-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/u

/** Where a tab may stand. */
const texts = new Set(['comment', 'single-quoted-scalar', 'double-quoted-scalar', 'block-scalar'])

/** The offset of the first tab between the tokens of a document, or within a plain one. */
function firstTab(tokens: readonly unknown[]): number | undefined {
  // By a stack of our own: tokens may be nested as deeply as a text is long.
  const waiting = tokens.toReversed()
  while (waiting.length > 0) {
    const token = waiting.pop()
    if (typeof token !== 'object' || token === null) continue
    if ('type' in token && 'source' in token && !texts.has(String(token.type))) {
      const at = String(token.source).indexOf('\t')
      if (at >= 0) return ('offset' in token ? Number(token.offset) : 0) + at
    }
    waiting.push(...Object.values(token).reverse())
  }
  return undefined
}

function aliasFault(document: Document): { code: string; linePos?: undefined } | undefined {
  let isUnknown = false
  visit(document, {
    Alias(_, alias) {
      if (!alias.resolve(document)) isUnknown = true
    },
  })
  return isUnknown ? { code: 'UNKNOWN_ALIAS' } : undefined
}

/** What YAML has and Python's dictionaries and PyYAML's safe loader have not. */
function hasOddNode(document: Document): boolean {
  let isOdd = false
  visit(document, {
    Pair(_, { key, value }) {
      if (isCollection(key)) isOdd = true
      if (isScalar(key) && key.source === '<<' && isScalar(value)) isOdd = true
    },
    Scalar(key, { source, type }) {
      if (type === 'PLAIN' && (source === '=' || (source === '<<' && key !== 'key'))) isOdd = true
    },
  })
  return isOdd
}

function lineAt(text: string, offset: number): number {
  return text.slice(0, offset).split('\n').length
}
