import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import * as z from 'zod'
import { writeAtomically } from './write-atomically.ts'

const Ports = z.record(z.string(), z.int().min(1).max(65535))

export type Ports = {
  /** The port that bears this name since an earlier start, or 0: any. */
  of(name: string): number
  remember(name: string, port: number): void
}

/** Ports stay the same from start to start, so that addresses noted yesterday are right today. */
export function openPorts(folder: string): Ports {
  const path = join(folder, 'ports.json')
  const known = readPorts(path)
  return {
    of: (name) => known[name] ?? 0,
    remember(name, port) {
      if (known[name] === port) return
      known[name] = port
      writeAtomically(path, `${JSON.stringify(known, null, 2)}\n`)
    },
  }
}

/** Opens a server on its remembered port, or, when someone else has that by now, on another one. */
export async function onItsPort<T extends { port: number }>(
  ports: Ports,
  name: string,
  open: (port: number) => Promise<T>,
): Promise<T> {
  const server = await open(ports.of(name)).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EADDRINUSE' || ports.of(name) === 0) throw error
    return open(0)
  })
  ports.remember(name, server.port)
  return server
}

function readPorts(path: string): Record<string, number> {
  try {
    return Ports.parse(JSON.parse(readFileSync(path, 'utf8')))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return {}
    throw new Error(`${path} cannot be read; without it, addresses change once`, { cause: error })
  }
}
