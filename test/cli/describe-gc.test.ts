import { describe, expect, it } from 'vitest'
import { describeGc } from '../../cli/describe-gc.ts'
import type { Report } from '../../functions/gc/event.ts'

const aReport = (changes: Partial<Report> = {}): Report => ({
  startedAt: '2026-01-01T01:00:00.000Z',
  ms: 120,
  dryRun: false,
  looked: {
    clusters: 1,
    silentNodes: 0,
    vms: 3,
    configs: 1,
    seeds: 3,
    disks: 4,
    rows: 3,
    claims: 3,
    suspects: 0,
  },
  counts: {},
  actions: [],
  noted: [],
  waiting: [],
  cleared: [],
  warnings: [],
  heldBack: {},
  skipped: [],
  ...changes,
})

const since = '2026-01-01T00:00:00.000Z'
const place = { cluster: 'lab', node: 'pve1', storage: 'local' }

describe('a report of gc', () => {
  it('is two lines where nothing is left over', () => {
    expect(describeGc(aReport())).toBe(
      'clusters: 1; in them 3 VMs (1 looked into), 3 seeds, 4 disks\ntables: 3 rows, 3 claims, 0 suspects',
    )
    const looked = { ...aReport().looked, vms: 1, seeds: 1, disks: 1, rows: 1, claims: 1, suspects: 1 }
    expect(describeGc(aReport({ looked }))).toContain(
      'in them 1 VM (1 looked into), 1 seed, 1 disk\ntables: 1 row, 1 claim, 1 suspect',
    )
  })

  it('tells of every kind of action what it is about, since when, and what became of it', () => {
    const text = describeGc(
      aReport({
        actions: [
          { kind: 'delete orphan', cluster: 'lab', vmid: 5001, node: 'pve1', uid: 'a', since, state: 'done' },
          {
            kind: 'expire',
            uid: 'b',
            expiresAt: 0,
            since,
            state: 'overtaken',
            why: 'it was given more time',
          },
          { kind: 'kick', uid: 'c', turn: 3, side: 'create', step: 'clone', dueAt: 0, since, state: 'done' },
          {
            kind: 'sweep seed',
            ...place,
            shared: false,
            volume: 'local:iso/x.iso',
            uid: 'd',
            since,
            state: 'done',
          },
          {
            kind: 'sweep disk',
            ...place,
            vmid: 5002,
            volume: 'vmdata:x',
            uid: 'e',
            since,
            state: 'failed',
            why: 'no',
          },
          {
            kind: 'free claim',
            cluster: 'lab',
            partition: 'vmid#lab',
            sort: '5003',
            owner: 'f',
            since,
            state: 'left',
          },
        ],
      }),
    )
    expect(text).toMatch(/^ {2}delete orphan +VM 5001 of a on pve1 \(lab\) +60 min +done$/m)
    expect(text).toMatch(/^ {2}expire +b +60 min +overtaken: it was given more time$/m)
    expect(text).toMatch(/^ {2}kick +c, at clone +60 min +done$/m)
    expect(text).toMatch(/^ {2}sweep seed +local:iso\/x\.iso on pve1 +60 min +done$/m)
    expect(text).toMatch(/^ {2}sweep disk +vmdata:x on pve1 +60 min +failed: no$/m)
    expect(text).toMatch(/^ {2}free claim +vmid#lab 5003 of f +60 min +left$/m)
  })

  it('says of a plan what a run would do', () => {
    const action = { kind: 'expire', uid: 'b', expiresAt: 0, since, state: 'planned' } as const
    expect(describeGc(aReport({ dryRun: true, actions: [action] }))).toContain('a run now would:')
  })

  it('names suspects by what they are, not by their keys', () => {
    const noted = [
      'vm#lab#5001#a',
      'seed#lab#pve1#local:iso/x.iso',
      'disk#lab#*#vmdata:x',
      'lock#lab#5002#backup',
    ]
    const text = describeGc(aReport({ noted }))
    expect(text).toContain(
      'noted:\n  VM 5001 of a (lab)\n  seed local:iso/x.iso on pve1 (lab)\n  disk vmdata:x on lab\n  VM 5002 (lab), locked (backup)',
    )
  })

  it('tells the same reason in several places once, with the line that grants what is missing', () => {
    const blind = { reason: 'may not list it', hint: 'pveum …' }
    const skipped = ['pve1', 'pve2'].map((node) => ({ ...place, node, ...blind }))
    expect(describeGc(aReport({ skipped }))).toContain(
      'not looked at:\n  lab/pve1/local, lab/pve2/local: may not list it\n    pveum …',
    )
  })

  it('says how much was left off and held back', () => {
    const text = describeGc(aReport({ heldBack: { 'delete orphan': 7, expire: 1 }, leftOff: { noted: 50 } }))
    expect(text).toMatch(
      /^due, and left for the next runs, .*limits\.maxDeletions.*:\n {2}delete orphan: 7\n {2}expire: 1$/m,
    )
    expect(text).toContain('noted: 50 more had no room')
  })
})
