import { readFileSync } from 'node:fs'
import type { Cluster } from './config.ts'
import type { Secrets, Source } from './secrets.ts'

type Endpoint = { url: string; node?: string; fingerprint?: string }

/** What a client of a cluster is made from; lib/proxmox's ProxmoxOptions take it as it is. */
export type Connection = {
  endpoints: readonly Endpoint[]
  ca?: string
  timeouts?: { readMs?: number; changeMs?: number; uploadMs?: number; agentMs?: number }
  token: { get(options?: { fresh?: boolean }): Promise<readonly string[]> }
}

/**
 * Reads the CA at once and the tokens when they are asked for. Each process begins at another endpoint, or the first one
 * listed would be asked everything that concerns no node in particular.
 */
export function connection(
  { endpoints, caFile, callSeconds, token }: Cluster,
  secrets: Secrets,
  random: () => number = Math.random,
): Connection {
  const sources: Source[] = [token].flat()
  const first = Math.floor(random() * endpoints.length)
  return {
    endpoints: [...endpoints.slice(first), ...endpoints.slice(0, first)].map(
      ({ url, node, fingerprint }) => ({
        url,
        ...(node === undefined ? {} : { node }),
        ...(fingerprint === undefined ? {} : { fingerprint }),
      }),
    ),
    ...(caFile === undefined ? {} : { ca: readFileSync(caFile, 'utf8') }),
    ...(callSeconds === undefined ? {} : { timeouts: inMs(callSeconds) }),
    token: {
      async get(options) {
        const values = await Promise.all(sources.map((source) => secrets.read(source, options)))
        return values.filter((value): value is string => value !== undefined && value !== '')
      },
    },
  }
}

function inMs({
  read,
  change,
  upload,
  agent,
}: NonNullable<Cluster['callSeconds']>): NonNullable<Connection['timeouts']> {
  const given = { readMs: read, changeMs: change, uploadMs: upload, agentMs: agent }
  const set = Object.entries(given).flatMap(([kind, seconds]) =>
    seconds === undefined ? [] : [[kind, seconds * 1000] as const],
  )
  return Object.fromEntries(set)
}
