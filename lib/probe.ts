import { request } from 'node:http'
import { connect } from 'node:net'

/** Where a proxy is said to be, and what it should let us do. */
export type ProbeTarget = {
  host: string
  port: number
  url: string
  credentials?: { username: string; password: string }
  signal: AbortSignal
  /** For the whole look, however slowly the other side goes on talking. */
  timeoutMs?: number
}

/** `answers`: it works; `refuses`: it is a proxy and turns us away; `silent`: not (yet). `detail` is for people and holds no secret. */
export type ProbeResult = { kind: 'answers' | 'refuses' | 'silent'; detail: string }

export type Probe = {
  http(target: ProbeTarget): Promise<ProbeResult>
  tcp(target: ProbeTarget): Promise<ProbeResult>
}

const TIMEOUT_MS = 8000
/** 401 as well: tinyproxy 1.11 says so to wrong credentials. */
const REFUSALS = new Set([401, 403, 407])

/** Looks through a proxy as its users will. Never throws: a proxy that cannot be reached is an answer too. */
export const probe: Probe = {
  http: ({ host, port, url, credentials, signal, timeoutMs = TIMEOUT_MS }) =>
    new Promise((resolve) => {
      const headers: Record<string, string> = { host: new URL(url).host, connection: 'close' }
      if (credentials) {
        const pair = Buffer.from(`${credentials.username}:${credentials.password}`).toString('base64')
        headers['proxy-authorization'] = `Basic ${pair}`
      }
      const sent = request(
        { host, port, path: url, method: 'GET', headers, agent: false, signal },
        (answer) => {
          clearTimeout(timer)
          answer.destroy()
          const status = answer.statusCode ?? 0
          const kind = REFUSALS.has(status) ? 'refuses' : status < 500 ? 'answers' : 'silent'
          resolve({ kind, detail: `status ${status} for ${url}` })
        },
      )
      // Not a time-out of the socket, which each byte would begin anew: a header a letter at a time, "100 Continue" for ever.
      const late = () => sent.destroy(new Error(`no answer within ${timeoutMs / 1000} s`))
      const timer = setTimeout(late, timeoutMs)
      sent.on('error', (error) => {
        clearTimeout(timer)
        resolve({ kind: 'silent', detail: error.message })
      })
      sent.end()
    }),

  tcp: ({ host, port, signal, timeoutMs = TIMEOUT_MS }) =>
    new Promise((resolve) => {
      const socket = connect({ host, port, signal, timeout: timeoutMs })
      const end = (kind: ProbeResult['kind'], detail: string) => {
        socket.destroy()
        resolve({ kind, detail })
      }
      socket.on('connect', () => end('answers', 'accepts connections'))
      socket.on('timeout', () => end('silent', `no connection within ${timeoutMs / 1000} s`))
      socket.on('error', (error) => end('silent', error.message))
    }),
}
