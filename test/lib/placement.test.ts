import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { byFewest, byHash } from '../../lib/placement.ts'

const candidates = (...nodes: string[]) => nodes.map((node) => ({ node }))
const three = candidates('pve1', 'pve2', 'pve3')
const uids = Array.from({ length: 600 }, (_, index) => `uid-${index}`)

describe('placement by hash', () => {
  // Report: adminsyspro/proxcenter-ui#968
  it('does not depend on the order of the candidates', () => {
    fc.assert(
      fc.property(fc.string(), fc.shuffledSubarray(three, { minLength: 3 }), (uid, shuffled) => {
        expect(byHash(uid, shuffled)).toEqual(byHash(uid, three))
      }),
    )
  })

  it('spreads proxies over the nodes', () => {
    const counts = three.map(({ node }) => uids.filter((uid) => byHash(uid, three)?.node === node).length)
    expect(Math.min(...counts)).toBeGreaterThan(150)
  })

  it('moves only the proxies of a node that is lost', () => {
    const left = candidates('pve1', 'pve3')
    for (const uid of uids) {
      const before = byHash(uid, three)?.node
      if (before !== 'pve2') expect(byHash(uid, left)?.node).toBe(before)
    }
  })

  it('has no answer where there is no candidate', () => {
    expect(byHash('a', [])).toBeUndefined()
  })
})

describe('placement by fewest', () => {
  it('takes the emptiest node, a node nobody counted being empty', () => {
    const counts = new Map([
      ['pve1', 2],
      ['pve2', 1],
    ])
    expect(byFewest('a', candidates('pve1', 'pve2'), counts)?.node).toBe('pve2')
    expect(byFewest('a', three, counts)?.node).toBe('pve3')
  })

  it('decides among equals by hash', () => {
    for (const uid of uids.slice(0, 50)) expect(byFewest(uid, three, new Map())).toEqual(byHash(uid, three))
  })

  it('has no answer where there is no candidate', () => {
    expect(byFewest('a', [], new Map())).toBeUndefined()
  })
})
