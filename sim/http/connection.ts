import type { Duplex } from 'node:stream'
import { gzipSync } from 'node:zlib'
import type { Engine } from '../types.ts'
import { type Exchange, openExchange } from './exchange.ts'
import type { RequestHead } from './head.ts'
import { readHead } from './read-head.ts'
import { createReader, type Reader } from './reader.ts'
import { headersOf, type Reply, refused } from './reply.ts'

const requestsPerConnection = 100
const compressAboveBytes = 1024
const recordBytes = 16 * 1024
/** How long a closed connection still listens, so that a client in the middle of a body gets to read its answer. */
const lingerMs = 250

export type ConnectionOptions = { engine: Engine; node: string; idleMs: number; isTls: boolean }

/** Serves one connection from its first request until one side ends it. Rejects with the engine's SimConnectionError. */
export async function serveConnection(stream: Duplex, options: ConnectionOptions): Promise<void> {
  const reader = createReader(stream, options.idleMs)
  let protocol: RequestHead['protocol'] = 'HTTP/1.0'
  for (let left = requestsPerConnection - 1; ; left -= 1) {
    const read = await readHead(reader)
    if (read.kind === 'blank') continue
    if (read.kind === 'gone') break
    if (read.kind === 'silence') {
      await reader.drain()
      break
    }
    if (read.kind === 'refused') {
      await send(stream, read.reply, {
        protocol,
        keepAlive: false,
        gzip: false,
        nowMs: options.engine.clock.now(),
      })
      break
    }
    const { head } = read
    protocol = head.protocol
    const reply = options.isTls ? await answer(options, head, reader) : redirect(head)
    if (!reply) break
    const keepAlive = left > 0 && wantsKeepAlive(head)
    const gzip = /gzip/.test(head.headers['accept-encoding'] ?? '')
    await send(stream, reply, { protocol, keepAlive, gzip, nowMs: options.engine.clock.now() })
    if (!keepAlive || reply.close || !options.isTls) break
  }
  await hangUp(stream, reader)
}

/** The answer to a request, or nothing when pveproxy has none to give and the connection has run out of time. */
async function answer(
  options: ConnectionOptions,
  head: RequestHead,
  reader: Reader,
): Promise<Reply | undefined> {
  const exchange: Exchange = await openExchange(options.engine, options.node, head)
  switch (exchange.kind) {
    case 'reply':
      return exchange.reply
    case 'silence':
      await reader.drain()
      return undefined
    case 'body': {
      const body = await reader.take(exchange.bytes)
      return body && exchange.finish(body)
    }
    case 'upload':
      for (;;) {
        const chunk = await reader.some(recordBytes)
        const reply = chunk && (await exchange.feed(chunk))
        if (reply || !chunk) return reply
      }
  }
}

/** Plain HTTP on the TLS port is sent to the same place over HTTPS. Without a Host there is nothing to say. */
function redirect(head: RequestHead): Reply | undefined {
  const { host } = head.headers
  if (!host) return undefined
  const location = `https://${host}${head.target}`
  if (head.method === 'GET' || head.method === 'HEAD') return refused(301, 'Moved Permanently', { location })
  return refused(308, 'Permanent Redirect', { location })
}

function wantsKeepAlive(head: RequestHead): boolean {
  const connection = head.headers.connection
  if (connection) return !/close/i.test(connection)
  return head.protocol === 'HTTP/1.1'
}

type Wire = { protocol: string; keepAlive: boolean; gzip: boolean; nowMs: number }

async function send(stream: Duplex, reply: Reply, wire: Wire): Promise<void> {
  const plain = Buffer.from(reply.body)
  const gzip = wire.gzip && plain.length > compressAboveBytes
  const content = gzip ? gzipSync(plain) : plain
  const headers = headersOf(reply, { ...wire, gzip, contentBytes: content.length })
  const lines = [
    `${wire.protocol} ${reply.status} ${reply.reason}`,
    ...headers.map(([name, value]) => `${name}: ${value}`),
  ]
  const bytes = Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`), content])
  // A client that has left gets nothing, and that is no error of ours.
  await new Promise<void>((resolve) => stream.write(bytes, () => resolve()))
}

async function hangUp(stream: Duplex, reader: Reader): Promise<void> {
  stream.end()
  await Promise.race([reader.drain(), new Promise((resolve) => setTimeout(resolve, lingerMs).unref())])
  stream.destroy()
}
