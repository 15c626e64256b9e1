import { STATUS_CODES } from 'node:http'
import type { EngineResult, SimAnswer } from '../types.ts'

/** An answer before it is put on the wire: still without the headers that depend on the connection. */
export type Reply = {
  status: number
  reason: string
  body: string
  contentType?: string
  location?: string
  /** The connection ends after it, whatever the client wants. */
  close: boolean
  /** pvedaemon answered: the "Connection: close" of its own answer stays in ours. Source: captures 19. */
  viaDaemon?: boolean
}

/** The answer to what the engine found, as the JSON formatter of pveproxy writes it. */
export function formatted(result: EngineResult): Reply {
  if (result.emptyBody) return bare(result.status, result.reason ?? result.message)
  const body = {
    data: result.data ?? null,
    ...(result.total !== undefined && { total: result.total }),
    ...(result.message !== undefined && { message: result.message }),
    ...(result.errors && { errors: result.errors }),
  }
  return finish({
    status: result.status,
    reason: result.reason ?? result.message ?? '',
    body: JSON.stringify(body),
    contentType: 'application/json;charset=UTF-8',
    close: result.close ?? false,
  })
}

/** A refusal made before the formatter: the text is both reason and body, without a content type. */
export function refused(status: number, message: string, extra: { location?: string } = {}): Reply {
  return finish({ status, reason: message, body: message, close: false, ...extra })
}

/** A status line and nothing else, as for 401, 595 and unknown methods. */
export function bare(status: number, reason?: string): Reply {
  return finish({ status, reason: reason ?? '', body: '', close: false })
}

/** A reason is one line. A carriage return in it makes the whole answer a bare 400. Source: captures 08, "extra unknown field before". */
function finish(reply: Reply): Reply {
  const close = reply.close || reply.status >= 400
  const reason = reply.reason.split('\n', 1)[0] || (STATUS_CODES[reply.status] ?? 'Unknown')
  if (!reason.includes('\r')) return { ...reply, reason, close }
  return { status: 400, reason: 'Bad Request', body: '', close: true }
}

/** Headers in the order in which pveproxy sends them; only Connection can occur twice. */
export function headersOf(
  reply: Reply,
  wire: { nowMs: number; keepAlive: boolean; contentBytes: number; gzip?: boolean },
): [string, string][] {
  const date = new Date(wire.nowMs).toUTCString()
  const keepAlive = wire.keepAlive && !reply.close
  const headers: [string, string | undefined][] = [
    ['Cache-Control', 'max-age=0'],
    ['Connection', keepAlive && reply.viaDaemon ? 'close' : undefined],
    ['Connection', keepAlive ? 'Keep-Alive' : 'close'],
    ['Date', date],
    ['Pragma', 'no-cache'],
    ['Location', reply.location],
    ['Server', 'pve-api-daemon/3.0'],
    ['Content-Encoding', wire.gzip ? 'gzip' : undefined],
    ['Content-Length', wire.contentBytes > 0 ? String(wire.contentBytes) : undefined],
    ['Content-Type', reply.contentType],
    ['Expires', date],
  ]
  return headers.filter((header): header is [string, string] => header[1] !== undefined)
}

/** The answer as the door without sockets hands it out. */
export function toAnswer(reply: Reply, nowMs: number): SimAnswer {
  const contentBytes = Buffer.byteLength(reply.body)
  const headers = Object.fromEntries(headersOf(reply, { nowMs, keepAlive: true, contentBytes }))
  return { status: reply.status, reason: reply.reason, headers, body: reply.body }
}
