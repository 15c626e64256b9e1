import type { Endpoint, Exchange, RawAnswer, RawRequest } from './options.ts'
import { trustedConnector } from './tls.ts'
import { Agent, requestBy } from './undici.ts'

/** A failure of the connection itself; `sent` is false only when surely no byte of the request left. */
export type ExchangeFailure = { code: string; sent: boolean }

/**
 * Carries requests over HTTPS. Reading shares kept connections; each change has one of its own, for a kept one may be
 * closed just as it is used again (or long have been, where the process was frozen), and then nobody knows what happened.
 */
export function createExchange(ca?: string): { exchange: Exchange; close: () => Promise<void> } {
  const agents = new Map<string, Agent>()
  const agentOf = (endpoint: Endpoint, keep: boolean) => {
    const key = `${keep} ${endpoint.url}`
    const agent = agents.get(key) ?? createAgent(endpoint, ca, keep)
    agents.set(key, agent)
    return agent
  }
  return {
    exchange: (endpoint, request) => carry(agentOf(endpoint, request.method === 'GET'), endpoint, request),
    close: async () => {
      await Promise.all([...agents.values()].map((agent) => agent.close()))
    },
  }
}

// pveproxy closes a connection after 5 s of silence and after 100 requests (AnyEvent.pm), and gives no promise
// about pipelining: we let go first, and send one request at a time.
function createAgent({ fingerprint }: Endpoint, ca: string | undefined, keep: boolean): Agent {
  return new Agent({
    connect: trustedConnector({
      ...(fingerprint === undefined ? {} : { fingerprint }),
      ...(ca === undefined ? {} : { ca }),
    }),
    pipelining: keep ? 1 : 0,
    keepAliveTimeout: 3_500,
    keepAliveMaxTimeout: 3_500,
    maxRequestsPerClient: 90,
    connections: 64,
    allowH2: false,
    // Our own timer bounds the whole call, headers and body together.
    headersTimeout: 0,
    bodyTimeout: 0,
  })
}

async function carry(agent: Agent, endpoint: Endpoint, request: RawRequest): Promise<RawAnswer> {
  const stop = new AbortController()
  let stopped: 'ABORTED' | 'TIMEOUT' | undefined
  const halt = (why: 'ABORTED' | 'TIMEOUT') => {
    stopped ??= why
    stop.abort()
  }
  const onAbort = () => halt('ABORTED')
  const timer = setTimeout(() => halt('TIMEOUT'), request.timeoutMs)
  request.signal.addEventListener('abort', onAbort, { once: true })
  try {
    if (request.signal.aborted) throw failure('ABORTED', false, 'aborted before it was sent')
    const { origin, pathname, search } = new URL(request.path, endpoint.url)
    const answer = await requestBy(agent, {
      origin,
      path: `${pathname}${search}`,
      method: request.method,
      headers: request.headers,
      body: request.body ?? null,
      signal: stop.signal,
    })
    const body = await readBody(answer.body, request.maxBodyBytes)
    return {
      status: answer.statusCode,
      reason: answer.statusText,
      headers: plainHeaders(answer.headers),
      body,
    }
  } catch (error) {
    throw stopped ? failure(stopped, true, stopped === 'TIMEOUT' ? 'timed out' : 'aborted') : translate(error)
  } finally {
    clearTimeout(timer)
    request.signal.removeEventListener('abort', onAbort)
  }
}

async function readBody(body: AsyncIterable<Uint8Array>, maxBytes: number): Promise<string> {
  const chunks: Uint8Array[] = []
  let total = 0
  for await (const chunk of body) {
    total += chunk.byteLength
    // Leaving the loop destroys the stream, and with it the connection.
    if (total > maxBytes) throw failure('TOO_LARGE', true, `the answer is larger than ${maxBytes} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

function plainHeaders(
  headers: Readonly<Record<string, string | string[] | undefined>>,
): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)]])),
  )
}

// Only code and words go on: the original holds the socket, and might one day hold the request.
function translate(error: unknown): Error & ExchangeFailure {
  if (isFailure(error)) return error
  if (!(error instanceof Error)) return failure('UNKNOWN', true, 'the connection failed')
  const code = 'code' in error && typeof error.code === 'string' ? error.code : error.name
  const unsent = ('unsent' in error && error.unsent === true) || code === 'UND_ERR_INVALID_ARG'
  return failure(code, !unsent, error.message)
}

function failure(code: string, sent: boolean, message: string): Error & ExchangeFailure {
  return Object.assign(new Error(message), { code, sent })
}

/** True for an error that tells, in `code` and `sent`, how a connection failed. */
export function isFailure(error: unknown): error is Error & ExchangeFailure {
  return (
    error instanceof Error &&
    'code' in error &&
    typeof error.code === 'string' &&
    'sent' in error &&
    typeof error.sent === 'boolean'
  )
}
