import { type Engine, type SimAnswer, SimConnectionError, type SimRequest } from '../types.ts'
import { idleMs, openExchange } from './exchange.ts'
import { fitsLimits, type RequestHead } from './head.ts'
import { type Reply, toAnswer } from './reply.ts'

/** TLS hands over no more than this at once, and the reader of uploads sees the body in such pieces. */
const recordBytes = 16 * 1024

/** Answers one request without sockets: same rules, same texts, a connection of its own for each. Nothing is compressed. */
export async function handleRequest(engine: Engine, node: string, request: SimRequest): Promise<SimAnswer> {
  // Nobody is there to read a request: how that looks is for the engine to say.
  if (engine.reachability(node) !== 'up')
    await engine.call({ node, method: request.method, path: request.path, params: {} })
  const body = request.body ?? new Uint8Array()
  const head = toHead(request, body)
  const lines = Object.entries(head.headers).map(([name, value]) => `${name}: ${value}`)
  const exchange = fitsLimits(lines) ? await openExchange(engine, node, head) : ({ kind: 'silence' } as const)
  switch (exchange.kind) {
    case 'reply':
      return toAnswer(exchange.reply, engine.clock.now())
    case 'body': {
      // Less than announced: pveproxy waits for the rest.
      if (body.length < exchange.bytes) break
      return toAnswer(await exchange.finish(body.subarray(0, exchange.bytes)), engine.clock.now())
    }
    case 'upload': {
      const reply = await feedInRecords(exchange.feed, body)
      if (reply) return toAnswer(reply, engine.clock.now())
    }
  }
  // Nothing more comes from either side: the connection times out.
  await engine.clock.sleep(idleMs)
  throw new SimConnectionError('ECONNRESET', true, 'connection closed without an answer')
}

function toHead(request: SimRequest, body: Uint8Array): RequestHead {
  const { 'content-length': length, ...headers } = request.headers
  const known = length ?? (body.length > 0 ? String(body.length) : undefined)
  return {
    method: request.method,
    target: request.path,
    protocol: 'HTTP/1.1',
    headers: { ...headers, ...(known !== undefined && { 'content-length': known }) },
  }
}

async function feedInRecords(
  feed: (chunk: Uint8Array) => Promise<Reply | undefined>,
  body: Uint8Array,
): Promise<Reply | undefined> {
  for (let start = 0; start < body.length; start += recordBytes) {
    const reply = await feed(body.subarray(start, start + recordBytes))
    if (reply) return reply
  }
  return undefined
}
