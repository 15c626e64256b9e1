import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { Emulators } from '../local/emulators.ts'
import { tables } from '../local/resources.ts'
import { itemBytes, type StoredItem, writeUnits } from './item-size.ts'
import { sum } from './statistics.ts'

/** What went over the wire to AWS. */
export type Tally = {
  sqs: Record<string, number>
  /** Messages received, and polls that brought none: the latter are the idle cost, not a life's. */
  received: number
  emptyPolls: number
  batches: number
  sns: number
  dynamodb: Record<string, number>
  /** Writes of rows that went through, userData left out. */
  rowWrites: number
  writeUnits: { table: number; indexes: number; claims: number }
  readUnits: number
  failedConditions: number
}

const fresh = (): Tally => ({
  sqs: {},
  received: 0,
  emptyPolls: 0,
  batches: 0,
  sns: 0,
  dynamodb: {},
  rowWrites: 0,
  writeUnits: { table: 0, indexes: 0, claims: 0 },
  readUnits: 0,
  failedConditions: 0,
})

export type Wire = {
  /** The same emulators, reached through the counter. */
  emulators: Emulators
  /** What was counted since the last time. */
  take(): Tally
  close(): Promise<void>
}

/**
 * Counts between unmodified clients and the emulators. Units of DynamoDB are computed from the items before and after each
 * write, with indexes. What dynalite lacks and AWS has, the item inside a failed condition, is put in here, so that the
 * functions do not read what on AWS they need not.
 */
export async function openWire(emulators: Emulators): Promise<Wire> {
  let tally = fresh()
  const { endpoints } = emulators
  let turn: Promise<unknown> = Promise.resolve()
  /** One write after the other, so that what was read before a write is what stood there. */
  const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
    const mine = turn.then(work)
    turn = mine.catch(() => undefined)
    return mine
  }

  async function readItem(table: string, key: StoredItem): Promise<StoredItem | undefined> {
    const answer = await forward(endpoints.dynamodb, {
      method: 'POST',
      url: '/',
      headers: { ...awsHeaders, 'x-amz-target': 'DynamoDB_20120810.GetItem' },
      body: Buffer.from(JSON.stringify({ TableName: table, Key: key, ConsistentRead: true })),
    })
    const item = JSON.parse(answer.body.toString())
    return item.Item
  }

  async function dynamodb(request: Inbound): Promise<Outbound> {
    const call = String(request.headers['x-amz-target']).split('.')[1] ?? ''
    tally.dynamodb[call] = (tally.dynamodb[call] ?? 0) + 1
    const asked = JSON.parse(request.body.toString())
    const shape = Object.entries(tables).find(([name]) => name === asked.TableName)?.[1]
    if (shape && /^(Put|Update|Delete)Item$/.test(call)) {
      return inTurn(async () => {
        const key = asked.Key ?? keyOf(asked.Item, shape.keys)
        const before = await readItem(asked.TableName, key)
        const answer = await forward(endpoints.dynamodb, request)
        if (answer.status !== 200) return refused(answer, asked.TableName, before)
        const after = call === 'DeleteItem' ? undefined : await readItem(asked.TableName, key)
        const units = writeUnits(before, after, shape)
        if (asked.TableName === 'claims') tally.writeUnits.claims += units.table + units.indexes
        else {
          tally.writeUnits.table += units.table
          tally.writeUnits.indexes += units.indexes
          if (!String(key.uid?.S).startsWith('userdata#')) tally.rowWrites += 1
        }
        return answer
      })
    }
    const answer = await forward(endpoints.dynamodb, request)
    tally.readUnits += readUnits(asked, JSON.parse(answer.body.toString()))
    return answer
  }

  /** A condition that fails is billed like the write it would have been, by the item that stands there. */
  function refused(answer: Outbound, name: string, before: StoredItem | undefined): Outbound {
    const said = JSON.parse(answer.body.toString())
    if (!String(said.__type).endsWith('ConditionalCheckFailedException')) return answer
    tally.failedConditions += 1
    tally.writeUnits[name === 'claims' ? 'claims' : 'table'] += Math.max(
      1,
      Math.ceil(itemBytes(before) / 1024),
    )
    // Dynalite's checksum is of the answer without the item.
    const { 'x-amz-crc32': _, ...headers } = answer.headers
    return { ...answer, headers, body: Buffer.from(JSON.stringify({ ...said, Item: before })) }
  }

  async function messages(request: Inbound): Promise<Outbound> {
    const answer = await forward(endpoints.sqs, request)
    const call = String(request.headers['x-amz-target'] ?? '').split('.')[1]
    if (call === undefined) {
      tally.sns += 1
      return answer
    }
    if (call === 'ReceiveMessage') {
      const { Messages = [] } = JSON.parse(answer.body.toString())
      if (Messages.length === 0) {
        tally.emptyPolls += 1
        return answer
      }
      tally.batches += 1
      tally.received += Messages.length
    }
    tally.sqs[call] = (tally.sqs[call] ?? 0) + 1
    return answer
  }

  const table = await serve(dynamodb)
  const queue = await serve(messages)
  const moved = (url: string) => url.replace(endpoints.sqs, queue.url)
  const { create, delete: remove } = emulators.queues
  const through = ({ url, arn, deadLetters }: typeof create) => ({
    url: moved(url),
    arn,
    deadLetters: { ...deadLetters, url: moved(deadLetters.url) },
  })
  return {
    emulators: {
      ...emulators,
      endpoints: { dynamodb: table.url, sqs: queue.url, sns: queue.url },
      queues: { create: through(create), delete: through(remove) },
    },
    take() {
      const counted = tally
      tally = fresh()
      return counted
    },
    async close() {
      await Promise.all([table.close(), queue.close()])
    },
  }
}

const awsHeaders = {
  'content-type': 'application/x-amz-json-1.0',
  authorization:
    'AWS4-HMAC-SHA256 Credential=local/20260101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0',
  'x-amz-date': '20260101T000000Z',
}

const keyOf = (item: StoredItem, keys: readonly { AttributeName: string }[]): StoredItem =>
  Object.fromEntries(
    keys.flatMap(({ AttributeName }) => {
      const value = item[AttributeName]
      return value === undefined ? [] : [[AttributeName, value]]
    }),
  )

type Inbound = Pick<IncomingMessage, 'method' | 'url' | 'headers'> & { body: Buffer }
type Outbound = { status: number; headers: Record<string, string>; body: Buffer }

async function forward(base: string, { method, url, headers, body }: Inbound): Promise<Outbound> {
  const { host: _, 'content-length': __, connection: ___, ...kept } = headers
  const answer = await fetch(new URL(url ?? '/', base), {
    method: method ?? 'POST',
    headers: Object.entries(kept).map(([name, value]): [string, string] => [name, String(value)]),
    body: new Uint8Array(body),
  })
  return {
    status: answer.status,
    headers: Object.fromEntries(answer.headers),
    body: Buffer.from(await answer.arrayBuffer()),
  }
}

async function serve(handle: (request: Inbound) => Promise<Outbound>) {
  const server: Server = createServer((request, response) => {
    respond(request, response, handle).catch((error: unknown) => {
      response.writeHead(502)
      response.end(String(error))
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port was given')
  return {
    url: `http://127.0.0.1:${address.port}`,
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

async function respond(
  request: IncomingMessage,
  response: ServerResponse,
  handle: (request: Inbound) => Promise<Outbound>,
): Promise<void> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  const { method, url, headers } = request
  const answer = await handle({ method, url, headers, body: Buffer.concat(chunks) })
  // Encoding and length were those of the emulator's own answer.
  const {
    'content-length': _,
    'content-encoding': __,
    'transfer-encoding': ___,
    connection: ____,
    ...kept
  } = answer.headers
  response.writeHead(answer.status, { ...kept, 'content-length': answer.body.byteLength })
  response.end(answer.body)
}

type Read = { ConsistentRead?: boolean }
type Answered = { Item?: StoredItem; Items?: StoredItem[]; Responses?: Record<string, StoredItem[]> }

/** Units of one read: of a page together, of a batch item by item, those that are missing too. */
function readUnits(
  asked: Read & { RequestItems?: Record<string, Read & { Keys: unknown[] }> },
  { Item, Items = Item ? [Item] : [], Responses = {} }: Answered,
): number {
  const rate = (how: Read) => (how.ConsistentRead ? 1 : 0.5)
  const units = (bytes: number) => Math.max(1, Math.ceil(bytes / 4096))
  if (!asked.RequestItems) return units(sum(Items.map(itemBytes))) * rate(asked)
  return sum(
    Object.entries(asked.RequestItems).map(([table, how]) => {
      const found = Responses[table] ?? []
      const missing = how.Keys.length - found.length
      return (sum(found.map((item) => units(itemBytes(item)))) + missing) * rate(how)
    }),
  )
}
