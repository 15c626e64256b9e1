import { connect as connectPlain } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { gunzipSync } from 'node:zlib'
import type { SimRequest } from '../../../sim/types.ts'

export type RawTarget = { url: string; ca: string }

/** What came back on a connection, as latin1 text, and how the connection ended. */
export type RawResult = {
  text: string
  closed: boolean
  error?: string
  ms: number
  alpn?: string | false | null
}

/**
 * Writes bytes on a connection of its own and reads until `isDone` of the text is true, or the other side ends it.
 * Nothing here knows HTTP, so malformed requests are just bytes.
 */
export async function writeRaw(
  target: RawTarget,
  bytes: Uint8Array | string,
  isDone: (text: string) => boolean = isWhole,
  options: { plain?: boolean; alpn?: string[] } = {},
): Promise<RawResult> {
  const { hostname, port } = new URL(target.url)
  const started = performance.now()
  return new Promise((resolve) => {
    const socket = options.plain
      ? connectPlain({ host: hostname, port: Number(port) }, () => socket.write(bytes))
      : connectTls(
          { host: hostname, port: Number(port), ca: target.ca, ALPNProtocols: options.alpn ?? [] },
          () => {
            if (bytes.length > 0) socket.write(bytes)
          },
        )
    let text = ''
    let error: string | undefined
    const finish = (closed: boolean) => {
      const ms = performance.now() - started
      const alpn = 'alpnProtocol' in socket ? socket.alpnProtocol : null
      socket.destroy()
      resolve({ text, closed, ms, alpn, ...(error && { error }) })
    }
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1')
      if (isDone(text)) finish(false)
    })
    socket.on('error', (cause: NodeJS.ErrnoException) => {
      error = cause.code ?? cause.message
    })
    socket.on('end', () => finish(true)).on('close', () => finish(true))
  })
}

/** Whether the text holds one complete answer. Without a length there is no body here, as pveproxy sends it. */
export function isWhole(text: string): boolean {
  const end = text.indexOf('\r\n\r\n')
  if (end < 0) return false
  const length = /^Content-Length: (\d+)/im.exec(text.slice(0, end))?.[1]
  return text.length >= end + 4 + Number(length ?? 0)
}

/** A request as it stands on the wire. */
export function toWire(request: SimRequest, extra: string[] = []): Buffer {
  const headers = Object.entries({ host: 'pve1:8006', ...request.headers })
  const length =
    request.body && !('content-length' in request.headers) ? [`Content-Length: ${request.body.length}`] : []
  const lines = [
    `${request.method} ${request.path} HTTP/1.1`,
    ...headers.map(([name, value]) => `${name}: ${value}`),
    ...length,
    ...extra,
  ]
  return Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`), request.body ?? Buffer.alloc(0)])
}

/** The text as UTF-8, its body unpacked when it is compressed. */
export function readable(text: string): string {
  const end = text.indexOf('\r\n\r\n') + 4
  const body = Buffer.from(text.slice(end), 'latin1')
  const plain = /^Content-Encoding: gzip/im.test(text.slice(0, end)) ? gunzipSync(body) : body
  return Buffer.from(text.slice(0, end), 'latin1').toString('utf8') + plain.toString('utf8')
}
