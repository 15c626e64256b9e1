import { Agent, request as undiciRequest } from 'undici'
import type { Endpoint, Exchange, RawAnswer, RawRequest } from './options.ts'
import { trustedConnector } from './tls.ts'

/** A failure of the connection itself; `sent` is false only when surely no byte of the request left. */
export type ExchangeFailure = { code: string; sent: boolean }

/** Carries requests over HTTPS, with one pool of connections per endpoint. */
export function createExchange(ca?: string): { exchange: Exchange; close: () => Promise<void> } {
  const agents = new Map<string, Agent>()
  const agentOf = (endpoint: Endpoint) => {
    const known = agents.get(endpoint.url)
    if (known) return known
    const agent = createAgent(endpoint, ca)
    agents.set(endpoint.url, agent)
    return agent
  }
  return {
    exchange: (endpoint, request) => carry(agentOf(endpoint), endpoint, request),
    close: async () => {
      await Promise.all([...agents.values()].map((agent) => agent.close()))
    },
  }
}

// pveproxy closes a connection after 5 s of silence and after 100 requests (AnyEvent.pm), and gives no promise
// about pipelining: we let go first, and send one request at a time.
function createAgent({ fingerprint }: Endpoint, ca: string | undefined): Agent {
  return new Agent({
    connect: trustedConnector({
      ...(fingerprint === undefined ? {} : { fingerprint }),
      ...(ca === undefined ? {} : { ca }),
    }),
    keepAliveTimeout: 3_500,
    keepAliveMaxTimeout: 3_500,
    pipelining: 1,
    allowH2: false,
    connections: 64,
    maxRequestsPerClient: 90,
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
    const answer = await undiciRequest(new URL(request.path, endpoint.url), {
      dispatcher: agent,
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

async function readBody(
  body: AsyncIterable<Uint8Array> & { destroy(): unknown },
  maxBytes: number,
): Promise<string> {
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
  const unsent = 'unsent' in error && error.unsent === true
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
