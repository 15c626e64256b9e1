import { once } from 'node:events'
import { createServer } from 'node:http'

/** A page on loopback for the lab's proxies to fetch: what a probe asks for, and what the demonstration shows. */
export async function servePage(options: {
  port: number
}): Promise<{ port: number; close(): Promise<void> }> {
  const server = createServer((request, response) => {
    response.setHeader('content-type', 'text/plain; charset=utf-8')
    response.end(`hello from egress: this page was fetched from ${request.socket.remoteAddress}\n`)
  })
  server.listen(options.port, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port was given')
  return {
    port: address.port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}
