import { tokenize, UnknownShell } from './guest/shell-tokens.ts'
import type { Sim } from './types.ts'

export type Typed = { exitCode: number; stdout: string; stderr: string }

const LOOK_MS = 50

/**
 * A line as root types it at a host: `a && b` goes on only when `a` went well, and what begins a task ends with it, as qm does.
 * Of other operators, variables and substitutions the simulator knows nothing, and says so.
 */
export async function typeLine(sim: Sim, node: string, argv: string[]): Promise<Typed> {
  const all: Typed = { exitCode: 0, stdout: '', stderr: '' }
  for (const words of commandsIn(argv)) {
    const { exitCode, stdout, stderr } =
      typeof words === 'string' ? unknown(words) : await toItsEnd(sim, node, words)
    all.stdout += stdout
    all.stderr += stderr
    all.exitCode = exitCode
    if (exitCode !== 0) break
  }
  return all
}

const unknown = (what: string): Typed => ({
  exitCode: 2,
  stdout: '',
  stderr: `the simulator's shell does not know ${what}; it runs commands, and several with && between\n`,
})

/** A line in one word is taken apart as a shell does it; words come as a shell has left them. A text is what is not known in it. */
function commandsIn(argv: string[]): (string[] | string)[] {
  const [line = ''] = argv
  const isLine = argv.length === 1 && /\s/.test(line)
  const commands: string[][] = [[]]
  try {
    const words = isLine ? wordsOf(line) : argv
    for (const word of words) {
      if (word === '&&') commands.push([])
      else commands.at(-1)?.push(word)
    }
  } catch (error) {
    if (error instanceof UnknownShell) return [error.message]
    throw error
  }
  const gap = commands.some((words) => words.length === 0)
  return gap ? ['an && without a command on each side'] : commands
}

/** @throws {UnknownShell} */
function wordsOf(line: string): string[] {
  return tokenize(line).map((token) => {
    if (token.kind === 'heredoc') throw new UnknownShell('here-documents')
    if (token.kind === 'operator') {
      if (token.text === '&&') return token.text
      throw new UnknownShell(`the operator ${JSON.stringify(token.text)}`)
    }
    const { pieces } = token.word
    if (pieces.some(({ isVariable }) => isVariable)) throw new UnknownShell('variables')
    return pieces.map(({ text }) => text).join('')
  })
}

/** What was begun is waited for, and how it ended is how the command ended. A host that goes down takes the shell with it. */
async function toItsEnd(sim: Sim, node: string, words: string[]): Promise<Typed> {
  const { upid, ...typed } = sim.root(node, words)
  if (upid === undefined) return typed
  for (;;) {
    const task = sim.tasks().find((one) => one.upid === upid)
    if (!task || task.status === 'stopped') {
      const end = task?.exitstatus ?? 'OK'
      return end === 'OK' || end.startsWith('WARNINGS')
        ? typed
        : { ...typed, exitCode: 255, stderr: `${end}\n` }
    }
    if (sim.nodes().find(({ name }) => name === node)?.state === 'down')
      return { ...typed, exitCode: 255, stderr: `client_loop: send disconnect: Broken pipe\n` }
    await sim.clock.sleep(LOOK_MS)
  }
}
