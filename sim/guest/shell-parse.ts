/** A script the simulator does not run, because it uses what its shell does not know. */
export class UnknownShell extends Error {
  constructor(what: string) {
    super(what)
    this.name = 'UnknownShell'
  }
}

/** A word before its variables are filled in. */
export type Word = { pieces: { text: string; isVariable: boolean }[] }
export type Redirect =
  | { to: 'file' | 'append'; path: Word }
  | { to: 'stdin'; text: string }
  | { to: 'stdin-file'; path: Word }
export type Command =
  | { kind: 'simple'; words: Word[]; redirects: Redirect[] }
  | { kind: 'if'; branches: { when?: Command[]; body: Command[] }[] }
  | { kind: 'for'; name: string; over: Word[]; body: Command[] }
  | { kind: 'group'; body: Command[] }
  | { kind: 'not'; command: Command }
  | { kind: 'and' | 'or'; left: Command; right: Command }
  | { kind: 'pipe'; left: Command; right: Command }

type Token =
  | { kind: 'word'; word: Word }
  | { kind: 'operator'; text: string }
  | { kind: 'heredoc'; text: string }

const keywords = ['if', 'then', 'elif', 'else', 'fi', 'for', 'in', 'do', 'done', '{', '}', '!']
const unknownKeywords = ['while', 'until', 'case', 'function', '[[', 'select']

/** Parses what seeds are made of: commands, lists, if, for, here-documents. @throws {UnknownShell} */
export function parseShell(script: string): Command[] {
  const tokens = tokenize(script)
  let at = 0

  const peek = (): Token | undefined => tokens[at]
  const isOperator = (...texts: string[]) => {
    const token = peek()
    return token?.kind === 'operator' && texts.includes(token.text)
  }
  /** A keyword is an unquoted word where a command may stand. */
  const keyword = (): string | undefined => {
    const token = peek()
    const text = token?.kind === 'word' ? plainText(token.word) : undefined
    return text !== undefined && [...keywords, ...unknownKeywords].includes(text) ? text : undefined
  }
  const skipLines = () => {
    while (isOperator('\n', ';')) at += 1
  }
  const expect = (word: string) => {
    skipLines()
    if (keyword() !== word) throw new UnknownShell(`'${word}' was expected`)
    at += 1
  }

  function list(...ends: string[]): Command[] {
    const commands: Command[] = []
    for (;;) {
      skipLines()
      const next = keyword()
      if (!peek() || isOperator(')') || (next !== undefined && ends.includes(next))) return commands
      commands.push(andOr())
      if (isOperator('&')) at += 1
    }
  }

  function andOr(): Command {
    let left = pipeline()
    while (isOperator('&&', '||')) {
      const token = peek()
      at += 1
      while (isOperator('\n')) at += 1
      left = {
        kind: token?.kind === 'operator' && token.text === '&&' ? 'and' : 'or',
        left,
        right: pipeline(),
      }
    }
    return left
  }

  function pipeline(): Command {
    if (keyword() === '!') {
      at += 1
      return { kind: 'not', command: pipeline() }
    }
    const left = command()
    if (!isOperator('|')) return left
    at += 1
    return { kind: 'pipe', left, right: pipeline() }
  }

  function command(): Command {
    const word = keyword()
    if (word !== undefined && unknownKeywords.includes(word)) throw new UnknownShell(word)
    if (word === 'if') return conditional()
    if (word === 'for') return loop()
    if (word === '{' || isOperator('(')) {
      at += 1
      const body = list('}')
      if (keyword() !== '}' && !isOperator(')')) throw new UnknownShell('an open group')
      at += 1
      return { kind: 'group', body }
    }
    return simple()
  }

  function conditional(): Command {
    const branches: { when?: Command[]; body: Command[] }[] = []
    expect('if')
    for (;;) {
      const when = list('then')
      expect('then')
      branches.push({ when, body: list('elif', 'else', 'fi') })
      const next = keyword()
      at += 1
      if (next === 'elif') continue
      if (next === 'else') {
        branches.push({ body: list('fi') })
        expect('fi')
      } else if (next !== 'fi') throw new UnknownShell('an open if')
      return { kind: 'if', branches }
    }
  }

  function loop(): Command {
    expect('for')
    const token = peek()
    const name = token?.kind === 'word' ? plainText(token.word) : undefined
    at += 1
    if (name === undefined) throw new UnknownShell('for without a name')
    expect('in')
    const over: Word[] = []
    for (let next = peek(); next?.kind === 'word'; next = peek()) {
      over.push(next.word)
      at += 1
    }
    expect('do')
    const body = list('done')
    expect('done')
    return { kind: 'for', name, over, body }
  }

  function simple(): Command {
    const words: Word[] = []
    const redirects: Redirect[] = []
    for (;;) {
      const token = peek()
      if (token?.kind === 'word') words.push(token.word)
      else if (token?.kind === 'heredoc') redirects.push({ to: 'stdin', text: token.text })
      else if (isOperator('>', '>>', '<')) {
        at += 1
        const path = peek()
        if (path?.kind !== 'word' || token?.kind !== 'operator')
          throw new UnknownShell('a redirection to nothing')
        const to = token.text === '>' ? 'file' : token.text === '>>' ? 'append' : 'stdin-file'
        redirects.push({ to, path: path.word })
      } else break
      at += 1
    }
    if (words.length === 0 && redirects.length === 0) throw new UnknownShell(`'${describe(peek())}'`)
    return { kind: 'simple', words, redirects }
  }

  const commands = list()
  if (peek()) throw new UnknownShell(`'${describe(peek())}'`)
  return commands
}

function plainText(word: Word): string | undefined {
  const [piece, ...others] = word.pieces
  return piece && others.length === 0 && !piece.isVariable ? piece.text : undefined
}

function describe(token: Token | undefined): string {
  if (!token) return 'end of script'
  return token.kind === 'word' ? (plainText(token.word) ?? 'a word') : token.text
}

function tokenize(script: string): Token[] {
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
      const aside = /^(?:[12]?>&[12-]|2>>?[ \t]*\S+|&>>?[ \t]*\S+)/.exec(rest)
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
