import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  type Bearing,
  describe as describeVm,
  type Mark,
  markLine,
  markOf,
  ownership,
  readMark,
} from '../../lib/mark.ts'
import { vmName } from '../../lib/names.ts'
import { aPlace, aRow } from './a-row.ts'

const row = aRow()
const mark: Mark = {
  deployment: 'test',
  uid: 'a',
  generation: 1,
  vmid: 5001,
  specHash: 'hash',
  seed: 'local:iso/egress-test-a-g1.iso',
}
const name = vmName({ uid: 'a', name: 'alpha' })
const seedDrive = { slot: 'ide2', volume: row.seed ?? '' }
const vm = (changes: Partial<Bearing> = {}): Bearing => ({
  name,
  description: describeVm(mark, 'alpha'),
  template: false,
  cdroms: [seedDrive],
  ...changes,
})
const owner = (bearing: Bearing, of = row) => ownership(bearing, of, 'test').kind

describe('mark', () => {
  it('is read back from the description it was written into', () => {
    expect(readMark(describeVm(mark, 'alpha'))).toEqual(mark)
    expect(describeVm(mark, 'alpha').split('\n')[0]).toBe(
      'Forward proxy alpha, made by egress-proxies (deployment test). Do not edit the next line.',
    )
  })

  it('is read among notes that people wrote around it', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), fc.constantFrom('\n', '\r\n', '\n\n'), (before, after, gap) => {
        // Text that is a mark itself is another matter.
        fc.pre(!before.includes('"egress"'))
        expect(readMark([before, markLine(mark), after].join(gap))).toEqual(mark)
      }),
    )
  })

  it('is read though a later version wrote more into it', () => {
    expect(readMark(JSON.stringify({ egress: { ...mark, more: 1 }, other: 2 }))).toEqual(mark)
  })

  it('is not found in whatever else a description may say, and looking never throws', () => {
    const text = fc.oneof(
      fc.string(),
      fc.json(),
      fc.string().map((inner) => `{"egress":${inner}}`),
      fc.jsonValue().map((inner) => JSON.stringify({ egress: inner })),
      fc.constantFrom(
        '"egress"',
        '{"egress":{"deployment":"test"}}',
        '[{"egress":1}]',
        `${'['.repeat(9000)}"egress"`,
      ),
    )
    fc.assert(
      fc.property(fc.array(text), (lines) => {
        expect(readMark(lines.join('\n'))).toBeUndefined()
      }),
    )
    expect(readMark(undefined)).toBeUndefined()
  })

  it('is what the row’s VM is to bear, an orphan’s by the uid of its own mark', () => {
    expect(markOf(row, 'test')).toEqual(mark)
    expect(markOf(aRow({ orphanOf: 'b' }), 'test')).toEqual({ ...mark, uid: 'b' })
    for (const field of ['place', 'seed', 'specHash'])
      expect(markOf(aRow({ [field]: undefined }), 'test')).toBeUndefined()
  })
})

describe('ownership', () => {
  it.each<[string, Bearing, string]>([
    ['our VM', vm(), 'ours'],
    ['our VM, renamed and its drive emptied', vm({ name: 'mine', cdroms: [] }), 'ours'],
    [
      'our VM, of an earlier generation',
      vm({ description: markLine({ ...mark, generation: 7, specHash: 'x' }) }),
      'ours',
    ],
    ['our VM with a lock', vm({ lock: 'backup' }), 'ours'],
    [
      'a hand-made copy, whose mark names the number of the original',
      vm({ description: markLine({ ...mark, vmid: 5002 }) }),
      'foreign',
    ],
    ['a VM of another deployment', vm({ description: markLine({ ...mark, deployment: 'prod' }) }), 'foreign'],
    // Report: k8s-proxmox/cluster-api-provider-proxmox#94
    ['a VM of another proxy', vm({ description: markLine({ ...mark, uid: 'b' }) }), 'foreign'],
    ['our VM, made a template by someone', vm({ template: true }), 'foreign'],
    ['our VM, its notes edited away', vm({ description: 'do not touch' }), 'unmarked'],
    ['our VM, its notes emptied', { name, template: false, cdroms: [seedDrive] }, 'unmarked'],
    ['a VM with our name only', vm({ description: '', cdroms: [] }), 'doubtful'],
    ['a VM with our seed only', vm({ description: '', name: 'mine' }), 'doubtful'],
    [
      'a VM with our seed in another drive',
      vm({ description: '', name: 'mine', cdroms: [{ ...seedDrive, slot: 'ide0' }] }),
      'foreign',
    ],
    ['a stranger', vm({ description: 'web server', name: 'web', cdroms: [{ slot: 'ide2' }] }), 'foreign'],
    ['a placeholder of a clone', { lock: 'clone', template: false, cdroms: [] }, 'nameless'],
    ['a nameless VM without a lock', { template: false, cdroms: [] }, 'foreign'],
  ])('tells %s', (_, bearing, kind) => {
    expect(owner(bearing)).toBe(kind)
  })

  it('takes an empty drive of a stranger for no seed of a row that has none', () => {
    expect(
      owner(vm({ description: '', name: 'web', cdroms: [{ slot: 'ide2' }] }), aRow({ seed: undefined })),
    ).toBe('foreign')
  })

  it('judges an orphan by the uid that its row was made for', () => {
    const orphan = aRow({
      uid: 'orphan#lab#5001',
      orphanOf: 'a',
      name: undefined,
      spec: undefined,
      seed: undefined,
    })
    expect(owner(vm(), orphan)).toBe('ours')
    expect(owner(vm({ description: markLine({ ...mark, uid: 'orphan#lab#5001' }) }), orphan)).toBe('foreign')
  })

  it('does not know a VM as ours at another place', () => {
    expect(owner(vm(), aRow({ place: { ...aPlace, vmid: 5009 } }))).toBe('foreign')
  })
})
