import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { hashNumber, macOf, seedFile, seedPrefix, tagsOf, vmName } from '../../lib/names.ts'
import { ProxyName, Uid } from '../../lib/spec.ts'

const uids = fc.stringMatching(/^[a-z0-9][a-z0-9._-]{0,62}$/)
const names = fc.stringMatching(/^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?$/)
const deployments = fc.stringMatching(/^[a-z][a-z0-9]{0,19}$/)
const generations = fc.integer({ min: 1, max: 999_999_999 })

describe('names', () => {
  it('makes a DNS label of any name and uid', () => {
    fc.assert(
      fc.property(uids, names, (uid, name) => {
        expect(Uid.safeParse(uid).success && ProxyName.safeParse(name).success).toBe(true)
        expect(vmName({ uid, name })).toMatch(/^egress-[a-z0-9]([a-z0-9-]{0,48})-[0-9a-f]{6}$/)
        expect(vmName({ uid, name }).length).toBeLessThanOrEqual(63)
        expect(vmName({ uid, name })).not.toMatch(/--[0-9a-f]{6}$/)
      }),
    )
  })

  it('tells two proxies of one name apart', () => {
    expect(vmName({ uid: 'a', name: 'Crawler' })).toMatch(/^egress-crawler-/)
    expect(vmName({ uid: 'a', name: 'crawler' })).not.toBe(vmName({ uid: 'b', name: 'crawler' }))
  })

  it('gives a proxy one locally administered unicast MAC for ever, in lower case', () => {
    fc.assert(
      fc.property(deployments, uids, (deployment, uid) => {
        expect(macOf(deployment, uid)).toMatch(/^02(:[0-9a-f]{2}){5}$/)
        expect(macOf(deployment, uid)).toBe(macOf(deployment, uid))
      }),
    )
    expect(macOf('prod', 'a')).not.toBe(macOf('test', 'a'))
    // An upgrade that computes another one would change the address of every proxy.
    expect(macOf('prod', 'a')).toBe('02:62:df:d2:12:9d')
  })

  it('gives no two seeds one file name', () => {
    const seeds = fc.tuple(deployments, uids, generations)
    fc.assert(
      fc.property(seeds, seeds, (one, other) => {
        fc.pre(JSON.stringify(one) !== JSON.stringify(other))
        expect(seedFile(...one)).not.toBe(seedFile(...other))
      }),
    )
    expect(seedFile('prod', 'a', 11)).not.toBe(seedFile('prod', 'a-g1', 1))
  })

  // Report: bpg/terraform-provider-proxmox#641
  it('names a seed as Proxmox would keep it: nothing that it rewrites, nothing hidden', () => {
    fc.assert(
      fc.property(deployments, uids, generations, (deployment, uid, generation) => {
        const file = seedFile(deployment, uid, generation)
        expect(file).toMatch(/^egress-[a-zA-Z0-9_.-]+\.iso$/)
        expect(file.startsWith(seedPrefix(deployment, uid))).toBe(true)
        expect(file.length).toBeLessThan(255)
      }),
    )
  })

  it('tags by deployment', () => {
    expect(tagsOf('prod')).toEqual(new Set(['egress', 'egress-prod']))
  })

  it('spreads hashes over 32 bits', () => {
    const numbers = Array.from({ length: 2000 }, (_, index) => hashNumber(`uid-${index}`))
    const quarters = [0, 1, 2, 3].map((quarter) => numbers.filter((one) => one >>> 30 === quarter).length)
    expect(Math.min(...quarters)).toBeGreaterThan(400)
    expect(numbers.every((one) => Number.isInteger(one) && one >= 0 && one < 2 ** 32)).toBe(true)
  })
})
