import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { hashSpec, type Spec, Spec as SpecSchema } from '../../lib/spec.ts'

const full: Spec = {
  zone: 'lab-1',
  image: 'debian-12',
  size: { cores: 1, memoryMiB: 512, diskGiB: 4 },
  proxy: { protocol: 'http', port: 3128, allow: ['10.0.0.0/8', '192.168.0.0/16'] },
  labels: { team: 'data', a: '1' },
}

/** The same document with its keys, at every depth, in another order. */
function shuffled(value: unknown, seed: number): unknown {
  if (Array.isArray(value)) return value.map((inner) => shuffled(inner, seed))
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).map(([key, inner]) => [key, shuffled(inner, seed)] as const)
  return Object.fromEntries(
    entries.sort(([a], [b]) => ((a.length * seed) % 7) - ((b.length * seed) % 7) || (a < b ? 1 : -1)),
  )
}

describe('spec hash', () => {
  it('does not depend on the order of keys', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 1000 }), (seed) => {
        expect(hashSpec('a', SpecSchema.parse(shuffled(full, seed)))).toBe(hashSpec('a', full))
      }),
    )
  })

  it('is the same for a field that is left out and one that is undefined', () => {
    expect(hashSpec('a', { ...full, userData: undefined })).toBe(hashSpec('a', full))
  })

  it.each<[string, Spec]>([
    ['another zone', { ...full, zone: 'lab-2' }],
    ['another port', { ...full, proxy: { ...full.proxy, port: 3129 } }],
    [
      'the ranges in another order',
      { ...full, proxy: { ...full.proxy, allow: ['192.168.0.0/16', '10.0.0.0/8'] } },
    ],
    ['userData', { ...full, userData: '#cloud-config\n' }],
    ['empty userData', { ...full, userData: '' }],
    ['a label moved between key and value', { ...full, labels: { team: '1', a: 'data' } }],
    ['a default said aloud', { ...full, ttlSeconds: 60 }],
  ])('tells %s', (_, other) => {
    expect(hashSpec('a', other)).not.toBe(hashSpec('a', full))
  })

  it('tells another name', () => {
    expect(hashSpec('a', full)).not.toBe(hashSpec('b', full))
  })

  it('stays what it was in rows written long ago', () => {
    expect(hashSpec('a', full)).toBe('729b5215b0fc301bd081f5f2efbeb35dc485625cdff0726f358ee685e51c6414')
  })
})
