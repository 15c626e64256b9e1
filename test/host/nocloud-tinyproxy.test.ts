import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingHttpHeaders, request, type Server } from 'node:http'
import { type AddressInfo, connect, createServer as createTcpServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { documents, type Seed } from '../../lib/nocloud/index.ts'
import { aSeed } from '../lib/nocloud/a-seed.ts'
import { describeWith, pathOf } from './tools.ts'

type Client = { from?: string; credentials?: string }

let folder: string
let site: Server
let seenBySite: IncomingHttpHeaders = {}
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'egress-tinyproxy-'))
  site = createServer((asked, answer) => {
    seenBySite = asked.headers
    answer.end('the page')
  }).listen(0, '127.0.0.1')
  await once(site, 'listening')
})
afterAll(() => {
  site.close()
  rmSync(folder, { recursive: true })
})

let proxy: ChildProcess | undefined
afterEach(async () => {
  if (!proxy || proxy.exitCode !== null) return
  const ended = once(proxy, 'exit')
  proxy.kill('SIGKILL')
  await ended
})

/** Starts the real program with the configuration the seed writes, bound to loopback; gives its port. */
async function start(changes: {
  allow: string[]
  probeFrom?: string[]
  auth?: Seed['proxy']['auth']
}): Promise<number> {
  const { allow, probeFrom = [], auth } = changes
  const port = await freePort()
  const seed = aSeed({ proxy: { port, allow, ...(auth ? { auth } : {}) }, probeFrom })
  const [, lines] = /tinyproxy\.conf <<'END'\n([\s\S]*?)\nEND\n/.exec(documents(seed)['vendor-data']) ?? []
  const file = join(folder, `${port}.conf`)
  writeFileSync(file, `${lines}\nListen 127.0.0.1\n`)
  const child = spawn(pathOf('tinyproxy') ?? '', ['-d', '-c', file], { stdio: ['ignore', 'pipe', 'pipe'] })
  proxy = child
  let said = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (text) => (said += text))
  while (!(await listens(port))) {
    if (child.exitCode !== null) throw new Error(`tinyproxy ended: ${said}`)
  }
  // An address it cannot read is a warning to tinyproxy, and nobody admitted.
  expect(said).not.toMatch(/invalid|too long|syntax/i)
  return port
}

async function freePort(): Promise<number> {
  const server = createTcpServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo // A TCP server's address is an object.
  server.close()
  await once(server, 'close')
  return port
}

function listens(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
    socket.once('connect', () => socket.destroy())
  })
}

const siteUrl = () => `http://127.0.0.1:${(site.address() as AddressInfo).port}/`

const headersOf = ({ credentials }: Client) => ({
  ...(credentials ? { 'proxy-authorization': `Basic ${Buffer.from(credentials).toString('base64')}` } : {}),
})

/** A plain request through the proxy: the status and the page. */
async function get(port: number, client: Client = {}): Promise<{ status: number | undefined; text: string }> {
  const asked = request({
    host: '127.0.0.1',
    port,
    path: siteUrl(),
    localAddress: client.from ?? '127.0.0.1',
    headers: headersOf(client),
    agent: false,
  }).end()
  const [answer] = await once(asked, 'response')
  let text = ''
  for await (const chunk of answer) text += chunk
  return { status: answer.statusCode, text }
}

/** A tunnel through the proxy, and a page through the tunnel when it opens. */
async function tunnel(
  port: number,
  client: Client = {},
): Promise<{ status: number | undefined; text: string }> {
  const { port: sitePort } = site.address() as AddressInfo
  const asked = request({
    host: '127.0.0.1',
    port,
    method: 'CONNECT',
    path: `127.0.0.1:${sitePort}`,
    localAddress: client.from ?? '127.0.0.1',
    headers: headersOf(client),
    agent: false,
  }).end()
  const [answer, socket] = await once(asked, 'connect')
  if (answer.statusCode !== 200) {
    socket.destroy()
    return { status: answer.statusCode, text: '' }
  }
  socket.write(`GET / HTTP/1.1\r\nHost: 127.0.0.1:${sitePort}\r\nConnection: close\r\n\r\n`)
  let text = ''
  for await (const chunk of socket) text += chunk
  return { status: answer.statusCode, text }
}

describeWith(['tinyproxy'], 'tinyproxy with our configuration', () => {
  it('lets an allowed client through, by request and by tunnel', async () => {
    const port = await start({ allow: ['127.0.0.1'] })
    expect(await get(port)).toEqual({ status: 200, text: 'the page' })
    expect(await tunnel(port)).toMatchObject({ status: 200, text: expect.stringContaining('the page') })
  })

  it('refuses everyone else', async () => {
    const port = await start({ allow: ['127.0.0.1', '127.0.0.8/32', '10.0.0.0/8', '2000::/3'] })
    expect(await get(port, { from: '127.0.0.9' })).toMatchObject({ status: 403 })
    expect(await tunnel(port, { from: '127.0.0.9' })).toMatchObject({ status: 403 })
  })

  it('takes ranges as they are meant, also with bits beyond the prefix', async () => {
    const port = await start({ allow: ['127.0.5.77/24'] })
    expect(await get(port, { from: '127.0.5.1' })).toMatchObject({ status: 200 })
    expect(await get(port, { from: '127.0.6.1' })).toMatchObject({ status: 403 })
  })

  it('admits no IPv4 client by any IPv6 range we accept', async () => {
    const port = await start({ allow: ['2000::/3', '8000::/1', '4000::/2', '1::/16'] })
    expect(await get(port)).toMatchObject({ status: 403 })
  })

  it('lets our prober through beside the publisher', async () => {
    const port = await start({ allow: ['127.0.0.8'], probeFrom: ['127.0.0.9/32'] })
    expect(await get(port, { from: '127.0.0.9' })).toMatchObject({ status: 200 })
    expect(await get(port, { from: '127.0.0.8' })).toMatchObject({ status: 200 })
    expect(await get(port, { from: '127.0.0.7' })).toMatchObject({ status: 403 })
  })

  it('asks for credentials, and takes only the right ones', async () => {
    const port = await start({ allow: ['127.0.0.1'], auth: { username: 'Bob_1', password: 'a.B-9' } })
    for (const through of [get, tunnel]) {
      expect(await through(port)).toMatchObject({ status: 407 })
      expect((await through(port, { credentials: 'Bob_1:a.b-9' })).status).toBeOneOf([401, 407])
      expect(await through(port, { credentials: 'Bob_1:a.B-9' })).toMatchObject({ status: 200 })
    }
  })

  it('does not let credentials stand in for the address', async () => {
    const port = await start({ allow: ['127.0.0.1'], auth: { username: 'u', password: 'p' } })
    expect(await get(port, { from: '127.0.0.9', credentials: 'u:p' })).toMatchObject({ status: 403 })
  })

  it('takes every character and the whole length that we accept in credentials', async () => {
    const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-'
    const [username, password] = [alphabet, alphabet.repeat(4).slice(0, 255 - alphabet.length)]
    const port = await start({ allow: ['127.0.0.1'], auth: { username, password } })
    expect(await get(port, { credentials: `${username}:${password}` })).toMatchObject({ status: 200 })
  })

  it('tells the site neither of itself nor of the client or the password', async () => {
    const port = await start({ allow: ['127.0.0.1'], auth: { username: 'u', password: 'p' } })
    await get(port, { credentials: 'u:p' })
    expect(Object.keys(seenBySite)).toEqual(expect.arrayContaining(['host']))
    expect(Object.keys(seenBySite).filter((name) => /via|proxy|forwarded/.test(name))).toEqual([])
  })
})
