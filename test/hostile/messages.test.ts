import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createEvents, ProxyRequested } from '../../functions/create/event.ts'
import { parse as parseCreate } from '../../functions/create/parse.ts'
import { parse as parseDelete } from '../../functions/delete/event.ts'
import { parse as parseGc } from '../../functions/gc/event.ts'
import { InvalidEvent } from '../../lib/events.ts'
import { readLetter } from '../../lib/letter.ts'
import { remedyFor } from '../../lib/redrive.ts'
import { aConfig } from '../lib/a-config.ts'
import { aRow } from '../lib/a-row.ts'
import { jsonOf, mangled, mutated, nested } from './mutations.ts'

const config = aConfig()
const request = {
  type: 'ProxyRequested',
  uid: 'shop-1',
  generation: 2,
  name: 'shop',
  spec: {
    zone: 'lab-1',
    image: 'debian-12',
    size: { cores: 2, memoryMiB: 512, diskGiB: 8 },
    proxy: {
      protocol: 'http',
      port: 3128,
      allow: ['10.0.0.0/8', 'fd00::/16'],
      auth: { username: 'ci', passwordParameter: 'shop/proxy' },
    },
    userData: '#cloud-config\nruncmd: [[echo, hello]]\n',
    ttlSeconds: 3600,
    labels: { team: 'search' },
  },
}
const deletion = { type: 'ProxyDeletionRequested', uid: 'shop-1' }
const orphan = { type: 'Orphan', cluster: 'lab', vmid: 5001, uid: 'shop-1' }
const turn = { type: 'Continue', uid: 'shop-1', turn: 4 }
const resume = { type: 'Resume', uid: 'orphan#lab#5001', turn: 4, to: 'stop' }

const enveloped = (event: { type: string }) => {
  const { type, ...detail } = event
  const eventBridge = { version: '0', id: 'x', 'detail-type': type, source: 'shop', detail }
  const sns = { Type: 'Notification', MessageId: 'x', Message: JSON.stringify(event) }
  return [event, eventBridge, sns, { ...sns, Message: JSON.stringify(eventBridge) }]
}
const events = [request, deletion, orphan, turn, resume].flatMap(enveloped)

/** A row's key as the tables take one: neither empty nor long, and never the key of something that is no row. */
const key = /^(?:[a-z0-9][a-z0-9._-]{0,62}|orphan#[a-z0-9-]{1,32}#\d{3,9})$/
/** One line, of a length that a log and a dead letter hold, and nothing that a terminal obeys. */
const plain = /^[^\p{Cc}\u2028\u2029]{1,8000}$/u

function reads(parse: (body: string) => unknown, body: string): void {
  try {
    expect(parse(body)).toMatchObject({ uid: expect.stringMatching(key) })
  } catch (error) {
    if (!(error instanceof InvalidEvent)) throw error
    expect(error.message).toMatch(plain)
    for (const { path, got, wanted } of error.complaints) expect([path, got, wanted]).not.toContain('')
  }
}
const readsEverywhere = (body: string) => {
  reads((text) => parseCreate(text, config), body)
  reads(parseDelete, body)
}

describe('a message on a queue, whatever it is,', () => {
  it('is an event or a refusal that names the fields: texts of any kind', () => {
    fc.assert(fc.property(fc.string({ unit: 'binary', maxLength: 200 }), readsEverywhere), { numRuns: 300 })
    fc.assert(fc.property(fc.json({ maxDepth: 5 }), readsEverywhere), { numRuns: 300 })
  })

  it('is an event or a refusal that names the fields: events in their envelopes, changed', () => {
    fc.assert(
      fc.property(
        fc.oneof(...events.map((event) => fc.oneof(mutated(event).map(jsonOf), mangled(jsonOf(event))))),
        readsEverywhere,
      ),
      { numRuns: 3000 },
    )
  })

  it.each([
    ['a type nested without end', `{"type":${nested(200_000)}}`],
    ['a field nested without end', `{"type":"Continue","uid":${nested(200_000)},"turn":1}`],
    ['an envelope nested without end', `{"detail-type":${nested(200_000)},"detail":{}}`],
    ['a message in a message in a message', jsonOf({ ...sns(3), Type: 'Notification' })],
    ['fields by the ten thousand', jsonOf({ ...request, ...many(20_000) })],
    ['a field with a name of a megabyte', `{"type":"Continue","${'n'.repeat(1e6)}":1}`],
    ['a field whose name is of control characters', '{"type":"Continue","\\u001b[2J\\n":1}'],
    [
      'a zone of a megabyte',
      jsonOf({ ...request, spec: { zone: 'z'.repeat(1e6), image: '\u001b]0;x\u0007' } }),
    ],
    ['a key that DynamoDB does not take', jsonOf({ ...turn, uid: 'x'.repeat(3000) })],
    ['an empty key', jsonOf({ ...turn, uid: '' })],
    ['the key of a userData', jsonOf({ ...turn, uid: 'userdata#shop-1' })],
    ['an orphan of no cluster', jsonOf({ ...orphan, cluster: '' })],
    [
      'a zone that every object has',
      jsonOf({ ...request, spec: { zone: 'constructor', image: 'toString' } }),
    ],
    [
      'userData nested without end',
      jsonOf({ ...request, spec: { ...request.spec, userData: `#cloud-config\na: ${'['.repeat(8000)}` } }),
    ],
    ...[300, 1000, 2000, 4000].flatMap((depth) =>
      ['[', '{a: ', '- ', '? ', '!!seq [', '&a ['].map((opening): [string, string] => [
        `userData of ${depth} times ${opening}`,
        jsonOf({
          ...request,
          spec: {
            ...request.spec,
            userData: `#cloud-config\na:\n ${opening.repeat(depth).slice(0, 16_000)}`,
          },
        }),
      ]),
    ),
    ...[300, 1000, 2000, 4000].map((depth): [string, string] => [
      `userData of ${depth} lists in lists`,
      jsonOf({ ...request, spec: { ...request.spec, userData: `#cloud-config\na: ${nested(depth)}` } }),
    ]),
    ['userData of aliases of aliases', jsonOf({ ...request, spec: { ...request.spec, userData: laughs() } })],
  ])('is read at once: %s', (_, body) => {
    readsEverywhere(body)
  })

  it('changes no object that others read', () => {
    reads((text) => parseCreate(text, config), `{"__proto__":{"type":"Continue"},"type":"ProxyRequested"}`)
    reads(
      (text) => parseCreate(text, config),
      `{"detail-type":"Continue","detail":{"__proto__":{"uid":"a"}}}`,
    )
    expect(Object.hasOwn(Object.prototype, 'uid')).toBe(false)
    expect(({} as Record<string, unknown>).type).toBeUndefined()
  })

  it('is never read as more than it says', () => {
    fc.assert(
      fc.property(mutated(request), (document) => {
        const parsed = ProxyRequested.safeParse(document)
        if (!parsed.success) return
        const { generation, ...said } = parsed.data
        expect(document).toMatchObject(JSON.parse(JSON.stringify(said)))
        expect(generation).toBe((document as { generation?: number }).generation ?? 1)
      }),
      { numRuns: 1000 },
    )
    expect(Object.keys(createEvents)).toEqual(['ProxyRequested', 'Continue', 'Resume'])
  })
})

describe('a request for a run of gc, whatever it is,', () => {
  it('is a request or a refusal', () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.jsonValue(), mutated({ dryRun: true }), mutated({ 'detail-type': 'Scheduled Event' })),
        (event) => {
          try {
            expect(parseGc(event)).toEqual({ dryRun: expect.any(Boolean) })
          } catch (error) {
            expect((error as Error).message).toMatch(/^not a request for gc: /)
            expect((error as Error).message).toMatch(plain)
          }
        },
      ),
      { numRuns: 500 },
    )
  })
})

describe('a dead letter, whoever wrote it,', () => {
  const attribute = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 20 }),
    fc.constantFrom(
      '',
      '1e999',
      '-0',
      'NaN',
      '0x10',
      '9'.repeat(400),
      '2026-01-01T00:00:00Z',
      '+275760-09-13',
    ),
    mangled('{"reason":"no space left","hint":"make room","vmid":5001}'),
    fc.constant(`{"reason":${nested(5_000)}}`),
    fc.constant('x'.repeat(5000)),
  )
  const attributes = fc.dictionary(
    fc.constantFrom('code', 'uid', 'turn', 'step', 'failedAt', 'problem', '__proto__', 'other'),
    attribute,
  )
  const body = fc.oneof(
    fc.string({ unit: 'binary' }),
    ...events.map((event) => mutated(event).map(jsonOf)),
    fc.constant(`{"uid":${nested(20_000)}}`),
  )

  it('is read, and names a row only by what can be one’s key', () => {
    fc.assert(
      fc.property(body, attributes, fc.nat().map(String), (Body, given, SentTimestamp) => {
        const letter = readLetter('create', {
          MessageId: 'm',
          ReceiptHandle: 'r',
          Body,
          Attributes: { SentTimestamp },
          MessageAttributes: Object.fromEntries(
            Object.entries(given).map(([name, StringValue]) => [name, { DataType: 'String', StringValue }]),
          ),
        })
        expect(letter.body).toBe(Body)
        if (letter.uid !== undefined) expect(letter.uid).toMatch(key)
        if (letter.turn !== undefined) expect(Number.isSafeInteger(letter.turn)).toBe(true)
        const remedy = remedyFor(letter, aRow({ phase: 'Failed', step: undefined, failedStep: 'clone' }), {
          now: 0,
          stallMs: 1,
        })
        expect(remedy.kind).toMatch(/^(?:resume|again|overtaken|pending)$/)
        // What shows its age to a person.
        expect(() => new Date(letter.diedAt).toISOString()).not.toThrow()
      }),
      { numRuns: 500 },
    )
  })
})

function sns(depth: number): object {
  const Message = depth === 0 ? jsonOf(request) : jsonOf({ ...sns(depth - 1), Type: 'Notification' })
  return { Message }
}

function many(count: number) {
  return Object.fromEntries(Array.from({ length: count }, (_, index) => [`field${index}`, index]))
}

/** A billion laughs: each line nine times the one before. */
function laughs(): string {
  const lines = Array.from({ length: 30 }, (_, index) =>
    index === 0
      ? 'a0: &a0 [lol]'
      : `a${index}: &a${index} [${Array(9)
          .fill(`*a${index - 1}`)
          .join(', ')}]`,
  )
  return `#cloud-config\n${lines.join('\n')}\n`
}
