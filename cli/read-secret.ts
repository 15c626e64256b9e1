import type { Readable, Writable } from 'node:stream'
import { Unmet, UsageError } from './usage.ts'

/** Where a secret is typed or piped in. */
export type SecretInput = Readable & { isTTY?: boolean; setRawMode?: (raw: boolean) => unknown }

/** Far more than a token has: somebody piped in the wrong file. */
const AT_MOST = 4096

/**
 * Reads a secret from standard input: all of a pipe, or a line that is typed and not shown.
 * @throws {UsageError} for a terminal that would show it
 */
export async function readSecret(input: SecretInput, prompt: string, screen: Writable): Promise<string> {
  if (!input.isTTY) return whole(input)
  if (!input.setRawMode)
    throw new UsageError('this terminal would show what is typed: pipe the secret in, `egress … < file`')
  screen.write(`${prompt} (is not shown): `)
  input.setRawMode(true)
  try {
    return await typed(input)
  } finally {
    input.setRawMode(false)
    input.pause()
    screen.write('\n')
  }
}

async function whole(input: Readable): Promise<string> {
  let text = ''
  for await (const chunk of input) {
    text += String(chunk)
    if (text.length > AT_MOST)
      throw new UsageError(`standard input holds more than ${AT_MOST} characters: no token`)
  }
  return text.trim()
}

/** In raw mode the terminal edits nothing: Backspace, Ctrl-U, Ctrl-C and Ctrl-D are ours to obey. */
function typed(input: Readable): Promise<string> {
  return new Promise((resolve, reject) => {
    let line = ''
    const end = (settle: () => void) => {
      input.off('data', take)
      input.off('error', reject)
      settle()
    }
    function take(chunk: Buffer | string): void {
      for (const key of String(chunk)) {
        if (key === '\u0003') end(() => reject(new Unmet('nothing was changed', 130)))
        else if (key === '\r' || key === '\n' || key === '\u0004') end(() => resolve(line.trim()))
        else if (key === '\u007f' || key === '\b') line = line.slice(0, -1)
        else if (key === '\u0015') line = ''
        else line += key
      }
    }
    input.on('data', take)
    input.on('error', reject)
    input.resume()
  })
}
