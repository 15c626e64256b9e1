import { describe, expect, it } from 'vitest'
import { FailureCode } from '../../lib/failure.ts'
import { undelivered } from '../../lib/letter.ts'
import { type Clues, placeholders, symptoms } from '../../lib/symptoms.ts'

/** What a redrive would only meet again: the wish itself must become another. */
const ONLY_ITS_PUBLISHER: ReadonlySet<FailureCode> = new Set([
  'GenerationReused',
  'SeedRefused',
  'UserDataLost',
])

/** Each clue in brackets of its own, as if it were known. */
const filled: Clues = {
  ...(Object.fromEntries(
    Object.entries(placeholders).map(([name, value]) =>
      typeof value === 'string' ? [name, `⟦${value.slice(1, -1)}⟧`] : [name, value],
    ),
  ) as Clues), // The same names.
  // With these another text stands there, and not only another name.
  release: placeholders.release,
  volume: placeholders.volume,
  trouble: { privilege: '⟦privilege⟧', path: '⟦path⟧' },
}

describe.each(FailureCode.options)('the hint of %s', (code) => {
  const hint = symptoms[code].hint(placeholders)

  const end = ONLY_ITS_PUBLISHER.has(code)
    ? 'has no line to run it again'
    : 'ends with the whole line that runs it again'
  it(end, () => {
    if (ONLY_ITS_PUBLISHER.has(code)) return expect(hint).not.toContain('redrive')
    expect(hint).toMatch(/`egress dlq redrive <(uid|message id)>`$/)
    expect(hint).not.toMatch(/(?<!egress dlq )\bredrive\b/)
    if (hint.includes('redrive <uid>'))
      expect(symptoms[code].hint({ ...placeholders, uid: 'shop-1' })).toMatch(/`egress dlq redrive shop-1`$/)
  })

  it('has a placeholder in angle brackets wherever a real one has a name', () => {
    const known = symptoms[code].hint(filled)
    expect(known.replaceAll('⟦', '<').replaceAll('⟧', '>')).toBe(hint)
  })

  it('names nothing by way of example', () => {
    expect(hint).not.toMatch(
      /\b(VM|Datastore|Sys|Pool|SDN)\.[A-Z]\w+|\bEgress[A-Z]\w+| \/(pool|vms|storage)\b/,
    )
  })
})

it('the hint of a message that SQS gave up ends with the line that runs it again', () => {
  expect(undelivered.hint).toMatch(/`egress dlq redrive <message id>`$/)
})
