import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import * as z from 'zod'
import { type Catalogue, Continue, InvalidEvent, OutcomeEvent, parseEvent, Resume } from '../../lib/events.ts'

const Wish = z.strictObject({ type: z.literal('Wish'), uid: z.string(), count: z.int().optional() })
const catalogue: Catalogue<z.infer<typeof Wish> | Continue | Resume> = { Wish, Continue, Resume }
const wish = { type: 'Wish', uid: 'a' }

const read = (document: unknown) => parseEvent(JSON.stringify(document), catalogue)

function refusal(body: string): string {
  try {
    parseEvent(body, catalogue)
  } catch (error) {
    if (error instanceof InvalidEvent) return error.message
    throw error
  }
  throw new Error('expected a refusal')
}

describe('events: the three ways in', () => {
  it('reads a bare event', () => {
    expect(read(wish)).toEqual(wish)
  })

  it('reads an EventBridge envelope', () => {
    const envelope = { version: '0', id: 'x', source: 'shop', 'detail-type': 'Wish', detail: { uid: 'a' } }
    expect(read(envelope)).toEqual(wish)
    expect(read({ ...envelope, detail: wish })).toEqual(wish)
  })

  it('reads an SNS envelope around either', () => {
    const around = (message: unknown) => ({
      Type: 'Notification',
      MessageId: 'x',
      TopicArn: 'arn:aws:sns:x',
      Message: JSON.stringify(message),
    })
    expect(read(around(wish))).toEqual(wish)
    expect(read(around({ 'detail-type': 'Wish', detail: { uid: 'a' } }))).toEqual(wish)
  })

  it('opens an SNS envelope once', () => {
    const inner = { Type: 'Notification', Message: JSON.stringify(wish) }
    const outer = { Type: 'Notification', Message: JSON.stringify(inner) }
    expect(refusal(JSON.stringify(outer))).toBe('type: got nothing, wanted Wish or Continue or Resume')
  })

  it('does not believe an envelope that disagrees with what is in it', () => {
    const smuggled = { 'detail-type': 'Wish', detail: { type: 'Continue', uid: 'a', turn: 1 } }
    expect(refusal(JSON.stringify(smuggled))).toContain('type: got "Continue"')
  })

  it('reads a turn as a whole number, and nothing else', () => {
    expect(read({ type: 'Continue', uid: 'a', turn: 0 })).toEqual({ type: 'Continue', uid: 'a', turn: 0 })
    for (const turn of [-1, 1.5, '1', null]) {
      expect(refusal(JSON.stringify({ type: 'Continue', uid: 'a', turn }))).toMatch(/^turn: got /)
    }
  })

  it('takes a Ready row up only at the steps that check may name', () => {
    expect(read({ type: 'Resume', uid: 'a', turn: 1, to: 'start' })).toMatchObject({ to: 'start' })
    expect(refusal('{"type":"Resume","uid":"a","turn":1,"to":"clone"}')).toBe(
      'to: got "clone", wanted start or stop',
    )
  })
})

describe('events: refusals', () => {
  it.each([
    ['', '(document): got text that is not JSON, wanted a JSON object'],
    ['{', '(document): got text that is not JSON, wanted a JSON object'],
    ['"Wish"', '(document): got string, wanted a JSON object'],
    ['null', '(document): got object, wanted a JSON object'],
    ['[]', '(document): got a list, wanted a JSON object'],
    ['{}', 'type: got nothing, wanted Wish or Continue or Resume'],
    ['{"type":"wish"}', 'type: got "wish", wanted Wish or Continue or Resume'],
    ['{"type":["Wish"]}', 'type: got a list of 1, wanted Wish or Continue or Resume'],
    ['{"type":"constructor"}', 'type: got "constructor", wanted Wish or Continue or Resume'],
    ['{"type":"__proto__"}', 'type: got "__proto__", wanted Wish or Continue or Resume'],
    ['{"Type":"Notification","Message":"no"}', '(document): got text that is not JSON, wanted a JSON object'],
    ['{"type":"Wish"}', 'uid: got nothing, wanted a string'],
    [
      '{"type":"Wish","uid":1,"Uid":"a"}',
      'uid: got 1, wanted a string; Uid: got a field of this name, wanted no such field (is it misspelt?)',
    ],
  ])('reads %s and says what is wrong', (body, message) => {
    expect(refusal(body)).toBe(message)
  })

  it('throws InvalidEvent or reads an event, and nothing else, whatever comes', () => {
    const hostile = fc.oneof(
      fc.string(),
      fc.json(),
      fc.json().map((message) => JSON.stringify({ Type: 'Notification', Message: message })),
      fc
        .tuple(fc.constantFrom('Wish', 'Continue', '__proto__', 'toString'), fc.jsonValue())
        .map(([type, detail]) => JSON.stringify({ 'detail-type': type, detail })),
      fc
        .tuple(
          fc.constantFrom('Wish', 'Continue', 'Resume'),
          fc.dictionary(fc.constantFrom('uid', 'turn', 'to', '__proto__', 'x'), fc.jsonValue()),
        )
        .map(([type, fields]) => JSON.stringify({ ...fields, type })),
    )
    fc.assert(
      fc.property(hostile, (body) => {
        try {
          expect(Object.keys(catalogue)).toContain(parseEvent(body, catalogue).type)
        } catch (error) {
          expect(error).toBeInstanceOf(InvalidEvent)
        }
      }),
      { numRuns: 500 },
    )
  })

  it('is not led down a deep document', () => {
    const deep = `${'{"detail-type":"Wish","detail":'.repeat(5000)}{}${'}'.repeat(5000)}`
    expect(refusal(deep)).toContain('uid: got nothing')
    expect(refusal('['.repeat(200_000))).toBe('(document): got text that is not JSON, wanted a JSON object')
  })
})

describe('outcome events', () => {
  it('are strict, each by its type', () => {
    const deleted = {
      type: 'ProxyDeleted',
      eventId: 'a:1:9',
      uid: 'a',
      generation: 1,
      deletedAt: '2026-01-01T00:00:00.000Z',
    }
    expect(OutcomeEvent.parse(deleted)).toEqual(deleted)
    expect(OutcomeEvent.safeParse({ ...deleted, extra: 1 }).success).toBe(false)
    expect(OutcomeEvent.safeParse({ ...deleted, deletedAt: '1 January' }).success).toBe(false)
    expect(OutcomeEvent.safeParse({ ...deleted, type: 'ProxyGone' }).success).toBe(false)
  })
})
