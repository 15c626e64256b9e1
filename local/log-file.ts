import { closeSync, fstatSync, mkdirSync, openSync, renameSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'

export type LogFile = {
  /** One JSON line: as a function wrote it, or of our own. */
  line(text: string): void
  note(fields: Record<string, unknown>): void
  close(): void
}

const MAX_BYTES = 20 * 1024 * 1024

/** Appends lines to a file; when it is full it becomes `<path>.1` and a new one begins, so that at most two are kept. */
export function openLogFile(path: string, maxBytes = MAX_BYTES): LogFile {
  mkdirSync(dirname(path), { recursive: true })
  let file = openSync(path, 'a', 0o600)
  let bytes = fstatSync(file).size

  function line(text: string): void {
    if (bytes > maxBytes) {
      closeSync(file)
      renameSync(path, `${path}.1`)
      file = openSync(path, 'a', 0o600)
      bytes = 0
    }
    bytes += writeSync(file, `${text}\n`)
  }

  return {
    line,
    note: (fields) => line(JSON.stringify({ time: Date.now(), ...fields })),
    close: () => closeSync(file),
  }
}
