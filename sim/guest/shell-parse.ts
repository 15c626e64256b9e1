import { type Token, tokenize, UnknownShell, type Word } from './shell-tokens.ts'

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
