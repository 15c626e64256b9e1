import { once } from 'node:events'
import { inspect } from 'node:util'
import { afterEach, beforeAll, describe, expect, test } from 'vitest'
import { createProxmox, type ProxmoxOptions } from '../../../lib/proxmox/index.ts'
import { rejection, token, upid } from './fake-exchange.ts'
import { certify, deadUrl, type Handler, serve } from './tls-server.ts'

// Real sockets, real TLS: what the transport's tests over a played cluster cannot show.

type Certificate = Awaited<ReturnType<typeof certify>>
let own: Certificate
let impostor: Certificate
let authority: Certificate
let signed: Certificate

beforeAll(async () => {
  own = await certify('pve1')
  impostor = await certify('pve1')
  authority = await certify('Proxmox Virtual Environment')
  signed = await certify('pve1', authority)
})

const closing: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

async function started(handler: Handler, certificate = own) {
  const server = await serve(certificate, handler)
  closing.push(() => server.close())
  return server
}

function connected(
  options: Pick<ProxmoxOptions, 'endpoints'> & Partial<ProxmoxOptions>,
  signal?: AbortSignal,
) {
  const proxmox = createProxmox({ token: { get: async () => [token] }, ...options })
  closing.unshift(() => proxmox.close())
  return proxmox.with({ signal: signal ?? new AbortController().signal })
}

const pinned = (server: { url: string }) => ({ url: server.url, fingerprint: own.fingerprint })
const sayVersion: Handler = (_, response) => response.end('{"data":{"version":"8.4.21"}}')
const version = { version: '8.4.21', major: 8 }
const vm = { node: 'pve1', vmid: 101 }
const shown = (error: unknown) => inspect(error, { depth: Number.POSITIVE_INFINITY, showHidden: true })

describe('exchange: trust', () => {
  test('accepts the pinned certificate, on every connection anew', async () => {
    const server = await started((request, response) => {
      response.setHeader('connection', 'close')
      sayVersion(request, response)
    })
    const provider = connected({ endpoints: [pinned(server)] })
    for (let round = 0; round < 3; round++) expect(await provider.version()).toEqual(version)
    expect(server.sockets).toHaveLength(3)
  })

  test('takes a fingerprint without colons and in lower case', async () => {
    const server = await started(sayVersion)
    const fingerprint = own.fingerprint.replaceAll(':', '').toLowerCase()
    expect(await connected({ endpoints: [{ url: server.url, fingerprint }] }).version()).toEqual(version)
  })

  test('shows an impostor neither the token nor the request', async () => {
    const server = await started(sayVersion, impostor)
    const error = await rejection(connected({ endpoints: [pinned(server)] }).version())
    expect(error).toMatchObject({ code: 'Untrusted', sent: 'no' })
    expect(server.requests).toEqual([])
  })

  test('accepts a certificate of the given authority', async () => {
    const server = await started(sayVersion, signed)
    const provider = connected({ endpoints: [{ url: server.url }], ca: authority.cert })
    expect(await provider.version()).toEqual(version)
  })

  // Report: UrielCh/proxmox-api#15
  test.each([
    ['another authority’s', () => own, () => authority],
    ['one of no known authority', () => own, () => undefined],
  ])('refuses %s certificate', async (_, certificate, ca) => {
    const server = await started(sayVersion, certificate())
    const known = ca()
    const provider = connected({ endpoints: [{ url: server.url }], ...(known ? { ca: known.cert } : {}) })
    const error = await rejection(provider.version())
    expect(error).toMatchObject({ code: 'Untrusted', sent: 'no' })
    // What Node says of the certificate, which its fetch would keep in a cause.
    expect(String(error)).toMatch(/127\.0\.0\.1:\d+: (DEPTH_ZERO_SELF_SIGNED_CERT|UNABLE_TO_\w+) \w/)
    expect(server.requests).toEqual([])
  })

  test('refuses a certificate that was made for another name', async () => {
    const server = await started(sayVersion, signed)
    const url = server.url.replace('127.0.0.1', 'localhost')
    const provider = connected({ endpoints: [{ url }], ca: authority.cert })
    expect(await rejection(provider.version())).toMatchObject({ code: 'Untrusted', sent: 'no' })
  })
})

describe('exchange: connections', () => {
  test('speaks HTTP/1.1 although the server would speak HTTP/2, and keeps its connections', async () => {
    const server = await started(sayVersion)
    const provider = connected({ endpoints: [pinned(server)] })
    for (let round = 0; round < 10; round++) await provider.version()
    expect(new Set(server.requests.map((request) => request.version))).toEqual(new Set(['1.1']))
    // undici opens a second one when a call follows before it has put the first back.
    expect(server.sockets.length).toBeLessThanOrEqual(2)
  })

  test('lets go of an idle connection before the 5 s at which Proxmox does', async () => {
    const server = await started(sayVersion)
    await connected({ endpoints: [pinned(server)] }).version()
    const startedMs = Date.now()
    // The client's end, seen by the server, comes first; its own time-out would be a close without it.
    await once(server.sockets[0] ?? expect.fail('no socket'), 'end')
    expect(Date.now() - startedMs).toBeLessThan(4_800)
  })

  test('gives every change a connection of its own, which cannot have gone stale', async () => {
    const server = await started((request, response) => {
      if (request.method === 'GET') sayVersion(request, response)
      else response.end(JSON.stringify({ data: upid('qmstart', '101') }))
    })
    const provider = connected({ endpoints: [pinned(server)] })
    await provider.version()
    await provider.start(vm)
    await provider.start(vm)
    expect(server.sockets).toHaveLength(3)
    expect(server.requests.map(({ headers }) => headers.connection)).toEqual(['keep-alive', 'close', 'close'])
  })

  test('sends an upload with its length, not in chunks', async () => {
    const server = await started((_, response) => response.end(JSON.stringify({ data: upid('imgcopy', '') })))
    const bytes = Buffer.alloc(200_000, 7)
    await connected({ endpoints: [pinned(server)] }).upload({
      node: 'pve1',
      storage: 'local',
      filename: 'a.iso',
      bytes,
    })
    const [request] = server.requests
    expect(request?.headers['content-length']).toBe(String(request?.text.length))
    expect(request?.headers).not.toHaveProperty('transfer-encoding')
    expect(request?.text).toContain(bytes.toString('latin1'))
  })

  test('sends a POST without a body as an empty one', async () => {
    const server = await started((_, response) =>
      response.end(JSON.stringify({ data: upid('qmstart', '101') })),
    )
    await connected({ endpoints: [pinned(server)] }).start(vm)
    expect(server.requests[0]?.headers['content-length']).toBe('0')
  })

  // Report: dougiteixeira/proxmoxve#692
  test('takes a change to the next endpoint when the first does not listen', async () => {
    const server = await started((_, response) =>
      response.end(JSON.stringify({ data: upid('qmstart', '101') })),
    )
    const dead = { url: await deadUrl(own), fingerprint: own.fingerprint }
    const provider = connected({ endpoints: [dead, pinned(server)] })
    expect(await provider.start(vm)).toBe(upid('qmstart', '101'))
    expect(server.requests).toHaveLength(1)
  })

  test('takes a change to the next endpoint when the first is an impostor', async () => {
    const wrong = await started(sayVersion, impostor)
    const server = await started((_, response) =>
      response.end(JSON.stringify({ data: upid('qmstart', '101') })),
    )
    const provider = connected({ endpoints: [pinned(wrong), pinned(server)] })
    await provider.start(vm)
    expect([wrong.requests.length, server.requests.length]).toEqual([0, 1])
  })
})

describe('exchange: answers', () => {
  test.each([
    [595, 'Connection refused', 'Unreachable', 'no', false],
    [596, 'Connection timed out', 'Unreachable', 'maybe', true],
    [599, 'Too many redirections', 'Unreachable', 'maybe', true],
    [401, 'Authentication failed!', 'Unauthorized', 'no', false],
    [403, 'Permission check failed (/vms/101, VM.PowerMgmt)', 'Forbidden', 'yes', false],
    [500, 'VM is locked (backup)', 'VmLocked', 'yes', false],
    [500, "can't lock file '/var/lock/qemu-server/lock-101.conf' - got timeout", 'Locked', 'yes', false],
  ])('reads a bare %s %s', async (status, reason, code, sent, ambiguous) => {
    const server = await started((_, response) => {
      response.writeHead(status, reason, { connection: 'close' })
      response.end()
    })
    const error = await rejection(connected({ endpoints: [pinned(server)] }).start(vm))
    expect(error).toMatchObject({ code, status, sent, ambiguous })
    expect(shown(error)).not.toContain('canary-1111')
  })

  // As pveproxy was recorded to send them: words outside ASCII, both kinds of Connection at once, no length.
  test.each([
    ['HTTP/1.1 500 d\u00e9j\u00e0 vu\tab', 'Unknown', 'd\u00e9j\u00e0 vu'],
    [
      'HTTP/1.1 500 VM is locked (backup)\r\nConnection: close\r\nConnection: Keep-Alive',
      'VmLocked',
      'backup',
    ],
    [`HTTP/1.1 500 unable to parse directory volume name '${'z'.repeat(8_000)}'`, 'Rejected', 'zzz'],
  ])('reads an answer that begins %j', async (head, code, words) => {
    const server = await started((request) =>
      request.socket.end(`${head}\r\nServer: pve-api-daemon/3.0\r\n\r\n`),
    )
    const error = await rejection(connected({ endpoints: [pinned(server)] }).start(vm))
    expect(error).toMatchObject({ code, status: 500, message: expect.stringContaining(words) })
  })

  test('gives up on a body that drips', async () => {
    const server = await started((_, response) => {
      const drip = setInterval(() => response.write(' '), 20)
      response.on('close', () => clearInterval(drip))
    })
    const provider = connected({ endpoints: [pinned(server)], timeouts: { changeMs: 1500 } })
    const error = await rejection(provider.start(vm))
    expect(error).toMatchObject({ code: 'Unreachable', ambiguous: true, cause: { code: 'TIMEOUT' } })
    expect(shown(error)).not.toContain('canary-1111')
  })

  test('gives up on a server that says nothing', async () => {
    const server = await started(() => {})
    const provider = connected({ endpoints: [pinned(server)], timeouts: { changeMs: 1500 } })
    expect(await rejection(provider.start(vm))).toMatchObject({ code: 'Unreachable', ambiguous: true })
    expect(server.requests).toHaveLength(1)
  })

  test('stops reading an answer that has no end', async () => {
    const server = await started((_, response) => {
      const more = () => {
        while (!response.destroyed && response.write(Buffer.alloc(65_536, 32)));
      }
      response.on('drain', more)
      more()
    })
    // The agent's answer is a guest's, and bounded to 1 MiB.
    const error = await rejection(connected({ endpoints: [pinned(server)] }).interfaces(vm))
    expect(error).toMatchObject({ code: 'Unexpected', message: expect.stringContaining('1048576') })
    await expect.poll(() => server.sockets.every((socket) => socket.destroyed)).toBe(true)
  })

  test('says that a change may run when the answer was cut in its middle', async () => {
    const server = await started((_, response) => {
      response.writeHead(200, { 'content-length': 100 })
      response.write('{"data":', () => response.destroy())
    })
    const error = await rejection(connected({ endpoints: [pinned(server)] }).start(vm))
    expect(error).toMatchObject({ code: 'Unreachable', sent: 'maybe', ambiguous: true })
    expect(server.requests).toHaveLength(1)
    expect(shown(error)).not.toContain('canary-1111')
  })

  test('reads again after an answer that was cut', async () => {
    let cuts = 1
    const server = await started((request, response) => {
      if (cuts-- > 0) response.destroy()
      else sayVersion(request, response)
    })
    expect(await connected({ endpoints: [pinned(server)] }).version()).toEqual(version)
    expect(server.requests).toHaveLength(2)
  })

  test('ends a call in flight when the signal fires', async () => {
    const stop = new AbortController()
    const server = await started(() => stop.abort())
    const error = await rejection(connected({ endpoints: [pinned(server)] }, stop.signal).start(vm))
    expect(error).toMatchObject({ code: 'Aborted', sent: 'maybe', ambiguous: true })
    await expect.poll(() => server.sockets[0]?.destroyed).toBe(true)
  })

  test('does not go on reading elsewhere when the signal fires', async () => {
    const stop = new AbortController()
    const server = await started(() => stop.abort())
    const other = await started(sayVersion)
    const provider = connected({ endpoints: [pinned(server), pinned(other)] }, stop.signal)
    expect(await rejection(provider.version())).toMatchObject({ code: 'Aborted', ambiguous: false })
    expect(other.requests).toEqual([])
  })
})
