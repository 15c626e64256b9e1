import { closeSync, openSync, readSync } from 'node:fs'

/** A file that cannot be read as text; the message names it and says why. */
export class UnreadableFile extends Error {
  override readonly name = 'UnreadableFile'
}

/** Far more than any file that a person writes here, and little enough to read. */
export const MAX_BYTES = 256 * 1024

/**
 * The text of a file, or of standard input for 0. Bounded: a device or a pipe may have no end.
 * @throws {UnreadableFile}
 */
export function readText(path: string | 0, name = String(path)): string {
  try {
    const file = path === 0 ? 0 : openSync(path, 'r')
    try {
      return whole(file, name)
    } finally {
      if (file !== 0) closeSync(file)
    }
  } catch (cause) {
    if (cause instanceof UnreadableFile) throw cause
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new UnreadableFile(`${name} cannot be read: ${why}`, { cause })
  }
}

function whole(file: number, name: string): string {
  const chunks: Buffer[] = []
  let total = 0
  for (;;) {
    const chunk = Buffer.alloc(65_536)
    const length = readSync(file, chunk)
    if (length === 0) return Buffer.concat(chunks).toString('utf8')
    total += length
    if (total > MAX_BYTES)
      throw new UnreadableFile(`${name} cannot be read: it holds more than ${MAX_BYTES} bytes`)
    chunks.push(chunk.subarray(0, length))
  }
}
