import { runCommand } from './commands.ts'
import type { Machine, System } from './machine.ts'
import { type Command, parseShell, type Redirect } from './shell-parse.ts'
import { UnknownShell, type Word } from './shell-tokens.ts'

/** The inside of a guest, as commands see it. */
export type Inside = { machine: Machine; system: System; log: (line: string) => void }

/** What a command leaves behind: its exit status and what it printed. */
export type Result = { status: number; output: string }

class Exit extends Error {
  status: number
  constructor(status: number) {
    super(`exit ${status}`)
    this.status = status
  }
}

/**
 * Runs a shell script inside a guest and returns its exit status. Nothing of it ever reaches a real shell: commands the
 * simulator knows change the machine, others are noted and succeed, and a script in a language it cannot follow is only noted.
 */
export function runScript(script: string, name: string, inside: Inside): number {
  const interpreter = /^#!\s*(?:\/usr\/bin\/env\s+)?(\S+)/.exec(script)?.[1] ?? '/bin/sh'
  if (!/(?:^|\/)(?:ba|da)?sh$/.test(interpreter)) {
    inside.log(`${name}: written for ${interpreter}, not carried out by the simulator`)
    return 0
  }
  let commands: Command[]
  try {
    commands = parseShell(script)
  } catch (cause) {
    if (!(cause instanceof UnknownShell)) throw cause
    inside.log(`${name}: not carried out, the simulator's shell does not know ${cause.message}`)
    return 0
  }
  try {
    return createShell(name, inside).run(commands)
  } catch (cause) {
    if (cause instanceof Exit) return cause.status
    throw cause
  }
}

function createShell(name: string, inside: Inside) {
  const variables = new Map([['0', name]])
  let stopsAtFailure = false

  const expand = (word: Word) =>
    word.pieces.map(({ text, isVariable }) => (isVariable ? (variables.get(text) ?? '') : text)).join('')

  function run(commands: Command[], isTested = false): number {
    let status = 0
    for (const command of commands) {
      status = execute(command, '', isTested).status
      if (
        status !== 0 &&
        stopsAtFailure &&
        !isTested &&
        command.kind !== 'and' &&
        command.kind !== 'or' &&
        command.kind !== 'not'
      ) {
        throw new Exit(status)
      }
    }
    return status
  }

  function execute(command: Command, input: string, isTested: boolean): Result {
    switch (command.kind) {
      case 'simple':
        return simple(command.words, command.redirects, input)
      case 'not':
        return { status: execute(command.command, input, true).status === 0 ? 1 : 0, output: '' }
      case 'and':
      case 'or': {
        const left = execute(command.left, input, true)
        const goesOn = (left.status === 0) === (command.kind === 'and')
        return goesOn ? execute(command.right, input, isTested) : left
      }
      case 'pipe':
        return execute(command.right, execute(command.left, input, true).output, isTested)
      case 'group':
        return { status: run(command.body, isTested), output: '' }
      case 'for': {
        let status = 0
        for (const word of command.over) {
          variables.set(command.name, expand(word))
          status = run(command.body, isTested)
        }
        return { status, output: '' }
      }
      case 'if': {
        const branch = command.branches.find(({ when }) => !when || run(when, true) === 0)
        return { status: branch ? run(branch.body, isTested) : 0, output: '' }
      }
    }
  }

  function simple(words: Word[], redirects: Redirect[], piped: string): Result {
    const argv = words.map(expand)
    // Assignments before a command are for that command's surroundings, which nothing here looks at.
    const start = argv.findIndex((word) => !/^\w+=/.test(word))
    if (start < 0)
      for (const word of argv)
        variables.set(word.slice(0, word.indexOf('=')), word.slice(word.indexOf('=') + 1))
    const [name, ...rest] = start < 0 ? [] : argv.slice(start)
    if (name === 'exit') throw new Exit(Number(rest[0] ?? 0))
    if (name === 'set') stopsAtFailure ||= rest.some((option) => /^-\w*e/.test(option))

    const input = redirects.reduce((text, redirect) => {
      if (redirect.to === 'stdin') return redirect.text
      if (redirect.to === 'stdin-file') return inside.machine.files.get(expand(redirect.path))?.text ?? ''
      return text
    }, piped)
    const result = name === undefined ? { status: 0, output: '' } : runCommand([name, ...rest], input, inside)
    const target = redirects.find((redirect) => redirect.to === 'file' || redirect.to === 'append')
    if (!target || target.to === 'stdin') return result
    const path = expand(target.path)
    if (!path.startsWith('/dev/')) {
      const old = inside.machine.files.get(path)
      const before = target.to === 'append' ? (old?.text ?? '') : ''
      inside.machine.files.set(path, { text: before + result.output, mode: old?.mode ?? 0o644 })
    }
    return { status: result.status, output: '' }
  }

  return { run }
}
