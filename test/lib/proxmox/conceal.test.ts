import fc from 'fast-check'
import { expect, it } from 'vitest'
import { concealer } from '../../../lib/proxmox/conceal.ts'

const secret = '0f5a9c1e-77b2-4d38-9a64-c2e81b93d7f0'
const hide = concealer([secret])

it('leaves no twelve letters in a row of a secret, wherever a part of it stands in a text', () => {
  const part = fc
    .tuple(fc.nat(secret.length - 12), fc.integer({ min: 12, max: secret.length }))
    .map(([from, length]) => secret.slice(from, from + length))
  const around = fc.string({ maxLength: 40 })
  fc.assert(
    fc.property(around, part, around, (before, cut, after) => {
      const shown = hide(`${before}${cut}${after}`)
      for (let at = 0; at + 12 <= secret.length; at++) expect(shown).not.toContain(secret.slice(at, at + 12))
      expect(shown).toContain('[secret]')
    }),
    { numRuns: 2000 },
  )
})

it('leaves a text as it is that holds less of it', () => {
  const text = `${secret.slice(0, 11)} and ${secret.slice(-11)}: eleven letters of it are no part`
  expect(hide(text)).toBe(text)
})
