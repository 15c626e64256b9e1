import { renameSync, writeFileSync } from 'node:fs'

/** Writes a file whole or not at all: whoever reads it, and whatever kills us, sees the old or the new one. */
export function writeAtomically(path: string, text: string, mode = 0o600): void {
  const draft = `${path}.${process.pid}.tmp`
  writeFileSync(draft, text, { mode })
  renameSync(draft, path)
}
