import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import * as z from 'zod'
import { complaintLine, parseWith, Range, wanted } from '../../lib/wanted.ts'

function complaintsOf(schema: z.ZodType, document: unknown) {
  const parsed = parseWith(schema, document)
  if ('value' in parsed) throw new Error('expected complaints')
  return parsed.complaints
}
const one = (schema: z.ZodType, document: unknown) => complaintsOf(schema, document).map(complaintLine)

describe('complaints', () => {
  it('come all at once, in the order of the document', () => {
    const schema = z.strictObject({ a: z.string(), b: z.int(), c: z.literal('x') })
    expect(one(schema, { a: 1, b: 'two', c: 'y', d: true })).toEqual([
      'a: got 1, wanted a string',
      'b: got "two", wanted a number',
      'c: got "y", wanted x',
      'd: got a field of this name, wanted no such field (is it misspelt?)',
    ])
  })

  it('name a missing field', () => {
    expect(one(z.object({ a: z.object({ b: z.string() }) }), { a: {} })).toEqual([
      'a.b: got nothing, wanted a string',
    ])
  })

  it('name the document itself', () => {
    expect(one(z.object({}), 'text')).toEqual(['(document): got "text", wanted an object'])
    expect(one(z.object({}), null)).toEqual(['(document): got null, wanted an object'])
  })

  it('name every misspelt field by its whole path', () => {
    const schema = z.object({ a: z.strictObject({ b: z.string().optional() }) })
    expect(complaintsOf(schema, { a: { B: 'x', c: 'y' } }).map(({ path }) => path)).toEqual(['a.B', 'a.c'])
  })

  it('name the place in a list', () => {
    const [complaint] = complaintsOf(z.object({ allow: z.array(Range) }), {
      allow: ['10.0.0.0/8', '10.0.0.1'],
    })
    expect(complaint).toEqual({
      path: 'allow.1',
      got: '"10.0.0.1"',
      wanted: 'an address range such as 10.0.0.0/8 or 2001:db8::/32',
    })
  })

  it('say which keys a map may have', () => {
    const schema = z.object({ labels: z.record(z.string().regex(/^[a-z]+$/), z.string()) })
    expect(one(schema, { labels: { 'no good': 'x' } })).toEqual([
      'labels.no good: got a key of this name, wanted keys of letters, digits . _ / -',
    ])
  })

  it('cut a long text short, and show neither objects nor lists', () => {
    const schema = z.object({ a: z.int(), b: z.int(), c: z.int() })
    const got = complaintsOf(schema, { a: 'x'.repeat(5000), b: { deep: 'text' }, c: [1, 2] }).map(
      (c) => c.got,
    )
    expect(got[0]).toHaveLength(78)
    expect(got.slice(1)).toEqual(['an object', 'a list of 2'])
  })

  it.each(['userData', 'auth', 'password', 'passwordParameter', 'token', 'secret', 'Secret'])(
    'never show what stands under %s',
    (field) => {
      fc.assert(
        fc.property(fc.string({ minLength: 8 }), (canary) => {
          const shallow = complaintsOf(z.object({ [field]: z.int() }), { [field]: `#${canary}` })
          const deep = complaintsOf(z.object({ [field]: z.object({ user: z.int() }) }), {
            [field]: { user: `#${canary}` },
          })
          expect([shallow, deep].flat().map(({ got }) => got)).toEqual([
            'a string (not shown)',
            'a string (not shown)',
          ])
        }),
      )
    },
  )

  it('say what the schema says was wanted', () => {
    expect(one(z.object({ n: z.int().min(1, wanted('one or more')) }), { n: 0 })).toEqual([
      'n: got 0, wanted one or more',
    ])
  })

  it('are none for a document that fits', () => {
    expect(parseWith(z.object({ a: z.int().default(1) }), {})).toEqual({ value: { a: 1 } })
  })
})

describe('range', () => {
  it.each(['10.0.0.0/8', '0.0.0.0/0', '192.168.1.7/32', '2001:db8::/32', '::/0'])('takes %s', (text) => {
    expect(Range.safeParse(text).success).toBe(true)
  })

  it.each(['', '10.0.0.0', '10.0.0.0/33', '10.0.0/8', '2001:db8::/129', 'any', '10.0.0.0/8 ', ' ::/0', 8])(
    'refuses %j',
    (text) => {
      expect(Range.safeParse(text).success).toBe(false)
    },
  )
})
