import type { IncomingMessage } from 'node:http'
import { RequestError, Server } from 'proxy-chain'
import { judgeProxyRequest, type ProxyPolicy } from './policy.ts'

/** A proxy that serves real requests. */
export type ProxyServer = { close(): Promise<void> }

/** Opens a forward proxy with that policy on an address. @throws Node's EADDRINUSE and the like. */
export async function openProxy(policy: ProxyPolicy, address: string): Promise<ProxyServer> {
  const realm = policy.program === 'squid' ? 'Squid' : 'Tinyproxy'
  const server = new Server({
    host: address,
    port: policy.port,
    authRealm: realm,
    prepareRequestFunction({ request, username, password, port, isHttp }) {
      const verdict = judgeProxyRequest(policy, {
        client: request.socket.remoteAddress ?? '',
        ...(hasCredentials(request) && { credentials: { username, password } }),
        ...(!isHttp && { connectPort: port }),
      })
      if (verdict.status === 200) return {}
      const headers = verdict.status === 407 ? { 'Proxy-Authenticate': `Basic realm="${realm}"` } : undefined
      throw new RequestError(verdict.reason, verdict.status, headers)
    },
  })
  await server.listen()
  return { close: () => server.close(true) }
}

function hasCredentials(request: IncomingMessage): boolean {
  return request.headers['proxy-authorization'] !== undefined
}
