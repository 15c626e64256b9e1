import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { Agent, fetch } from 'undici'
import { afterEach, describe, expect, it } from 'vitest'
import { createFront, type Front } from '../../../sim/http/front.ts'
import { SimConnectionError } from '../../../sim/types.ts'
import { isWhole, toWire, writeRaw } from './raw-client.ts'
import { multipartBody, parseAnswer } from './recording.ts'
import { scriptedEngine } from './scripted-engine.ts'

const version = { method: 'GET', path: '/api2/json/version', headers: {} }

describe('sim: front', () => {
  const fronts: Front[] = []
  afterEach(() => Promise.all(fronts.splice(0).map((front) => front.close())))

  async function listening(engine = scriptedEngine(), options: Parameters<typeof createFront>[1] = {}) {
    const front = createFront(engine, options)
    fronts.push(front)
    const { endpoints, ca } = await front.listen()
    return { front, ca, endpoints, target: { url: endpoints[0]?.url ?? '', ca } }
  }

  it('shows a certificate that its authority vouches for, by address and by node name', async () => {
    const { ca, endpoints } = await listening(scriptedEngine({ nodes: ['pve1', 'pve2'] }))
    for (const { node, url, fingerprint } of endpoints) {
      for (const servername of [node, 'localhost']) {
        const seen = await new Promise((resolve, reject) => {
          const socket = connect(
            { host: '127.0.0.1', port: Number(new URL(url).port), ca, servername },
            () => {
              resolve(socket.getPeerCertificate().fingerprint256)
              socket.destroy()
            },
          )
          socket.on('error', reject)
        })
        expect(seen).toBe(fingerprint)
      }
      const dispatcher = new Agent({ connect: { ca } })
      expect((await fetch(`${url}/api2/json/version`, { dispatcher })).status).toBe(200)
      await dispatcher.close()
    }
  })

  it('is a stranger to who does not know its authority', async () => {
    const { endpoints } = await listening()
    await expect(fetch(`${endpoints[0]?.url}/api2/json/version`)).rejects.toMatchObject({
      cause: { code: 'UNABLE_TO_VERIFY_LEAF_SIGNATURE' },
    })
  })

  it('keeps its certificates in the state directory, so that pinned fingerprints survive', async () => {
    const stateDir = await mkdtemp(join(tmpdir(), 'sim-front-'))
    const first = await listening(scriptedEngine(), { stateDir })
    const second = await listening(scriptedEngine({ nodes: ['pve1', 'pve2'] }), { stateDir })
    expect(second.ca).toBe(first.ca)
    expect(second.endpoints[0]?.fingerprint).toBe(first.endpoints[0]?.fingerprint)
    expect(second.endpoints[1]?.fingerprint).not.toBe(first.endpoints[0]?.fingerprint)
    await rm(stateDir, { recursive: true })
  })

  it('refuses connections while its node is down, and is there again at the same place afterwards', async () => {
    const engine = scriptedEngine()
    const { target } = await listening(engine)
    const open = writeRaw(target, toWire(version), () => false)
    await expect.poll(() => engine.calls.length).toBe(1)
    engine.setReachability('pve1', 'down')
    expect((await open).closed).toBe(true)
    await expect.poll(async () => (await writeRaw(target, toWire(version))).error).toBe('ECONNREFUSED')
    engine.setReachability('pve1', 'up')
    await expect
      .poll(async () => parseAnswer((await writeRaw(target, toWire(version))).text).status)
      .toBe(200)
  })

  it.each(['hung', 'unreachable'] as const)(
    'accepts and says nothing while its node is %s',
    async (state) => {
      const engine = scriptedEngine()
      const { target } = await listening(engine)
      engine.setReachability('pve1', state)
      let isAnswered = false
      const answer = writeRaw(target, toWire(version)).finally(() => {
        isAnswered = true
      })
      // Whoever asks another port meanwhile, and gets an answer, has waited long enough for one here.
      const { target: other } = await listening(scriptedEngine())
      expect(parseAnswer((await writeRaw(other, toWire(version))).text).status).toBe(200)
      expect(isAnswered).toBe(false)
      expect(engine.calls).toEqual([])
      await fronts[0]?.close()
      expect((await answer).text).toBe('')
    },
  )

  it('lets a connection break where the engine says so', async () => {
    const failing = scriptedEngine({
      answer: () => {
        throw new SimConnectionError('ECONNRESET', true)
      },
    })
    const { target, front } = await listening(failing)
    expect(await writeRaw(target, toWire(version))).toMatchObject({ text: '', error: 'ECONNRESET' })
    await expect(front.handle('pve1', version)).rejects.toMatchObject({ code: 'ECONNRESET', sent: true })
  })

  it('leaves a connection open for as long as a call runs', async () => {
    let finish = () => {}
    const engine = scriptedEngine({
      answer: () => new Promise((resolve) => (finish = () => resolve({ status: 200, data: 1 }))),
    })
    const { target } = await listening(engine, { idleMs: 300 })
    const raw = writeRaw(target, toWire(version))
    await expect.poll(() => engine.calls.length).toBe(1)
    await new Promise((resolve) => setTimeout(resolve, 700)) // twice its patience with idle clients
    finish()
    expect(parseAnswer((await raw).text).body).toBe('{"data":1}')
  })

  it('sends the Connection header of pvedaemon along, as pveproxy does for calls of its own node', async () => {
    const { target } = await listening(scriptedEngine({ nodes: ['pve1'] }))
    const head = async (method: string, path: string) =>
      (await writeRaw(target, toWire({ method, path: `/api2/json${path}`, headers: {} }))).text
    const both = 'Connection: close\r\nConnection: Keep-Alive\r\n'
    expect(await head('POST', '/nodes/pve1/qemu/100/status/stop')).toContain(both)
    expect(await head('GET', '/nodes/pve1/tasks/UPID:x/status')).toContain(both)
    expect(await head('GET', '/nodes/pve1/qemu/100/config')).not.toContain(both)
    expect(await head('POST', '/nodes/pve2/qemu/100/status/stop')).not.toContain(both)
  })

  it.each([
    ['GET http://evil/ HTTP/2.0\r\n\r\n', 506, 'http protocol version 2.0 not supported'],
    ['nonsense\r\n\r\n', 400, 'bad request'],
    ['GET user@host/ HTTP/1.1\r\n\r\n', 400, 'invalid url'],
    ['GET /api2/json/version HTTP/1.1\r\nno colon here\r\n\r\n', 506, 'unable to parse request header'],
    ['\r\n\r\nGET /api2/json/version HTTP/1.1\r\nX: 1\r\n  folded\r\n\r\n', 200, 'OK'],
    [
      'PUT /api2/json/x HTTP/1.1\r\nTransfer-Encoding: deflate\r\n\r\n',
      501,
      "Unknown transfer encoding 'deflate'",
    ],
    ['GET /api2 HTTP/1.1\r\n\r\n', 501, 'no such uri'],
  ])('reads %j', async (bytes, status, reason) => {
    const { target } = await listening()
    const { text } = await writeRaw(target, bytes)
    expect(parseAnswer(text)).toMatchObject({ status, reason })
  })

  it('moves a change over plain HTTP with 308, and then ends the connection', async () => {
    const { target } = await listening()
    const post = toWire({ method: 'POST', path: '/api2/json/x', headers: { host: 'pve1:8006' } })
    const { text, closed } = await writeRaw(target, post, () => false, { plain: true })
    expect(parseAnswer(text)).toMatchObject({
      status: 308,
      headers: { Location: 'https://pve1:8006/api2/json/x' },
    })
    expect(closed).toBe(true)
  })

  it('tells strangers nothing, whatever else is wrong with their request', async () => {
    const denied = { status: 401, message: 'No ticket', emptyBody: true }
    const { front } = await listening(scriptedEngine({ precheck: () => denied, answer: () => denied }))
    const bodies = [
      { method: 'DELETE', path: '/api2/json/x', headers: {}, body: Buffer.from('purge=1') },
      {
        method: 'PUT',
        path: '/api2/json/x',
        headers: { 'content-type': 'text/plain' },
        body: Buffer.from('x'),
      },
      {
        method: 'PUT',
        path: '/api2/json/x',
        headers: { 'content-type': 'application/json' },
        body: Buffer.from('{'),
      },
      { method: 'PUT', path: '/api2/json/x', headers: {}, body: Buffer.alloc(600_000) },
      { method: 'GET', path: '/api2/xml/version', headers: {} },
      { method: 'PUT', path: '/api2/xml/x', headers: {}, body: Buffer.from('a=b') },
    ]
    for (const request of bodies)
      expect(await front.handle('pve1', request)).toMatchObject({ status: 401, body: '' })
  })

  it('gives up an upload that pvedaemon leaves waiting, and the file with it', async () => {
    let timeOut = () => {}
    const engine = scriptedEngine({ answer: () => new Promise(() => {}) })
    engine.clock.after = (ms, what) => {
      expect(ms).toBe(5000)
      timeOut = what
      return () => {}
    }
    const { front, target } = await listening(engine)
    const body = multipartBody(
      [
        { name: 'content', value: 'iso' },
        { name: 'filename', value: 'bytes', filename: 'x.iso' },
      ],
      'b',
    )
    const upload = {
      method: 'POST',
      path: '/api2/json/nodes/pve1/storage/local/upload',
      headers: { 'content-type': 'multipart/form-data; boundary=b' },
      body,
    }
    const inProcess = expect(front.handle('pve1', upload)).rejects.toMatchObject({
      code: 'ECONNRESET',
      sent: true,
    })
    await expect.poll(() => engine.calls[0]?.upload?.filename).toBe('x.iso')
    timeOut()
    await inProcess
    expect(engine.calls[0]?.upload).toBeUndefined()

    const raw = writeRaw(target, toWire(upload))
    await expect.poll(() => engine.calls[1]?.upload?.filename).toBe('x.iso')
    timeOut()
    expect(await raw).toMatchObject({ text: '', closed: true })
  })

  it('leaves it to the engine how a node looks that cannot be asked', async () => {
    const gone = new SimConnectionError('ECONNREFUSED', false)
    const engine = scriptedEngine({ answer: () => Promise.reject(gone) })
    engine.setReachability('pve1', 'down')
    const { front } = await listening(engine)
    const malformed = { method: 'DELETE', path: '/api2/json/x', headers: {}, body: Buffer.from('x') }
    await expect(front.handle('pve1', malformed)).rejects.toBe(gone)
  })

  it('packs long answers for who asked, and only on the wire', async () => {
    const { target, front } = await listening(
      scriptedEngine({ answer: () => ({ status: 200, data: 'x'.repeat(2000) }) }),
    )
    const request = { ...version, headers: { 'accept-encoding': 'gzip' } }
    expect((await writeRaw(target, toWire(request), isWhole)).text).toContain('Content-Encoding: gzip')
    expect((await front.handle('pve1', request)).body).toHaveLength(2011)
  })
})
