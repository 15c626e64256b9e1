import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener } from 'node:http'
import { type AddressInfo, createServer as createTcpServer, type Server } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { probe } from '../../lib/probe.ts'

const url = 'http://page.test:8080/hello?x=1'
const never = new AbortController().signal
let server: Server | undefined

async function listening(on: Server): Promise<number> {
  server = on.listen(0, '127.0.0.1')
  await once(on, 'listening')
  // A server on TCP has an address of this kind.
  return (on.address() as AddressInfo).port
}
const proxy = (listener: RequestListener) => listening(createServer(listener))
const look = (port: number, over: Partial<Parameters<typeof probe.http>[0]> = {}) =>
  probe.http({ host: '127.0.0.1', port, url, signal: never, ...over })

afterEach(() => {
  server?.close()
  server = undefined
})

/** A port on which nothing listens. */
async function deadPort(): Promise<number> {
  const port = await listening(createTcpServer())
  server?.close()
  return port
}

describe('probe over http', () => {
  it.each([
    [200, 'answers'],
    [204, 'answers'],
    [301, 'answers'],
    [404, 'answers'],
    [401, 'refuses'],
    [403, 'refuses'],
    [407, 'refuses'],
    [500, 'silent'],
    [502, 'silent'],
    [503, 'silent'],
  ])('takes status %d for: %s', async (status, kind) => {
    const port = await proxy((_, answer) => answer.writeHead(status).end())
    expect(await look(port)).toEqual({ kind, detail: `status ${status} for ${url}` })
  })

  it('asks as a client of a proxy does: the whole address, its host, and credentials', async () => {
    const seen: IncomingMessage[] = []
    const port = await proxy((request, answer) => {
      seen.push(request)
      answer.end()
    })
    await look(port, { credentials: { username: 'ci', password: 'pä:ss' } })
    await look(port)
    expect(
      seen.map(({ method, url: path, headers }) => [
        method,
        path,
        headers.host,
        headers['proxy-authorization'],
      ]),
    ).toEqual([
      ['GET', url, 'page.test:8080', `Basic ${Buffer.from('ci:pä:ss').toString('base64')}`],
      ['GET', url, 'page.test:8080', undefined],
    ])
  })

  it('says why nothing answers, and holds no password', async () => {
    const credentials = { username: 'ci', password: 'hunter2' }
    const refused = await look(await deadPort(), { credentials })
    expect(refused).toEqual({ kind: 'silent', detail: expect.stringContaining('ECONNREFUSED') })
    const port = await proxy((_, answer) => answer.writeHead(407).end())
    expect(JSON.stringify([refused, await look(port, { credentials })])).not.toMatch(/hunter2|aHVudGVyMg/)
  })

  it('takes a server that hangs up, or speaks something else, for silent', async () => {
    const hangsUp = await listening(createTcpServer((socket) => socket.destroy()))
    expect((await look(hangsUp)).kind).toBe('silent')
    server?.close()
    const ssh = await listening(createTcpServer((socket) => socket.end('SSH-2.0-OpenSSH_9.2\r\n')))
    expect((await look(ssh)).kind).toBe('silent')
  })

  it('does not wait for the end of a page', async () => {
    const port = await proxy((_, answer) => {
      answer.write('the first of many bytes')
    })
    expect((await look(port)).kind).toBe('answers')
  })

  it('ends with the invocation where nothing is ever said', async () => {
    const abort = new AbortController()
    const port = await proxy(() => abort.abort())
    expect((await look(port, { signal: abort.signal })).kind).toBe('silent')
    expect((await look(port, { signal: AbortSignal.abort() })).kind).toBe('silent')
  })
})

describe('probe over tcp', () => {
  const knock = (port: number, signal = never) => probe.tcp({ host: '127.0.0.1', port, url, signal })

  it('is content with a connection', async () => {
    expect(await knock(await listening(createTcpServer()))).toEqual({
      kind: 'answers',
      detail: 'accepts connections',
    })
  })

  it('says why there is none', async () => {
    expect(await knock(await deadPort())).toEqual({
      kind: 'silent',
      detail: expect.stringContaining('ECONNREFUSED'),
    })
    expect((await knock(await listening(createTcpServer()), AbortSignal.abort())).kind).toBe('silent')
  })
})
