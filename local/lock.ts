import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { writeAtomically } from './write-atomically.ts'

/** Another `egress up` works on this data. */
export class FolderInUse extends Error {
  override readonly name = 'FolderInUse'
  readonly pid: number | undefined
  constructor(folder: string, pid: number | undefined) {
    const who = pid === undefined ? 'another process' : `process ${pid}`
    super(`${folder} is in use by ${who}: stop that one first, or choose another folder with --data`)
    this.pid = pid
  }
}

/**
 * Holds the data folder for this process alone. The lock is SQLite's on a file, so the kernel's: a process that was killed
 * has let go of it, and no number of a process long gone can keep anyone out.
 * @throws {FolderInUse} naming the holder
 */
export function lockFolder(folder: string): { close(): void } {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const pidFile = join(folder, 'up.pid')
  const database = new DatabaseSync(join(folder, 'lock.db'))
  try {
    database.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE')
  } catch (error) {
    database.close()
    if (error instanceof Error && /locked|busy/.test(error.message)) {
      throw new FolderInUse(folder, readPid(pidFile))
    }
    throw error
  }
  writeAtomically(pidFile, `${process.pid}\n`)
  return { close: () => database.close() }
}

function readPid(path: string): number | undefined {
  try {
    return Number(readFileSync(path, 'utf8')) || undefined
  } catch {
    // The holder has only just begun and not written it yet.
    return undefined
  }
}
