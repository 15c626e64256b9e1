import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { createServer, type TLSSocket } from 'node:tls'
import { gzipSync } from 'node:zlib'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { createProxmox, type Provider } from '../../lib/proxmox/index.ts'
import { rejection, token } from '../lib/proxmox/fake-exchange.ts'
import { certify } from '../lib/proxmox/tls-server.ts'

// Endpoints that speak whatever they like, on real sockets: what is counted is how much of it was taken.

let certificate: Awaited<ReturnType<typeof certify>>
let close: () => Promise<void> = async () => {}
beforeAll(async () => {
  certificate = await certify('hostile')
})
afterEach(() => close())

const MIB = 1024 * 1024
const vm = { node: 'pve1', vmid: 101 }

type Endpoint = { vms: Provider; written: () => number; hungUp: Promise<unknown> }

/** A server that says this, byte by byte as it stands, to whoever asks; what it goes on with, it says for ever. */
async function endpoint(say: { first?: string | Buffer; forEver?: string | Buffer; timeoutMs?: number }) {
  const { first, forEver, timeoutMs = 20_000 } = say
  const sockets: TLSSocket[] = []
  let written = 0
  const { promise: hungUp, resolve } = Promise.withResolvers<void>()
  const server = createServer({ key: certificate.key, cert: certificate.cert }, (socket) => {
    sockets.push(socket)
    socket.on('error', () => {}).on('close', resolve)
    socket.once('data', () => {
      if (first) socket.write(first)
      const goOn = () => {
        while (forEver && !socket.destroyed) {
          written += Buffer.byteLength(forEver)
          if (!socket.write(forEver)) return void socket.once('drain', goOn)
        }
      }
      goOn()
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const proxmox = createProxmox({
    endpoints: [
      {
        url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
        fingerprint: certificate.fingerprint,
      },
    ],
    token: { get: async () => [token] },
    timeouts: { readMs: timeoutMs, changeMs: timeoutMs, agentMs: timeoutMs },
  })
  close = async () => {
    for (const socket of sockets) socket.destroy()
    await proxmox.close()
    server.close()
    await once(server, 'close')
  }
  const open: Endpoint = {
    vms: proxmox.with({ signal: new AbortController().signal }),
    written: () => written,
    hungUp,
  }
  return open
}

const head = (...lines: string[]) => `${['HTTP/1.1 200 OK', ...lines].join('\r\n')}\r\n\r\n`
const chunked = head('transfer-encoding: chunked')
const chunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`
const block = 'x'.repeat(64 * 1024)

describe('an endpoint that never ends', () => {
  it.each<[string, (vms: Provider) => Promise<unknown>, number]>([
    ['an answer', (vms) => vms.listVms(), 16 * MIB],
    ['the answer to a change', (vms) => vms.start(vm), 16 * MIB],
    ['what a guest says', (vms) => vms.interfaces(vm), MIB],
  ])('is hung up on once it has said enough: %s', async (_, ask, most) => {
    const { vms, written, hungUp } = await endpoint({ first: chunked, forEver: chunk(block) })
    const error = await rejection(ask(vms))
    expect(error).toMatchObject({
      code: 'Unexpected',
      message: expect.stringMatching(/larger than \d+ bytes/),
    })
    await hungUp
    // What was on its way in the buffers of two sockets was never taken.
    expect(written()).toBeLessThan(most + 12 * MIB)
  })

  it('is hung up on while it is still at its headers', async () => {
    const { vms, written, hungUp } = await endpoint({
      first: 'HTTP/1.1 200 OK\r\n',
      forEver: `x-more: ${block.slice(0, 1000)}\r\n`,
    })
    expect(await rejection(vms.listVms())).toMatchObject({ code: 'Unreachable' })
    await hungUp
    expect(written()).toBeLessThan(12 * MIB)
  })

  it.each([
    ['a status that is never the last', 'HTTP/1.1 100 Continue\r\n\r\n'],
    ['one line', block],
    ['empty lines', '\r\n'.repeat(1000)],
    ['chunks of nothing', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n'],
  ])('is hung up on at the end of our patience: %s', async (_, forEver) => {
    const { vms, hungUp } = await endpoint({ forEver, timeoutMs: 400 })
    expect(await rejection(vms.listVms())).toMatchObject({
      code: expect.stringMatching(/^Un(?:reachable|expected)$/),
    })
    await hungUp
  })

  it('is hung up on at the end of our patience, however slowly it speaks', async () => {
    const { vms, hungUp } = await endpoint({ first: `${head('content-length: 1000')}{`, timeoutMs: 300 })
    expect(await rejection(vms.listVms())).toMatchObject({
      code: 'Unreachable',
      message: expect.stringContaining('timed out'),
    })
    await hungUp
  })
})

describe('an endpoint that speaks oddly', () => {
  const listed = '{"data":[]}'

  it.each<[string, string | Buffer, string]>([
    ['no HTTP', 'SSH-2.0-OpenSSH_9.2\r\n', 'Unreachable'],
    ['HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'Unreachable'],
    ['a status of its own', 'HTTP/1.1 9999 Odd\r\n\r\n', 'Unreachable'],
    ['two lengths', `${head('content-length: 11', 'content-length: 12')}${listed}`, 'Unreachable'],
    [
      'a length and chunks',
      `${head('content-length: 11', 'transfer-encoding: chunked')}${listed}`,
      'Unreachable',
    ],
    ['a length that is none', `${head('content-length: -1')}${listed}`, 'Unreachable'],
    ['a chunk without end', `${chunked}ffffffffffffffff\r\n`, 'Unreachable'],
    ['a header without a name', `${head(': x', 'content-length: 11')}${listed}`, 'Unreachable'],
    [
      'an upgrade',
      'HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n',
      'Unreachable',
    ],
    // Nothing is unpacked, so nothing small becomes large.
    [
      'a bomb',
      Buffer.concat([
        Buffer.from(head('content-encoding: gzip', 'connection: close', `content-length: ${bomb().length}`)),
        bomb(),
      ]),
      'Unexpected',
    ],
    [
      'bytes that are no text',
      Buffer.concat([Buffer.from(head('content-length: 4')), Buffer.from([0xff, 0xfe, 0, 0xc0])]),
      'Unexpected',
    ],
    ['a page', `${head('content-type: text/html', 'content-length: 13')}<html></html>`, 'Unexpected'],
    [
      'a way elsewhere',
      'HTTP/1.1 302 Found\r\nlocation: https://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n',
      'Unexpected',
    ],
  ])('gives one of our errors: %s', async (_, first, code) => {
    const { vms } = await endpoint({ first, timeoutMs: 1000 })
    const error = await rejection(vms.listVms())
    expect(error).toMatchObject({
      name: 'ProxmoxError',
      code,
      message: expect.stringMatching(/^\P{Cc}{1,600}$/u),
    })
  })

  it('is understood where what it says is meant', async () => {
    const { vms } = await endpoint({
      first: `${head('content-type: text/plain', 'content-length: 11')}${listed}`,
    })
    expect(await vms.listVms()).toEqual([])
  })
})

function bomb(): Buffer {
  return gzipSync(Buffer.alloc(8 * MIB, ' '))
}
