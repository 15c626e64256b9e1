import { join } from 'node:path'
import type { Engine, SimAnswer, SimRequest } from '../types.ts'
import { loadCertificates } from './certificates.ts'
import { idleMs } from './exchange.ts'
import { handleRequest } from './handle.ts'
import { openPort } from './port.ts'

export type Front = {
  /** Answers one request without sockets. @throws {SimConnectionError} */
  handle(node: string, request: SimRequest): Promise<SimAnswer>
  /** Opens an HTTPS port for each node. `ca` is the certificate to trust, as PEM. */
  listen(options?: { host?: string; ports?: Record<string, number> }): Promise<Listening>
  /** Closes the ports and every connection. */
  close(): Promise<void>
}

type Listening = {
  endpoints: {
    node: string
    url: string /** SHA-256 of the certificate, as AA:BB:… */
    fingerprint: string
  }[]
  ca: string
}

/** pveproxy of every node: what happens to a request before and after the API. */
export function createFront(engine: Engine, options: { stateDir?: string; idleMs?: number } = {}): Front {
  const opened: (() => Promise<void>)[] = []
  return {
    handle: (node, request) => handleRequest(engine, node, request),

    async listen({ host = '127.0.0.1', ports = {} } = {}) {
      const dir = options.stateDir && join(options.stateDir, 'tls')
      const { ca, nodes } = await loadCertificates(engine.nodes(), { ...(dir && { dir }) })
      const endpoints: Listening['endpoints'] = []
      for (const [node, certificate] of Object.entries(nodes)) {
        const wanted = { host, port: ports[node] ?? 0, idleMs: options.idleMs ?? idleMs }
        const port = await openPort({ engine, node, certificate, ...wanted })
        opened.push(port.close)
        endpoints.push({ node, url: `https://${host}:${port.port}`, fingerprint: certificate.fingerprint })
      }
      return { endpoints, ca }
    },

    async close() {
      await Promise.all(opened.splice(0).map((close) => close()))
    },
  }
}
