import { describe, expect, it } from 'vitest'
import { documents, makeSeed } from '../../../lib/nocloud/index.ts'
import { aSeed } from './a-seed.ts'

describe('the image', () => {
  it('is the same bytes for the same seed', () => {
    expect(Buffer.compare(makeSeed(aSeed()), makeSeed(aSeed()))).toBe(0)
  })

  it('is another for another seed', () => {
    expect(Buffer.compare(makeSeed(aSeed()), makeSeed(aSeed({ hostname: 'other' })))).not.toBe(0)
  })

  it('is about 60 KiB, in whole sectors', () => {
    expect(makeSeed(aSeed()).length).toBe(31 * 2048)
  })

  it('grows with user-data by no more than its sectors', () => {
    expect(makeSeed(aSeed({ userData: '#!/bin/sh\n' + 'x'.repeat(2048) })).length).toBe(32 * 2048)
  })

  it('is labelled cidata and holds every document whole', () => {
    const image = Buffer.from(makeSeed(aSeed()))
    expect(image.toString('latin1', 16 * 2048 + 40, 16 * 2048 + 72).trimEnd()).toBe('cidata')
    for (const text of Object.values(documents(aSeed()))) expect(image.includes(text)).toBe(true)
  })
})
