import { describe, expect, it } from 'vitest'
import { decodeForm } from '../../../sim/http/form.ts'
import { readContentType, readTarget } from '../../../sim/http/head.ts'
import { decodeJson } from '../../../sim/http/json.ts'
import { createUploadReader, type UploadState } from '../../../sim/http/multipart.ts'
import { multipartBody } from './recording.ts'

describe('sim: decoding', () => {
  it.each([
    ['a=1&b=2;c=3', { a: '1', b: '2', c: '3' }],
    ['a=b=c', { a: 'b' }],
    ['a=b%3Dc%3B', { a: 'b=c;' }],
    ['a=x+y%2Bz', { a: 'x y+z' }],
    ['a=d%C3%A9j%C3%A0', { a: 'déjà' }],
    ['a=1&a=2&a=3', { a: ['1', '2', '3'] }],
    ['a=&b', { a: '', b: '' }],
    ['a=%zz', { a: '%zz' }],
    ['', {}],
  ])('reads the form %j', (text, params) => {
    expect(decodeForm(text)).toEqual(params)
  })

  it.each([
    ['{"a":1,"b":true,"c":null,"d":["x",2],"e":{"f":1}}', { a: 1, b: true, c: '', d: ['x', '2'], e: 'HASH' }],
    ['{}', {}],
  ])('reads the JSON %j', (text, params) => {
    expect(decodeJson(text, 8)).toEqual(params)
  })

  it.each([
    ['', 0, '(end of string)'],
    ['{"description":', 15, '(end of string)'],
    ['{"a":x}', 5, 'x}'],
  ])('says where the JSON %j breaks off', (text, offset, before) => {
    const words = `at character offset ${offset} (before "${before}") at /usr/share/perl5/PVE/APIServer/AnyEvent.pm line 934.\n`
    expect(() => decodeJson(text, 9)).toThrow(words)
  })

  it('reads media type and boundary, quotes and all', () => {
    expect(readContentType('multipart/form-data; charset=x; boundary="ab"')).toEqual({
      type: 'multipart/form-data',
      boundary: '"ab"',
    })
    expect(readContentType('application/json; charset=utf-8')).toEqual({ type: 'application/json' })
    expect(readContentType(undefined)).toEqual({})
  })

  it('reads the path of a target, absolute or not', () => {
    expect(readTarget('https://pve1:8006/api2/json/a%20b?x=1?y')).toEqual({
      rawPath: '/api2/json/a%20b',
      path: '/api2/json/a b',
      query: 'x=1?y',
    })
  })
})

describe('sim: upload reader', () => {
  const boundary = 'b(o)und'
  const image = Buffer.from('image\r\nwith\r\n\r\nlines')
  const body = (parts: Parameters<typeof multipartBody>[0]) => multipartBody(parts, boundary)
  const file = {
    name: 'filename',
    value: image.toString(),
    filename: 'x.iso',
    ctype: 'application/octet-stream',
  }
  const content = { name: 'content', value: 'iso' }

  function read(chunks: Uint8Array[], params = {}): UploadState {
    const sizeBytes = chunks.reduce((sum, chunk) => sum + chunk.length, 0)
    const reader = createUploadReader({ boundary, sizeBytes, params, version: 8 })
    let state: UploadState = { kind: 'more' }
    for (const chunk of chunks) if (state.kind === 'more') state = reader(chunk)
    return state
  }

  it('takes the file whole', () => {
    expect(read([body([content, file])])).toEqual({
      kind: 'complete',
      params: { content: 'iso', filename: 'x.iso' },
      filename: 'x.iso',
      bytes: image,
    })
  })

  it('takes parameters of the query, and fields over them', () => {
    expect(read([body([file])], { content: 'iso' })).toMatchObject({
      params: { content: 'iso', filename: 'x.iso' },
    })
    expect(read([body([content, file])], { content: 'vztmpl' })).toMatchObject({ params: { content: 'iso' } })
  })

  it('takes the same file wherever a read ends, except inside the head of its part', () => {
    const whole = body([content, file])
    const headStart = whole.indexOf('filename="x.iso"') + 'filename="x.iso"'.length
    const headEnd = whole.indexOf('\r\n\r\n', headStart) + 4
    const spoilt = new Set<number>()
    for (let cut = 1; cut < whole.length; cut += 1) {
      const state = read([whole.subarray(0, cut), whole.subarray(cut)])
      if (state.kind !== 'complete' || !image.equals(state.bytes)) spoilt.add(cut)
    }
    expect([...spoilt].every((cut) => cut >= headStart && cut < headEnd)).toBe(true)
    expect(spoilt.size).toBe(headEnd - headStart)
  })

  it('puts the rest of a head that came too late before the file', () => {
    const whole = body([content, file])
    const cut = whole.indexOf('filename="x.iso"') + 'filename="x.iso"'.length
    const state = read([whole.subarray(0, cut), whole.subarray(cut)])
    expect(state).toMatchObject({ kind: 'complete' })
    const rest = '\r\nContent-Type: application/octet-stream\r\n\r\n'
    expect(rest).toHaveLength(44)
    expect(state.kind === 'complete' && Buffer.from(state.bytes).toString()).toBe(rest + image)
  })

  it.each([
    ['ends without its closing boundary', body([content, file]).subarray(0, -9)],
    ['has no file', body([content])],
    ['has a file without a name', body([content, { ...file, filename: '' }])],
  ])('fails when the body %s', (_, bytes) => {
    expect(read([bytes])).toEqual({
      kind: 'failed',
      message: 'upload failed at /usr/share/perl5/PVE/APIServer/AnyEvent.pm line 1317.\n',
    })
  })
})
