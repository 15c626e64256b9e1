import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

export type Blobs = {
  put(name: string, bytes: Uint8Array): void
  get(name: string): Uint8Array
  remove(name: string): void
}

/** Bytes of uploaded images: files when the cluster has a place on disk, else kept in memory. */
export function createBlobs(stateDir: string | undefined): Blobs {
  return stateDir === undefined ? inMemory() : onDisk(join(stateDir, 'blobs'))
}

function inMemory(): Blobs {
  const kept = new Map<string, Uint8Array>()
  return {
    put: (name, bytes) => void kept.set(name, bytes),
    get(name) {
      const bytes = kept.get(name)
      if (!bytes) throw new Error(`no such blob: ${name}`)
      return bytes
    },
    remove: (name) => void kept.delete(name),
  }
}

function onDisk(dir: string): Blobs {
  mkdirSync(dir, { recursive: true })
  return {
    put: (name, bytes) => writeAtomically(join(dir, name), bytes),
    get: (name) => readFileSync(join(dir, name)),
    remove: (name) => rmSync(join(dir, name), { force: true }),
  }
}

/** A reader sees the old file or the new one, also when this process is killed meanwhile. */
export function writeAtomically(path: string, content: string | Uint8Array): void {
  writeFileSync(`${path}.tmp`, content)
  renameSync(`${path}.tmp`, path)
}
