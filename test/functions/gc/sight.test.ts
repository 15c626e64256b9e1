import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { mayBeOurs, rulesOf } from '../../../functions/gc/rules.ts'
import { readSeed, sightOf } from '../../../functions/gc/sight.ts'
import { describe as describeMark } from '../../../lib/mark.ts'
import { seedFile } from '../../../lib/names.ts'
import type { VmConfig } from '../../../lib/proxmox/index.ts'
import { Uid } from '../../../lib/spec.ts'
import { aConfig } from '../../lib/a-config.ts'
import { aMark, aVm, rules } from './a-world.ts'

const config = (changes: Partial<Omit<VmConfig, 'tags'>> & { tags?: string[] } = {}): VmConfig => ({
  digest: 'd',
  protection: false,
  template: false,
  onboot: true,
  agent: true,
  cores: 1,
  memoryMiB: 512,
  disks: [],
  cdroms: [],
  raw: {},
  description: describeMark(aMark(), 'alpha'),
  ...changes,
  tags: new Set(changes.tags ?? []),
})
const marked = (changes: Parameters<typeof aMark>[0]) =>
  config({ description: describeMark(aMark(changes), 'alpha') })
const kindOf = (one: VmConfig, vmid = 5001) => sightOf(one, vmid, 'test').kind

describe('a configuration', () => {
  it('with our mark is ours, whatever its name and tags', () => {
    expect(sightOf(config(), 5001, 'test')).toEqual({ kind: 'ours', mark: aMark() })
    expect(sightOf(config({ lock: 'backup' }), 5001, 'test')).toMatchObject({ kind: 'ours', lock: 'backup' })
  })

  it.each([
    ['of another deployment', marked({ deployment: 'prod' })],
    ['that names another number: a copy made by hand', marked({ vmid: 5002 })],
    ['that names no uid of ours', marked({ uid: 'Not One' })],
    ['of a template made from our VM', config({ template: true })],
    [
      'of another deployment, tagged as ours',
      { ...marked({ deployment: 'prod' }), tags: new Set(['egress-test']) },
    ],
    ['that is none', config({ description: 'web server' })],
  ])('with a mark %s is foreign', (_, one) => {
    expect(kindOf(one)).toBe('foreign')
  })

  it.each([
    ['with our tag and no mark', config({ description: '', tags: ['egress-test'] })],
    [
      'with a seed of ours in its drive and no mark',
      {
        ...config({ cdroms: [{ slot: 'ide2', volume: 'local:iso/egress-test-a-g1.iso', cloudInit: false }] }),
        description: 'edited',
      },
    ],
  ])('%s is doubtful', (_, one) => {
    expect(kindOf(one)).toBe('doubtful')
  })

  it('with the tag of all deployments and no mark is foreign', () => {
    expect(kindOf(config({ description: '', tags: ['egress'] }))).toBe('foreign')
  })
})

describe('a VM is worth a look', () => {
  it.each([
    ['in the range of its cluster', aVm({ tags: [] })],
    ['with our tag, outside the range', aVm({ vmid: 77, tags: ['egress', 'egress-test'] })],
    ['with the common tag alone', aVm({ vmid: 77, tags: ['egress'] })],
    ['with the common tag, held', aVm({ vmid: 77, tags: ['egress', 'egress-hold'] })],
  ])('%s', (_, vm) => expect(mayBeOurs(rules, 'lab', vm)).toBe(true))

  it.each([
    ['outside the range without tags', aVm({ vmid: 77, tags: [] })],
    ['with another deployment’s tag', aVm({ vmid: 77, tags: ['egress', 'egress-prod'] })],
    ['held by a person, and nothing else', aVm({ vmid: 77, tags: ['egress-hold'] })],
    ['being a container', aVm({ type: 'lxc' })],
  ])('not %s', (_, vm) => expect(mayBeOurs(rules, 'lab', vm)).toBe(false))

  it('in the range of a zone of its cluster alone', () => {
    const zones = { z: { cluster: 'lab', nodes: ['pve1'], vmids: { from: 300, to: 400 } } }
    const zoned = rulesOf(aConfig({ zones }))
    expect(mayBeOurs(zoned, 'lab', aVm({ vmid: 300, tags: [] }))).toBe(true)
    expect(mayBeOurs(zoned, 'other', aVm({ vmid: 300, tags: [] }))).toBe(false)
  })
})

describe('the name of a seed', () => {
  const deployment = fc.stringMatching(/^[a-z][a-z0-9]{0,19}$/)
  const uid = fc.stringMatching(/^[a-z0-9][a-z0-9._-]{0,62}$/).filter((text) => Uid.safeParse(text).success)
  const generation = fc.integer({ min: 1, max: 999_999_999 })

  it('is read back as it was made', () => {
    fc.assert(
      fc.property(deployment, uid, generation, (ours, one, number) => {
        const volid = `local:iso/${seedFile(ours, one, number)}`
        expect(readSeed(volid, ours)).toEqual({ uid: one, generation: number })
      }),
    )
  })

  it('of one deployment is none of another', () => {
    fc.assert(
      fc.property(deployment, deployment, uid, generation, (ours, theirs, one, number) => {
        fc.pre(ours !== theirs)
        expect(readSeed(`local:iso/${seedFile(theirs, one, number)}`, ours)).toBeUndefined()
      }),
    )
  })

  it('is only one that we would have given', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), (before, after) => {
        const volid = `local:iso/${before}egress-test-${after}`
        const read = readSeed(volid, 'test')
        if (read) expect(volid).toBe(`local:iso/${seedFile('test', read.uid, read.generation)}`)
      }),
    )
  })
})
