import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readDisc } from '../../../sim/guest/iso9660.ts'
import { fixture } from './fixture.ts'

const seedNames = ['meta-data', 'network-config', 'user-data', 'vendor-data']

describe('sim: guest: disc', () => {
  it.each(['rock-joliet', 'rock', 'joliet', 'xorriso', 'plain-relaxed'])(
    'reads an image made by others: %s',
    (name) => {
      const disc = readDisc(fixture(name))
      expect(disc?.label.toLowerCase()).toBe('cidata')
      expect([...(disc?.files.keys() ?? [])].sort()).toEqual(seedNames)
      expect(Buffer.from(disc?.files.get('meta-data') ?? []).toString()).toBe(
        'instance-id: i-1\nlocal-hostname: proxy-1\n',
      )
    },
  )

  it('shows the short names of an image that has no others, as a guest would see them', () => {
    expect([...(readDisc(fixture('plain'))?.files.keys() ?? [])].sort()).toEqual([
      'meta_dat',
      'network_',
      'user_dat',
      'vendor_d',
    ])
  })

  it('reads directories of several sectors and names that continue elsewhere', () => {
    const files = readDisc(fixture('many'))?.files ?? new Map<string, Uint8Array>()
    const long = Array.from({ length: 60 }, (_, i) => `${'n'.repeat(150)}-${i + 1}`)
    expect([...files.keys()].sort()).toEqual([...seedNames, ...long].sort())
    expect(Buffer.from(files.get(`${'n'.repeat(150)}-37`) ?? []).toString()).toBe('37\n')
  })

  it.each([
    ['nothing', Buffer.alloc(0)],
    ['zeros', Buffer.alloc(60_000)],
    ['a cut image', fixture('rock').subarray(0, 17 * 2048)],
  ])('takes %s for no image', (_, bytes) => {
    expect(readDisc(bytes)).toBeUndefined()
  })

  it('neither throws nor hangs on an image that was tampered with', () => {
    const images = ['rock-joliet', 'many'].map(fixture)
    const change = fc.tuple(
      fc.integer({ min: 0, max: images[0]?.length ?? 0 }),
      fc.integer({ min: 0, max: 255 }),
    )
    // Descriptors and directories lie at the front; changes elsewhere would only alter texts.
    const near = fc.tuple(fc.integer({ min: 16 * 2048, max: 40 * 2048 }), fc.integer({ min: 0, max: 255 }))
    fc.assert(
      fc.property(
        fc.constantFrom(...images),
        fc.array(fc.oneof(near, change), { maxLength: 200 }),
        (image, changes) => {
          const hostile = Buffer.from(image)
          for (const [at, value] of changes) hostile[at] = value
          readDisc(hostile)
        },
      ),
      { numRuns: 300 },
    )
  })

  it('gives up on a continuation that leads back to itself', () => {
    const image = fixture('many')
    const at = image.indexOf('CE\x1c\x01', 0, 'latin1')
    expect(at).toBeGreaterThan(0)
    // Lets the continuation point at its own record.
    image.writeUInt32LE(Math.floor(at / 2048), at + 4)
    image.writeUInt32LE(at % 2048, at + 12)
    image.writeUInt32LE(28, at + 20)
    expect(readDisc(image)?.label).toBe('cidata')
  })
})
