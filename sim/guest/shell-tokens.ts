/** A script the simulator does not run, because it uses what its shell does not know. */
export class UnknownShell extends Error {
  constructor(what: string) {
    super(what)
    this.name = 'UnknownShell'
  }
}

/** A word before its variables are filled in. */
export type Word = { pieces: { text: string; isVariable: boolean }[] }
export type Token =
  | { kind: 'word'; word: Word }
  | { kind: 'operator'; text: string }
  | { kind: 'heredoc'; text: string }

/** Takes a script apart into words, operators and here-documents. @throws {UnknownShell} */
export function tokenize(script: string): Token[] {
  const tokens: Token[] = []
  const waiting: { end: string; token: { kind: 'heredoc'; text: string }; stripTabs: boolean }[] = []
  let at = 0

  while (at < script.length) {
    const rest = script.slice(at)
    const blank = /^(?:[ \t\r]+|\\\n)/.exec(rest)
    if (blank) at += blank[0].length
    else if (rest[0] === '#') at += /^[^\n]*/.exec(rest)?.[0].length ?? 1
    else if (rest[0] === '\n') {
      tokens.push({ kind: 'operator', text: '\n' })
      at += 1
      for (const { end, token, stripTabs } of waiting.splice(0))
        at = readHeredoc(script, at, { end, stripTabs }, token)
    } else {
      const heredoc = /^<<(-?)[ \t]*(['"]?)(\w+)\2/.exec(rest)
      // What is said on another descriptor is not looked at.
      const aside = /^(?:[12]?>&[12-]|(?:2|&)>>?[ \t]*[^\s;&|()<>]+)/.exec(rest)
      const operator = /^(?:&&|\|\||>>|[;&|()<>])/.exec(rest)
      if (heredoc) {
        const token = { kind: 'heredoc' as const, text: '' }
        tokens.push(token)
        waiting.push({ end: heredoc[3] ?? '', token, stripTabs: heredoc[1] === '-' })
        at += heredoc[0].length
      } else if (aside) at += aside[0].length
      else if (operator) {
        tokens.push({ kind: 'operator', text: operator[0] })
        at += operator[0].length
      } else at = readWord(script, at, tokens)
    }
  }
  return tokens
}

function readHeredoc(
  script: string,
  start: number,
  how: { end: string; stripTabs: boolean },
  token: { text: string },
): number {
  const lines: string[] = []
  let at = start
  while (at < script.length) {
    const newline = script.indexOf('\n', at)
    const stop = newline < 0 ? script.length : newline
    const raw = script.slice(at, stop)
    const line = how.stripTabs ? raw.replace(/^\t+/, '') : raw
    at = stop + 1
    if (line === how.end) break
    lines.push(line)
  }
  token.text = lines.map((line) => `${line}\n`).join('')
  return at
}

function readWord(script: string, start: number, tokens: Token[]): number {
  const pieces: Word['pieces'] = []
  let at = start
  const push = (text: string, isVariable = false) => void pieces.push({ text, isVariable })
  const variable = (): boolean => {
    const found = /^\$(?:\{(\w+)(?::-[^}]*)?\}|(\w+))/.exec(script.slice(at))
    if (found) {
      push(found[1] ?? found[2] ?? '', true)
      at += found[0].length
    } else if (script[at] === '`' || script.startsWith('$(', at))
      throw new UnknownShell('command substitution')
    return found !== null
  }
  while (at < script.length && !/[\s;&|()<>]/.test(script[at] ?? '')) {
    const letter = script[at]
    if (letter === "'") {
      const end = script.indexOf("'", at + 1)
      if (end < 0) throw new UnknownShell('an open quote')
      push(script.slice(at + 1, end))
      at = end + 1
    } else if (letter === '"') {
      at += 1
      push('')
      while (at < script.length && script[at] !== '"') {
        if (variable()) continue
        if (script[at] === '\\' && /["\\$`]/.test(script[at + 1] ?? '')) at += 1
        push(script[at] ?? '')
        at += 1
      }
      at += 1
    } else if (letter === '\\') {
      push(script[at + 1] ?? '')
      at += 2
    } else if (!variable()) {
      push(letter ?? '')
      at += 1
    }
  }
  const joined: Word['pieces'] = []
  for (const piece of pieces) {
    const last = joined.at(-1)
    if (last && !last.isVariable && !piece.isVariable) last.text += piece.text
    else joined.push({ ...piece })
  }
  tokens.push({ kind: 'word', word: { pieces: joined } })
  return at
}
