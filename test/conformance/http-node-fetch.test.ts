import { Agent, FormData, fetch, type RequestInit, type Response } from 'undici'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createFront, type Front } from '../../sim/http/front.ts'
import type { EngineCall, EngineResult } from '../../sim/types.ts'
import { type Recorded, recording } from '../sim/http/recording.ts'
import { type ScriptedEngine, scriptedEngine } from '../sim/http/scripted-engine.ts'

const upload = '/nodes/pve1/storage/local/upload'
const stop = '/nodes/pve1/qemu/9000/status/stop'
const config = '/nodes/pve1/qemu/9000/config'
const json = { 'content-type': 'application/json' }
const image = Buffer.alloc(374784, 'x')

/** The calls the recording names, made with the fetch of today. */
const calls: Record<string, { path: string; init: () => RequestInit }> = {
  'FormData: content, filename': {
    path: upload,
    init: () => post(form(['content', 'iso'], ['filename', blob(), 'x.iso'])),
  },
  'FormData: filename, content': {
    path: upload,
    init: () => post(form(['filename', blob(), 'x.iso'], ['content', 'iso'])),
  },
  'FormData with File and a type': {
    path: upload,
    init: () => post(form(['content', 'iso'], ['filename', blob('application/x-iso9660-image'), 'x.iso'])),
  },
  'FormData name with quote and unicode': {
    path: upload,
    init: () => post(form(['content', 'iso'], ['filename', blob(), 'é"x.iso'])),
  },
  'POST without a body': { path: stop, init: () => ({ method: 'POST' }) },
  'POST with an empty string body': { path: stop, init: () => post('') },
  'POST URLSearchParams empty': { path: stop, init: () => post(new URLSearchParams()) },
  'POST JSON {}': { path: stop, init: () => ({ ...post('{}'), headers: json }) },
  'POST JSON content-type, no body': { path: stop, init: () => ({ method: 'POST', headers: json }) },
  'PUT URLSearchParams': {
    path: config,
    init: () => ({ method: 'PUT', body: new URLSearchParams({ description: 'a=b;c' }) }),
  },
  'GET config': { path: config, init: () => ({}) },
  'PUT JSON': { path: config, init: () => ({ method: 'PUT', body: '{"description":"x"}', headers: json }) },
  'PUT JSON delete': {
    path: config,
    init: () => ({ method: 'PUT', body: '{"delete":"description"}', headers: json }),
  },
  'DELETE with a content-type header and no body': {
    path: '/nodes/pve1/qemu/9999',
    init: () => ({ method: 'DELETE', headers: json }),
  },
  DELETE: { path: '/nodes/pve1/qemu/9999', init: () => ({ method: 'DELETE' }) },
  'DELETE with body': { path: '/nodes/pve1/qemu/9999', init: () => ({ method: 'DELETE', body: 'purge=1' }) },
  'gzip answer': { path: '/access/permissions', init: () => ({}) },
  'bad token': { path: '/version', init: () => ({}) },
}

describe('28-node-fetch', () => {
  const events = recording(8, '28-node-fetch')
  let said: (call: EngineCall) => EngineResult
  let engine: ScriptedEngine
  let front: Front
  let base: string
  let dispatcher: Agent

  beforeAll(async () => {
    engine = scriptedEngine({ answer: (call) => said(call) })
    front = createFront(engine)
    const { endpoints, ca } = await front.listen()
    base = `${endpoints[0]?.url}/api2/json`
    dispatcher = new Agent({ connect: { ca } })
  })
  beforeEach(() => {
    engine.calls.length = 0
    said = () => ({ status: 200, data: null })
  })
  afterAll(async () => {
    await dispatcher.close()
    await front.close()
  })

  const ask = (path: string, init: RequestInit = {}): Promise<Response> =>
    fetch(base + path, { ...init, dispatcher })

  it.each(Object.keys(calls))('answers alike: %s', async (label) => {
    const recorded = events.find(({ event }) => event === label)
    const call = calls[label]
    if (!recorded || !call) throw new Error(`not recorded: ${label}`)
    said = () => behind(recorded)
    const response = await ask(call.path, call.init())
    expect([response.status, response.statusText]).toEqual([recorded.status, recorded.statusText])
    expect(response.headers.get('content-encoding')).toBe(recorded.enc)
    const body = await response.text()
    if (!recorded.enc && label !== 'GET config') expect(sorted(body)).toEqual(sorted(String(recorded.body)))
  })

  it('takes what FormData sends: the fields before the file, the file last', async () => {
    await ask(upload, calls['FormData name with quote and unicode']?.init())
    expect(engine.calls[0]?.params).toEqual({ content: 'iso', filename: 'é%22x.iso' })
    expect(Buffer.compare(engine.calls[0]?.upload?.bytes ?? new Uint8Array(), image)).toBe(0)
    await ask(upload, calls['FormData: filename, content']?.init())
    expect(engine.calls[1]?.params).toEqual({ filename: 'x.iso' })
  })

  it('refuses a streamed body', async () => {
    const body = new Blob([image]).stream()
    const response = ask(upload, {
      method: 'POST',
      body,
      duplex: 'half',
      headers: { 'content-type': 'multipart/form-data; boundary=x' },
    })
    // The client may still be sending when the answer comes: then all it sees is a broken pipe, as recorded.
    const seen = await response.then(
      ({ status }) => status,
      (error: Error) => error.message,
    )
    expect([501, 'fetch failed']).toContain(seen)
    expect(engine.calls).toEqual([])
  })

  it('serves more requests than a connection lasts for, one after another and all at once', async () => {
    for (let i = 0; i < 350; i += 1) expect((await ask('/version')).status).toBe(200)
    const many = await Promise.all(Array.from({ length: 200 }, () => ask('/version')))
    expect(many.filter(({ status }) => status === 200)).toHaveLength(200)
  })
})

function post(body: RequestInit['body']): RequestInit {
  return { method: 'POST', ...(body !== undefined && { body }) }
}

function form(...fields: [string, string | Blob, string?][]): FormData {
  const data = new FormData()
  for (const [name, value, filename] of fields) {
    if (typeof value === 'string') data.set(name, value)
    else data.set(name, value, filename)
  }
  return data
}

function blob(type = ''): Blob {
  return new Blob([image], { type })
}

function behind(recorded: Recorded): EngineResult {
  const { status, statusText, body } = recorded
  if (status === 401) return { status, message: String(statusText), emptyBody: true }
  if (String(body).length >= 200)
    return { status: Number(status), data: { long: 'x'.repeat(recorded.enc ? 3000 : 500) } } // the recording kept its start
  return { status: Number(status), ...JSON.parse(String(body)) }
}

function sorted(body: string): unknown {
  return body.startsWith('{') ? JSON.parse(body) : body
}
