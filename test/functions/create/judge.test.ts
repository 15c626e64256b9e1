import { describe, expect, it } from 'vitest'
import type { ProxyRequested } from '../../../functions/create/event.ts'
import { judge } from '../../../functions/create/judge.ts'
import type { BlankRow, Problem, Row } from '../../../lib/record.ts'
import { hashSpec } from '../../../lib/spec.ts'
import { aConfig } from '../../lib/a-config.ts'
import { aFullSpec, aRow, aSpec, NOW } from '../../lib/a-row.ts'

const config = aConfig()
const LATER = NOW + 1000
const request: ProxyRequested = {
  type: 'ProxyRequested',
  uid: 'a',
  generation: 2,
  name: 'alpha',
  spec: aSpec,
}
const specHash = hashSpec('alpha', aSpec)
const problem: Problem = {
  code: 'NoSpace',
  reason: 'full',
  firstAt: NOW,
  lastAt: NOW,
  times: 1,
  permanent: true,
}
const blank: BlankRow = { uid: 'a', turn: 0, deliveries: 0 }
const task = { upid: 'UPID:a', step: 'clone', at: NOW } as const
/** The row as it stands after a request of generation 2. */
const known = (changes: Parameters<typeof aRow>[0] = {}) => aRow({ generation: 2, specHash, ...changes })

const judged = (event: Partial<ProxyRequested>, row: Row | BlankRow, now = LATER) =>
  judge({ ...request, ...event }, row, now, config)
function going(event: Partial<ProxyRequested>, row: Row | BlankRow, now?: number): Row {
  const ruling = judged(event, row, now)
  if (ruling.kind !== 'next') throw new Error(`expected the row to go on, got ${JSON.stringify(ruling)}`)
  return ruling.row
}

describe('create: a request', () => {
  it('makes a row that is new, all defaults filled in', () => {
    expect(going({}, { ...blank, turn: 4, deliveries: 1, unsettledUntil: LATER + 5 })).toEqual({
      uid: 'a',
      turn: 4,
      deliveries: 1,
      unsettledUntil: LATER + 5,
      wish: 'present',
      generation: 2,
      name: 'alpha',
      spec: aFullSpec,
      specHash,
      phase: 'Pending',
      step: 'reserve',
      since: LATER,
      dueAt: LATER,
      lookedAgain: 0,
      probed: 0,
      timeline: [],
      createdAt: LATER,
      requestedAt: LATER,
    })
  })

  it('notes when the proxy is to expire', () => {
    expect(going({ spec: { ...aSpec, ttlSeconds: 600 } }, blank).expiresAt).toBe(LATER + 600_000)
    expect(going({}, known({ generation: 1, expiresAt: NOW }))).not.toHaveProperty('expiresAt')
  })

  it('keeps userData out of the row', () => {
    const ruling = judged({ spec: { ...aSpec, userData: '#cloud-config\n' } }, blank)
    expect(ruling).toMatchObject({
      kind: 'next',
      userData: '#cloud-config\n',
      row: { spec: { hasUserData: true } },
    })
    expect(JSON.stringify(ruling.kind === 'next' && ruling.row)).not.toContain('cloud-config')
  })

  it.each<[string, Row]>([
    ['on its way', known()],
    ['Ready', known({ phase: 'Ready', step: undefined })],
    ['Failed', known({ phase: 'Failed', step: undefined, failedStep: 'clone', problem })],
  ])('that was made before, of a proxy that is %s, is a duplicate', (_, row) => {
    expect(judged({}, row)).toEqual({ kind: 'drop', reason: 'duplicate' })
  })

  it.each<[string, Partial<ProxyRequested>]>([
    ['another spec', { spec: { ...aSpec, ttlSeconds: 600 } }],
    ['another name', { name: 'beta' }],
    ['userData', { spec: { ...aSpec, userData: 'x' } }],
  ])('of the same generation with %s is buried', (_, event) => {
    expect(judged(event, known())).toEqual({
      kind: 'bury',
      code: 'GenerationReused',
      reason: 'generation 2 of a was asked for before, with another name or spec',
      hint: 'to change a proxy, publish it with generation 3',
    })
  })

  it('of a lower generation is dropped, whatever it says', () => {
    expect(judged({ generation: 1, name: 'beta' }, known()).kind).toBe('drop')
  })

  it.each<[string, Row]>([
    ['that is being deleted', known({ wish: 'absent', phase: 'Deleting', step: 'stop' })],
    [
      'whose deletion failed',
      known({ wish: 'absent', phase: 'Failed', step: undefined, failedStep: 'stop', problem }),
    ],
    [
      'that is deleted',
      known({ wish: 'absent', phase: 'Deleted', step: undefined, purgeAt: LATER / 1000 + 1 }),
    ],
    [
      'whose deletion came first',
      aRow({ wish: 'absent', generation: 0, specHash: undefined, phase: 'Deleting', step: 'release' }),
    ],
  ])('is dropped for a proxy %s, of any generation', (_, row) => {
    for (const generation of [1, 2, 99]) expect(judged({ generation }, row).kind).toBe('drop')
  })

  it('begins anew where the tombstone has outlived its days', () => {
    const tombstone = known({
      wish: 'absent',
      phase: 'Deleted',
      step: undefined,
      purgeAt: LATER / 1000 - 1,
      turn: 30,
    })
    expect(going({ generation: 1 }, tombstone)).toMatchObject({
      wish: 'present',
      generation: 1,
      step: 'reserve',
      turn: 30,
    })
  })
})

describe('create: a request of a higher generation', () => {
  const next = { generation: 3, name: 'beta' }

  it.each<[string, Row, Row['step']]>([
    ['nothing yet', known({ step: 'reserve', place: undefined, seed: undefined, mac: undefined }), 'reserve'],
    ['a place', known(), 'stop'],
    ['a seed only', known({ place: undefined }), 'stop'],
    ['a working proxy', known({ phase: 'Ready', step: undefined, address: '10.0.0.1' }), 'stop'],
    ['a failed proxy', known({ phase: 'Failed', step: undefined, failedStep: 'start', problem }), 'stop'],
    ['a failure about to be reported', known({ step: 'report', failedStep: 'start', problem }), 'stop'],
    ['an earlier generation on its way out', known({ step: 'unseed' }), 'unseed'],
    ['an earlier generation about to be released', known({ step: 'release', place: undefined }), 'release'],
  ])('over %s goes on at the right step', (_, row, step) => {
    expect(going(next, row)).toMatchObject({
      step,
      phase: 'Provisioning',
      wish: 'present',
      generation: 3,
      name: 'beta',
      requestedAt: LATER,
    })
  })

  it('forgets what was of the old proxy, and keeps what must still be cleared away', () => {
    const row = known({
      phase: 'Failed',
      step: undefined,
      failedStep: 'clone',
      problem,
      task,
      address: '10.0.0.1',
      endpoint: 'http://10.0.0.1:3128',
      readyAt: NOW,
      lookedAgain: 2,
      probed: 32,
      cloned: true,
      seededOn: ['pve1'],
      unsettledUntil: NOW,
    })
    const after = going(next, row)
    for (const field of ['problem', 'failedStep', 'address', 'endpoint', 'readyAt'])
      expect(after).not.toHaveProperty(field)
    expect(after).toMatchObject({
      task,
      cloned: true,
      seededOn: ['pve1'],
      unsettledUntil: NOW,
      place: row.place,
      seed: row.seed,
      mac: row.mac,
      lookedAgain: 0,
      probed: 0,
      createdAt: row.createdAt,
    })
  })
})
