import { describe, expect, it } from 'vitest'
import { differences } from './compare.ts'

const ok = (body: unknown) => ({ status: 200, reason: 'OK', body })
const ours = (body: unknown, more: object = {}) => ({
  status: 200,
  reason: 'OK',
  body: JSON.stringify(body),
  ...more,
})
const none = new Map<string, string>()

describe('the comparison of answers', () => {
  it('sees another status, reason or message', () => {
    expect(differences(ok({ data: null }), ours({ data: null }, { status: 500 }), none)).toHaveLength(1)
    expect(differences(ok({ data: null }), ours({ data: null }, { reason: 'Fine' }), none)).toHaveLength(1)
    const recorded = { status: 500, reason: 'x', body: { data: null, message: 'x\n' } }
    expect(
      differences(recorded, ours({ data: null, message: 'y\n' }, { status: 500, reason: 'x' }), none),
    ).toHaveLength(1)
  })

  it('sees a key too many, a key missing, and another value', () => {
    expect(differences(ok({ data: { a: 1 } }), ours({ data: { a: 1, b: 2 } }), none)).toEqual([
      'body.data.b is too much (2)',
    ])
    expect(differences(ok({ data: { a: 1, b: 2 } }), ours({ data: { a: 1 } }), none)).toEqual([
      'body.data.b is missing (recorded 2)',
    ])
    expect(differences(ok({ data: { a: '1' } }), ours({ data: { a: 1 } }), none)).toHaveLength(1)
  })

  it('takes figures of the moment by their type alone', () => {
    expect(differences(ok({ data: { uptime: 5 } }), ours({ data: { uptime: 900 } }), none)).toEqual([])
    expect(differences(ok({ data: { uptime: 5 } }), ours({ data: { uptime: '5' } }), none)).toHaveLength(1)
  })

  it('matches elements of lists by what they are called, and misses none', () => {
    const [a, b] = [
      { vmid: 1, id: 'qemu/1' },
      { vmid: 2, id: 'qemu/2' },
    ]
    expect(differences(ok({ data: [a, b] }), ours({ data: [b, a] }), none)).toEqual([])
    expect(differences(ok({ data: [a, b] }), ours({ data: [a] }), none)).toHaveLength(1)
    expect(differences(ok({ data: [a] }), ours({ data: [{ ...a, vmid: 3 }] }), none)).toHaveLength(1)
  })

  it('compares a log line by line but for the progress of qemu-img', () => {
    const log = (...lines: string[]) => ({
      data: lines.map((t, index) => ({ n: index + 1, t })),
      total: lines.length,
    })
    const progress = 'transferred 4.0 MiB of 96.0 MiB (4.17%)'
    expect(differences(ok(log('begin', progress, 'TASK OK')), ours(log('begin', 'TASK OK')), none)).toEqual(
      [],
    )
    expect(differences(ok(log('begin', 'TASK OK')), ours(log('begin', 'TASK ERROR: no')), none)).toHaveLength(
      1,
    )
  })

  it('takes a dropped connection for nothing but a dropped connection', () => {
    const dropped = { status: null, reason: null, body: null }
    expect(differences(dropped, { connection: 'ECONNRESET' }, none)).toEqual([])
    expect(differences(dropped, ours({ data: null }), none)).toHaveLength(1)
    expect(differences(ok({ data: null }), { connection: 'ECONNRESET' }, none)).toHaveLength(1)
  })
})
