import { connect, type PeerCertificate } from 'node:tls'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createFront, type Front } from '../../sim/http/front.ts'
import type { EngineCall, EngineResult } from '../../sim/types.ts'
import { isWhole, type RawTarget, readable, writeRaw } from '../sim/http/raw-client.ts'
import {
  comparableHeaders,
  engineSaid,
  parseAnswer,
  type Recorded,
  recordedAnswer,
  recording,
} from '../sim/http/recording.ts'
import { type ScriptedEngine, scriptedEngine } from '../sim/http/scripted-engine.ts'

const token = 'PVEAPIToken=runner@pve!ctl=22222222-2222-4222-8222-222222222222'
const api = '/api2/json'

/** The bytes each recorded event stands for. */
const requests: Record<string, string> = {
  'first response on a keep-alive connection': request('GET', '/version'),
  'Accept-Encoding: gzip on /version': request('GET', '/version', ['Accept-Encoding: gzip']),
  'Accept-Encoding: gzip on /access/permissions': request('GET', '/access/permissions', [
    'Accept-Encoding: gzip',
  ]),
  'Accept-Encoding: gzip on /cluster/resources': request('GET', '/cluster/resources', [
    'Accept-Encoding: gzip',
  ]),
  'request with Connection: close': request('GET', '/version', ['Connection: close']),
  'HTTP/1.0': request('GET', '/version').replace('HTTP/1.1', 'HTTP/1.0'),
  'a 9000 byte URL': request('GET', `/version?x=${'y'.repeat(9000)}`),
  'chunked JSON PUT': request(
    'PUT',
    '/nodes/pve1/qemu/9000/config',
    ['Transfer-Encoding: chunked', 'Content-Type: application/json'],
    '5\r\n{"a":\r\n0\r\n\r\n',
  ),
  'POST without Content-Length and without a body': request('POST', '/nodes/pve1/qemu/9000/status/stop'),
  'DELETE with a JSON body {}': request(
    'DELETE',
    '/nodes/pve1/qemu/9999',
    ['Content-Type: application/json', 'Content-Length: 2'],
    '{}',
  ),
  'DELETE with a form body purge=1': request(
    'DELETE',
    '/nodes/pve1/qemu/9999',
    ['Content-Type: application/x-www-form-urlencoded', 'Content-Length: 7'],
    'purge=1',
  ),
  'POST with content-type JSON and an empty body': request('POST', '/nodes/pve1/qemu/9000/status/stop', [
    'Content-Type: application/json',
    'Content-Length: 0',
  ]),
  'POST with content-type JSON and {}': request(
    'POST',
    '/nodes/pve1/qemu/9000/status/stop',
    ['Content-Type: application/json', 'Content-Length: 2'],
    '{}',
  ),
  '401 raw': request('GET', '/version'),
  'a long error text in the status line': request(
    'DELETE',
    `/nodes/pve1/storage/local/content/iso/${'z'.repeat(300)}`,
  ),
  'non-ASCII in an error text (status line)': request(
    'PUT',
    '/nodes/pve1/qemu/9000/config',
    ['Content-Length: 18'],
    'ide2=local:iso/%C3',
  ),
}

describe.each([8, 9] as const)('19-http-connection, PVE %d', (version) => {
  const events = recording(version, '19-http-connection')
  let said: (call: EngineCall) => EngineResult
  let engine: ScriptedEngine
  let front: Front
  let target: RawTarget

  beforeAll(async () => {
    engine = scriptedEngine({ version, answer: (call) => said(call) })
    front = createFront(engine)
    const { endpoints, ca } = await front.listen()
    target = { url: endpoints[0]?.url ?? '', ca }
  })
  afterAll(() => front.close())

  const withHead = events.filter(({ event }) => event && event in requests)

  it('knows every event of the recording', () => {
    const others = events
      .map(({ event, label }) => event ?? label ?? '')
      .filter((name) => !(name in requests))
    expect(others.sort()).toEqual(
      [
        '20 bad tokens at once and 3 good ones',
        '73 header lines',
        'ALPN offered h2,http/1.1',
        'a 9000 byte header',
        'certificate',
        'connection on which nothing is sent, closed after',
        'idle keep-alive connection closed by the server after',
        'requests served on one connection until it said close',
        'three pipelined requests',
        'with 60 idle connections open',
      ].sort(),
    )
  })

  it.each(withHead)('sends the head it sent then: $event', async (recorded) => {
    const wanted = headOf(rawOf(recorded))
    said = () => behind(recorded)
    const { text } = await writeRaw(target, requests[recorded.event ?? ''] ?? '')
    expect(headOf(readableHead(text))).toEqual(wanted)
    // Where the whole body was kept, it is the same too.
    const body = rawOf(recorded).split('\r\n\r\n')[1] ?? ''
    if (!/Content-Type/.test(rawOf(recorded)))
      expect(parseAnswer(readable(text)).body.startsWith(body)).toBe(true)
  })

  it('answers a hundred requests on a connection and says close with the last', async () => {
    said = () => ({ status: 200, data: null })
    const { text, closed } = await writeRaw(target, request('GET', '/version').repeat(120), () => false)
    const heads = text.split('HTTP/1.1 ').slice(1)
    expect(heads).toHaveLength(Number(events.find(({ event }) => event?.startsWith('requests served'))?.n))
    expect(heads.map((head) => /Connection: (.*)/.exec(head)?.[1])).toEqual([
      ...Array(99).fill('Keep-Alive'),
      'close',
    ])
    expect(closed).toBe(true)
  })

  it('answers pipelined requests in their order', async () => {
    said = (call) => ({ status: 200, data: call.path })
    const three = ['/version', '/nodes', '/pools'].map((path) => request('GET', path)).join('')
    const { text } = await writeRaw(
      target,
      three,
      (soFar) =>
        soFar.split('HTTP/1.1 200 OK').length === 4 && isWhole(soFar.slice(soFar.lastIndexOf('HTTP/1.1'))),
    )
    expect([...text.matchAll(/\{"data":"(.*?)"\}/g)].map(([, path]) => path)).toEqual([
      '/version',
      '/nodes',
      '/pools',
    ])
  })

  it('lets known callers pass while strangers wait', async () => {
    const waiting: (() => void)[] = []
    engine.clock.sleep = () => new Promise((resolve) => waiting.push(resolve))
    said = ({ authorization }) =>
      authorization === token
        ? { status: 200, data: 'known' }
        : { status: 401, message: 'Authentication failed!', emptyBody: true }
    const strangers = Array.from({ length: 20 }, () =>
      writeRaw(target, request('GET', '/version').replace(token, 'wrong')),
    )
    const known = await Promise.all(
      Array.from({ length: 3 }, () => writeRaw(target, request('GET', '/version'))),
    )
    expect(known.map(({ text }) => parseAnswer(text).body)).toEqual(Array(3).fill('{"data":"known"}'))
    await expect.poll(() => waiting.length).toBe(20)
    for (const resume of waiting) resume()
    expect((await Promise.all(strangers)).map(({ text }) => parseAnswer(text).status)).toEqual(
      Array(20).fill(401),
    )
    engine.clock.sleep = async () => {}
  })

  it('serves with 60 idle connections open', async () => {
    const recorded = events.find(({ label }) => label === 'with 60 idle connections open')
    if (!recorded) throw new Error('not recorded')
    said = () => engineSaid(recorded)
    const crowded = createFront(engine)
    const { endpoints, ca } = await crowded.listen()
    const crowd = { url: endpoints[0]?.url ?? '', ca }
    const idle = Array.from({ length: 60 }, () => writeRaw(crowd, '', () => false))
    const answer = parseAnswer((await writeRaw(crowd, request('GET', '/version'))).text)
    const wanted = recordedAnswer(recorded)
    expect([answer.status, answer.reason, JSON.parse(answer.body)]).toEqual([
      wanted.status,
      wanted.reason,
      JSON.parse(wanted.body),
    ])
    expect(comparableHeaders(answer, recorded)).toEqual(comparableHeaders(wanted, recorded))
    await crowded.close()
    expect((await Promise.all(idle)).map(({ text }) => text)).toEqual(Array(60).fill(''))
  })

  it('shows a certificate of the same names', async () => {
    const recorded = String(events.find(({ event }) => event === 'certificate')?.pem)
    const { port } = new URL(target.url)
    const certificate = await new Promise<PeerCertificate>((resolve, reject) => {
      const socket = connect({ host: '127.0.0.1', port: Number(port), ca: target.ca }, () => {
        resolve(socket.getPeerCertificate())
        socket.destroy()
      })
      socket.on('error', reject)
    })
    const { subject, issuer } = certificate
    expect(recorded).toContain(`${subject.OU}, O = ${subject.O}, CN = ${subject.CN}`)
    expect(recorded).toContain(`issuer=CN = ${issuer.CN}, OU = <uuid>, O = ${issuer.O}`)
    for (const name of certificate.subjectaltname?.split(', ') ?? []) expect(recorded).toContain(name)
  })

  it('speaks HTTP/1 only, whatever a client offers', async () => {
    const { alpn } = await writeRaw(target, request('GET', '/version'), isWhole, { alpn: ['h2', 'http/1.1'] })
    expect(alpn).toBe(false)
  })
})

describe('19-http-connection, the patience of pveproxy', () => {
  it('closes a connection that is idle after five seconds, and one with too large a head without a word', async () => {
    const front = createFront(scriptedEngine())
    const { endpoints, ca } = await front.listen()
    const target = { url: endpoints[0]?.url ?? '', ca }
    const patience = (result: { ms: number; closed: boolean }) => {
      expect(result.closed).toBe(true)
      expect(result.ms).toBeGreaterThan(4900)
      expect(result.ms).toBeLessThan(9000)
    }
    const never = () => false
    const many = Array.from({ length: 70 }, (_, i) => `X-${i}: y`)
    const [idle, silent, lines, large] = await Promise.all([
      writeRaw(target, request('GET', '/version'), never),
      writeRaw(target, '', never),
      writeRaw(target, request('GET', '/version', many), never),
      writeRaw(target, request('GET', '/version', [`X-Large: ${'y'.repeat(9000)}`]), never),
    ])
    for (const result of [idle, silent, lines, large]) patience(result)
    expect(idle.text).toContain('200 OK')
    expect([silent.text, lines.text, large.text]).toEqual(['', '', ''])
    await front.close()
  })
})

function request(method: string, path: string, headers: string[] = [], body = ''): string {
  return `${[`${method} ${api}${path} HTTP/1.1`, 'Host: pve1:8006', `Authorization: ${token}`, ...headers].join('\r\n')}\r\n\r\n${body}`
}

/** The answer as text; events about compression kept the head only, one kept it the way Python prints bytes. */
function rawOf({ raw, headers }: Recorded): string {
  const text = String(raw ?? `${headers}\r\n\r\n`)
  return text.startsWith("b'") ? text.slice(2, -1).replaceAll('\\r\\n', '\r\n') : text
}

function readableHead(text: string): string {
  return `${text.split('\r\n\r\n')[0]}\r\n\r\n`
}

/** Status line and header lines in order, without what is a fact of the day or of the world behind. */
function headOf(raw: string): string[] {
  const lines = (raw.split('\r\n\r\n')[0] ?? '').split('\r\n')
  const isZipped = lines.includes('Content-Encoding: gzip')
  return lines.map((line) =>
    line
      .replace(/^(Date|Expires): .*/, '$1: …')
      .replace(/^Content-Length: .*/, (length) => (isZipped ? 'Content-Length: …' : length)),
  )
}

/** What stood behind pveproxy: an answer of the length that was recorded, when its text was not kept whole. */
function behind(recorded: Recorded): EngineResult {
  const { status, reason, headers } = parseAnswer(rawOf(recorded))
  if (status === 401) return { status, message: reason, emptyBody: true }
  if (status === 200) {
    const length =
      recorded.event?.includes('/version') || headers['Content-Encoding'] === undefined
        ? Number(headers['Content-Length'])
        : 3000
    return { status, data: 'x'.repeat(length - '{"data":""}'.length) }
  }
  const empty = Buffer.byteLength(JSON.stringify({ data: null, message: `${reason}\n`, errors: { x: '' } }))
  const missing = Number(headers['Content-Length']) - empty
  if (missing < 0) return { status, message: `${reason}\n` }
  return { status, message: `${reason}\n`, errors: { x: 'y'.repeat(missing) } }
}
