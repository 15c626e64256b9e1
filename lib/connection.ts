import { readFileSync } from 'node:fs'
import type { Cluster } from './config.ts'
import type { Secrets, Source } from './secrets.ts'

type Endpoint = { url: string; node?: string; fingerprint?: string }

/** What a client of a cluster is made from; lib/proxmox's ProxmoxOptions take it as it is. */
export type Connection = {
  endpoints: readonly Endpoint[]
  ca?: string
  token: { get(options?: { fresh?: boolean }): Promise<readonly string[]> }
}

/** Reads the CA at once and the tokens when they are asked for. */
export function connection({ endpoints, caFile, token }: Cluster, secrets: Secrets): Connection {
  const sources: Source[] = [token].flat()
  return {
    endpoints: endpoints.map(({ url, node, fingerprint }) => ({
      url,
      ...(node === undefined ? {} : { node }),
      ...(fingerprint === undefined ? {} : { fingerprint }),
    })),
    ...(caFile === undefined ? {} : { ca: readFileSync(caFile, 'utf8') }),
    token: {
      async get(options) {
        const values = await Promise.all(sources.map((source) => secrets.read(source, options)))
        return values.filter((value): value is string => value !== undefined && value !== '')
      },
    },
  }
}
