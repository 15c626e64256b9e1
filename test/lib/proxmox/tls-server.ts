import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import { generate } from 'selfsigned'

export type Handler = (request: IncomingMessage & { text: string }, response: ServerResponse) => void

/** A certificate for 127.0.0.1, signed by itself or by a given authority. */
export async function certify(name: string, authority?: { key: string; cert: string }) {
  const { private: key, cert } = await generate([{ name: 'commonName', value: name }], {
    keyType: 'ec',
    algorithm: 'sha256',
    ...(authority ? { ca: authority } : {}),
    extensions: [
      { name: 'basicConstraints', cA: authority === undefined, critical: true },
      { name: 'subjectAltName', altNames: [{ type: 7, ip: '127.0.0.1' }] },
    ],
  })
  return { key, cert, fingerprint: new X509Certificate(cert).fingerprint256 }
}

/** An HTTPS server on loopback which remembers the requests that reached it and the sockets that were opened. */
export async function serve(certificate: { key: string; cert: string }, handler: Handler) {
  const requests: {
    method: string
    url: string
    headers: IncomingMessage['headers']
    text: string
    version: string
  }[] = []
  const sockets: Socket[] = []
  // pveproxy keeps an idle connection for 5 s.
  const server = createServer({ ...certificate, keepAliveTimeout: 5_000, ALPNProtocols: ['h2', 'http/1.1'] })
  server.on('request', async (request: IncomingMessage, response: ServerResponse) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const text = Buffer.concat(chunks).toString('latin1')
    const { method = '', url = '', headers, httpVersion: version } = request
    requests.push({ method, url, headers, text, version })
    handler(Object.assign(request, { text }), response)
  })
  server.on('secureConnection', (socket) => {
    sockets.push(socket)
    socket.on('error', () => {}) // The client's cutting a connection is what some tests are about.
  })
  server.on('tlsClientError', () => {}) // So is its turning away from a certificate.
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  // A TCP address, as it listens on a port.
  const { port } = server.address() as AddressInfo
  return {
    url: `https://127.0.0.1:${port}`,
    requests,
    sockets,
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

/** A port of loopback on which nobody listens. */
export async function deadUrl(certificate: { key: string; cert: string }): Promise<string> {
  const server = await serve(certificate, () => {})
  await server.close()
  return server.url
}
