import { once } from 'node:events'
import { createServer, request as forward, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'

/** One call as it went over the wire: `dynamodb:GetItem`, on a table, `table/index/name`, queue, topic ARN or parameter. */
export type Seen = {
  action: string
  on: string
  /** Of an item that is written to be forgotten one day: the phase of a row, the partition of what is no row. */
  forgets?: string
}

export type Recorder = { url: string; seen: Seen[]; close(): Promise<void> }

/** Stands before an emulator of AWS, hands every request on as it came, and notes what was called on what. */
export async function record(upstream: string): Promise<Recorder> {
  const seen: Seen[] = []
  const server = createServer(async (incoming, outgoing) => {
    const chunks: Buffer[] = []
    for await (const chunk of incoming) chunks.push(chunk)
    const body = Buffer.concat(chunks)
    seen.push(read(incoming, body.toString()))
    const { method, url, headers } = incoming
    const onward = forward(new URL(url ?? '/', upstream), { method, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 500, answer.headers)
      answer.pipe(outgoing)
    })
    onward.on('error', (error) => outgoing.destroy(error))
    onward.end(body)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    // A server that listens on TCP has an address with a port.
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    seen,
    close: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

/** By which both tables let items expire; local/resources.ts. */
const ATTRIBUTE = 'purgeAt'

const SERVICES: Record<string, string> = { DynamoDB_20120810: 'dynamodb', AmazonSQS: 'sqs', AmazonSSM: 'ssm' }

function read({ headers }: IncomingMessage, body: string): Seen {
  const [service = '', operation = ''] = String(headers['x-amz-target'] ?? '').split('.')
  if (service in SERVICES) {
    const { RequestItems, IndexName, QueueUrl, Name, ...asked } = JSON.parse(body)
    const TableName = asked.TableName ?? (RequestItems && Object.keys(RequestItems).join())
    const index = IndexName === undefined ? '' : `/index/${IndexName}`
    const { Item: item, Key: key, ExpressionAttributeNames: names = {} } = asked
    const isForgotten = item ? ATTRIBUTE in item : Object.values(names).includes(ATTRIBUTE)
    return {
      action: `${SERVICES[service]}:${operation}`,
      on: `${TableName ?? QueueUrl?.split('/').at(-1) ?? Name}${index}`,
      ...(isForgotten && {
        forgets: (item?.phase ?? (item ?? key)?.partition)?.S ?? JSON.stringify(item ?? key),
      }),
    }
  }
  const form = new URLSearchParams(body)
  return { action: `sns:${form.get('Action')}`, on: form.get('TopicArn') ?? '' }
}
