import { Duplex } from 'node:stream'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { makeSeed } from '../../lib/nocloud/index.ts'
import { readDisc } from '../../sim/guest/iso9660.ts'
import { serveConnection } from '../../sim/http/connection.ts'
import { decodeForm } from '../../sim/http/form.ts'
import { decodeJson, UnreadableBody } from '../../sim/http/json.ts'
import { createUploadReader } from '../../sim/http/multipart.ts'
import { createSim, defaultWorld } from '../../sim/index.ts'
import { aSeed } from '../lib/nocloud/a-seed.ts'
import { scriptedEngine } from '../sim/http/scripted-engine.ts'
import { jsonOf, mangled, mutated, nested } from './mutations.ts'

/** Says these bytes to pveproxy's stand-in, and gives what it answered until it hung up. */
async function said(bytes: Uint8Array | string): Promise<{ answer: string; asked: number }> {
  const engine = scriptedEngine()
  let answer = ''
  const stream = new Duplex({
    read() {},
    write(chunk: Buffer, _encoding, done) {
      answer += chunk.toString('latin1')
      done()
    },
  })
  const served = serveConnection(stream, { engine, node: 'pve1', idleMs: 30, isTls: true })
  stream.push(bytes)
  stream.push(null)
  await served
  return { answer, asked: engine.calls.length }
}

const get = [
  'GET /api2/json/nodes HTTP/1.1',
  'Host: pve1:8006',
  'Authorization: PVEAPIToken=a@pve!b=c',
  'Connection: close',
  '',
  '',
].join('\r\n')
const form = 'name=a&description=b%20c'
const post = (type: string, body: string) =>
  [
    'POST /api2/json/nodes/pve1/qemu/100/config HTTP/1.1',
    'Host: pve1:8006',
    `Content-Type: ${type}`,
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Connection: close',
    '',
    body,
  ].join('\r\n')
const part = (field: string, value: string) =>
  `--b\r\nContent-Disposition: form-data; name="${field}"\r\n\r\n${value}\r\n`
const upload = [
  part('content', 'iso'),
  part('checksum-algorithm', 'sha256'),
  part('checksum', 'ab'),
  '--b\r\nContent-Disposition: form-data; name="filename"; filename="a.iso"\r\nContent-Type: application/octet-stream\r\n\r\n',
  'the bytes of a disc',
  '\r\n--b--\r\n',
].join('')

describe('the simulated HTTP server, whatever is said to it,', () => {
  it('answers or hangs up', async () => {
    const bytes = fc.oneof(
      fc.uint8Array({ maxLength: 200 }),
      mangled(get).map((text) => Buffer.from(text)),
      mangled(post('application/x-www-form-urlencoded', form)).map((text) => Buffer.from(text)),
      mangled(post('application/json', '{"name":"a","tags":["b",null,{}]}')).map((text) => Buffer.from(text)),
      mutated({ name: 'a', tags: ['b'] }).map((body) => Buffer.from(post('application/json', jsonOf(body)))),
    )
    await fc.assert(
      fc.asyncProperty(bytes, async (text) => {
        const { answer } = await said(text)
        expect(answer).toMatch(/^(?:HTTP\/1\.[01] \d+ |$)/)
      }),
      { numRuns: 250 },
    )
  })

  it.each([
    ['a line that never ends', `GET /${'x'.repeat(5e6)}`],
    ['headers by the thousand', `GET / HTTP/1.1\r\n${'x: y\r\n'.repeat(50_000)}\r\n`],
    ['a header that never ends', `GET / HTTP/1.1\r\nx: ${'y'.repeat(5e6)}`],
    ['requests by the thousand', get.replace('Connection: close\r\n', '').repeat(1000)],
    ['JSON nested without end', post('application/json', nested(100_000))],
    ['JSON nested in a list', post('application/json', `{"a":[${nested(50_000)}]}`)],
    ['a list of what is no text', post('application/json', '{"a":[{"toString":1,"valueOf":2}]}')],
    ['almost JSON', post('application/json', `{"a":"${'x'.repeat(300_000)}`)],
    ['names that every object has', `GET / HTTP/1.1\r\nconstructor: x\r\n__proto__: y\r\n\r\n`],
  ])('is done with it at once: %s', async (_, bytes) => {
    const { answer, asked } = await said(bytes)
    expect(answer).toMatch(/^(?:HTTP\/1\.[01] \d+ |$)/)
    // As many as pveproxy lets one connection ask.
    expect(asked).toBeLessThanOrEqual(100)
  })

  it('reads a name that every object has like any other', () => {
    expect(Object.entries(decodeForm('constructor=a&__proto__=b&__proto__=c'))).toEqual([
      ['constructor', 'a'],
      ['__proto__', ['b', 'c']],
    ])
    expect(decodeJson('{"a":[[1],{"toString":1},null,2]}', 9)).toEqual({ a: ['ARRAY', 'HASH', '', '2'] })
  })

  it('reads a body of JSON or refuses it in words', () => {
    fc.assert(
      fc.property(fc.oneof(fc.json(), fc.string(), mangled('{"a":["b",1,null]}')), (text) => {
        try {
          expect(decodeJson(text, 9)).toBeTypeOf('object')
        } catch (error) {
          expect(error).toBeInstanceOf(UnreadableBody)
        }
      }),
      { numRuns: 500 },
    )
  })
})

describe('the simulated reader of uploads, whatever comes,', () => {
  const read = (text: string, chunk: number) => {
    const bytes = Buffer.from(text, 'latin1')
    const reader = createUploadReader({ boundary: 'b', sizeBytes: bytes.length, params: {}, version: 9 })
    for (let at = 0; at < bytes.length; at += chunk) {
      const state = reader(bytes.subarray(at, at + chunk))
      if (state.kind !== 'more') return state
    }
    return undefined
  }

  it('is complete or has failed at the end', () => {
    const text = fc.oneof(mangled(upload), fc.string({ unit: 'binary', minLength: 1 }))
    fc.assert(
      fc.property(text, fc.integer({ min: 1, max: 200 }), (body, chunk) => {
        expect(read(body, chunk)?.kind).toMatch(/^(?:complete|failed)$/)
      }),
      { numRuns: 500 },
    )
    expect(read(upload, 1000)).toMatchObject({ kind: 'complete', filename: 'a.iso' })
  })

  it.each([
    ['names without end', '; name="'],
    ['lines without end', '\r\n'],
    ['boundaries without end', '--b\r\n'],
    ['hyphens without end', '-'],
    ['headers without end', 'Content-Disposition: form-data; name="content"\r\n'],
  ])('is done with it at once: %s', (_, piece) => {
    const head = '--b\r\nContent-Disposition: form-data'
    expect(read(head + piece.repeat(1e6 / piece.length), 16 * 1024)?.kind).toBe('failed')
  })
})

describe('the simulated reader of discs, whatever comes,', () => {
  const disc = Buffer.from(makeSeed(aSeed()))

  it('finds files or none, and no more than there is', () => {
    const change = fc.array(fc.tuple(fc.nat({ max: disc.length - 1 }), fc.nat({ max: 255 })), {
      maxLength: 40,
    })
    const descriptor = fc.array(
      fc.tuple(fc.integer({ min: 16 * 2048, max: 26 * 2048 }), fc.constantFrom(0, 1, 2, 0x7f, 0xff)),
      { minLength: 1, maxLength: 60 },
    )
    fc.assert(
      fc.property(fc.oneof(change, descriptor), fc.nat({ max: disc.length }), (changes, cut) => {
        const image = Buffer.from(disc.subarray(0, cut % 3 === 0 ? cut : disc.length))
        for (const [at, byte] of changes) if (at < image.length) image[at] = byte
        const found = readDisc(image)
        const bytes = [...(found?.files.values() ?? [])].reduce((sum, file) => sum + file.length, 0)
        expect(bytes).toBeLessThanOrEqual(64 * disc.length)
      }),
      { numRuns: 1000 },
    )
  })
})

describe('the simulated cluster, whatever is asked of it,', () => {
  it('answers in Proxmox’s manner', async () => {
    const world = defaultWorld({ version: 9, nodes: 1 })
    const sim = createSim({ world })
    const paths = [
      '/nodes/pve1/qemu/9000/config',
      '/nodes/pve1/qemu/9000/clone',
      '/nodes/pve1/qemu/9000/status/start',
      '/nodes/pve1/tasks/UPID:pve1:0000046A:0003E55F:6B0E270F:qmclone:9000:egress@pve!ctl:/status',
      '/nodes/pve1/storage/local/content/local:iso%2Fa.iso',
      '/cluster/resources?type=vm',
      '/cluster/nextid?vmid=5001',
      '/access/permissions?path=/vms',
    ]
    const request = fc.record({
      method: fc.constantFrom('GET', 'POST', 'PUT', 'DELETE'),
      path: fc.oneof(...paths.map((path) => fc.oneof(fc.constant(path), mangled(path)))),
      body: fc.oneof(
        fc.constant(''),
        mangled(
          'newid=5001&name=a&description=b&full=1&net0=virtio%3DAA,bridge%3Dvmbr0&ide2=local:iso/a,media=cdrom',
        ),
      ),
    })
    try {
      await fc.assert(
        fc.asyncProperty(request, async ({ method, path, body }) => {
          const bytes = Buffer.from(body)
          const answer = await sim.request('pve1', {
            method,
            path: `/api2/json${path}`,
            headers: {
              authorization: `PVEAPIToken=${world.tokens.egress}`,
              'content-length': String(bytes.length),
            },
            body: bytes,
          })
          expect(answer.status).toBeGreaterThanOrEqual(200)
          expect(answer.reason).not.toMatch(/TypeError|RangeError|undefined|is not a function/)
        }),
        { numRuns: 300 },
      )
    } finally {
      await sim.close()
    }
  })
})
