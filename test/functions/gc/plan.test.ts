import { describe, expect, it } from 'vitest'
import { NOW } from '../../lib/a-row.ts'
import {
  aCluster,
  aShelf,
  aSummary,
  aSuspect,
  aVm,
  codes,
  JUST_NOW,
  kinds,
  LONG_AGO,
  notedKeys,
  ours,
  type Parts,
  planOf,
  rules,
} from './a-world.ts'

const seedA = 'local:iso/egress-test-a-g1.iso'
const diskA = 'vmdata:5001/vm-5001-disk-0.qcow2'
const vmidClaim = { partition: 'vmid#lab', sort: '5001', owner: 'a' }
const slotClaim = { partition: 'clone#lab#vmdata#pve1', sort: '0', owner: 'a' }
const disksOf = (...volumes: [string, number][]) => [aShelf(volumes, { storage: 'vmdata' })]

const nothing = { actions: [], notes: [], waiting: [], warnings: [], clears: [], keeps: [], heldBack: [] }

/** Every kind of thing that takes two looks: how it is found, its key, and what is done about it. */
const leftOvers: [string, Parts, string, object][] = [
  [
    'a VM whose row is gone',
    { cluster: { vms: [aVm()], sights: new Map([[5001, ours()]]) } },
    'vm#lab#5001#a',
    { kind: 'delete orphan', cluster: 'lab', vmid: 5001, node: 'pve1', uid: 'a' },
  ],
  [
    'a VM whose row is deleted',
    {
      rows: [aSummary({ phase: 'Deleted', place: undefined, seed: undefined })],
      cluster: { vms: [aVm()], sights: new Map([[5001, ours()]]) },
    },
    'vm#lab#5001#a',
    { kind: 'delete orphan', vmid: 5001, uid: 'a' },
  ],
  [
    'a VM whose tags were taken away',
    { cluster: { vms: [aVm({ tags: [] })], sights: new Map([[5001, ours()]]) } },
    'vm#lab#5001#a',
    { kind: 'delete orphan', vmid: 5001, uid: 'a' },
  ],
  [
    'a seed of nobody',
    { cluster: { seeds: [aShelf([seedA])] } },
    `seed#lab#pve1#${seedA}`,
    { kind: 'sweep seed', cluster: 'lab', node: 'pve1', storage: 'local', volume: seedA, uid: 'a' },
  ],
  [
    'a seed of an earlier generation',
    {
      rows: [aSummary({ seed: 'local:iso/egress-test-a-g2.iso' })],
      cluster: { vms: [aVm()], seeds: [aShelf([seedA])] },
    },
    `seed#lab#pve1#${seedA}`,
    { kind: 'sweep seed', volume: seedA },
  ],
  [
    'a copy of a seed on a node where its VM is not',
    { rows: [aSummary()], cluster: { vms: [aVm()], seeds: [aShelf([seedA], { node: 'pve2' })] } },
    `seed#lab#pve2#${seedA}`,
    { kind: 'sweep seed', node: 'pve2', volume: seedA },
  ],
  [
    'a copy of a seed on another storage',
    {
      rows: [aSummary()],
      cluster: { vms: [aVm()], seeds: [aShelf(['nas:iso/egress-test-a-g1.iso'], { storage: 'nas' })] },
    },
    'seed#lab#pve1#nas:iso/egress-test-a-g1.iso',
    { kind: 'sweep seed', storage: 'nas' },
  ],
  [
    'a seed of nobody on a shared storage',
    { cluster: { seeds: [aShelf([seedA], { shared: true })] } },
    `seed#lab#*#${seedA}`,
    { kind: 'sweep seed', shared: true, volume: seedA },
  ],
  [
    'a disk of a number whose owner is gone',
    { claims: [vmidClaim], cluster: { disks: disksOf([diskA, 5001]) } },
    `disk#lab#pve1#${diskA}`,
    {
      kind: 'sweep disk',
      cluster: 'lab',
      node: 'pve1',
      storage: 'vmdata',
      volume: diskA,
      vmid: 5001,
      uid: 'a',
    },
  ],
  [
    'a claim of a VMID whose owner is gone',
    { claims: [vmidClaim] },
    'claim#vmid#lab#5001#a',
    { kind: 'free claim', cluster: 'lab', partition: 'vmid#lab', sort: '5001', owner: 'a', vmid: 5001 },
  ],
  [
    'a claim of a VMID whose owner is deleted',
    { claims: [vmidClaim], rows: [aSummary({ phase: 'Deleted', place: undefined, seed: undefined })] },
    'claim#vmid#lab#5001#a',
    { kind: 'free claim', vmid: 5001 },
  ],
  [
    'a place in the queue of clones whose owner is gone',
    { claims: [slotClaim] },
    'claim#clone#lab#vmdata#pve1#0#a',
    { kind: 'free claim', partition: 'clone#lab#vmdata#pve1', owner: 'a' },
  ],
  [
    'a place in the queue of clones whose owner clones no more',
    { claims: [slotClaim], rows: [aSummary()], cluster: { vms: [aVm()] } },
    'claim#clone#lab#vmdata#pve1#0#a',
    { kind: 'free claim', partition: 'clone#lab#vmdata#pve1', owner: 'a' },
  ],
  [
    'a place of a group on a node whose owner is gone',
    { claims: [{ partition: 'spread#lab#pve1#shop', sort: '3', owner: 'a' }] },
    'claim#spread#lab#pve1#shop#3#a',
    { kind: 'free claim', partition: 'spread#lab#pve1#shop', owner: 'a' },
  ],
  [
    'a place in a zone whose owner is gone',
    { claims: [{ partition: 'zone#lab-1', sort: '3', owner: 'a' }] },
    'claim#zone#lab-1#3#a',
    { kind: 'free claim', partition: 'zone#lab-1', owner: 'a' },
  ],
  [
    'a claim of an address whose owner is gone',
    { claims: [{ partition: 'address#lab#10.0.0.7', sort: '0', owner: 'a' }] },
    'claim#address#lab#10.0.0.7#0#a',
    { kind: 'free claim', partition: 'address#lab#10.0.0.7', owner: 'a' },
  ],
]

describe.each(leftOvers)('%s', (_, parts, key, action) => {
  const known = (firstSeen: number) => planOf({ ...parts, suspects: [aSuspect(key, { firstSeen })] })
  // A disk’s number is claimed as well, which is a finding of its own.
  const own = (keys: string[]) => keys.filter((one) => one === key || !one.startsWith('claim#vmid#'))

  // Report: github-aws-runners/terraform-aws-github-runner#4001
  it('is noted at the first look', () => {
    const plan = planOf(parts)
    expect(plan.actions).toEqual([])
    expect(own(notedKeys(plan))).toEqual([key])
  })

  // Report: github-aws-runners/terraform-aws-github-runner#3802
  it('waits until it has been suspect for long enough', () => {
    const plan = known(JUST_NOW)
    expect(plan.actions).toEqual([])
    expect(own(notedKeys(plan))).toEqual([])
    expect(plan.waiting.map((one) => one.key)).toEqual([key])
  })

  it('is dealt with then', () => {
    const plan = known(LONG_AGO)
    expect(plan.actions).toEqual([{ action: expect.objectContaining(action), since: LONG_AGO }])
    expect(plan.clears).toEqual([])
  })

  it('is noted anew when the first look has expired', () => {
    const suspects = [aSuspect(key, { purgeAt: NOW / 1000 - 1 })]
    const plan = planOf({ ...parts, suspects })
    expect(plan.actions).toEqual([])
    expect(own(notedKeys(plan))).toEqual([key])
  })
})

describe('what is left alone', () => {
  const orphan = { vms: [aVm()], sights: new Map([[5001, ours()]]) }

  it.each<[string, Parts]>([
    [
      'a proxy with its VM, seed, disk and claims',
      {
        rows: [aSummary()],
        claims: [vmidClaim, { partition: 'zone#lab-1', sort: '0', owner: 'a' }],
        cluster: { vms: [aVm()], seeds: [aShelf([seedA])], disks: disksOf([diskA, 5001]) },
      },
    ],
    [
      'a proxy whose VM is not there: that is check’s',
      { rows: [aSummary()], claims: [vmidClaim], cluster: { seeds: [aShelf([seedA])] } },
    ],
    [
      'a proxy in the making, its VM still without tags',
      {
        rows: [aSummary({ phase: 'Provisioning', step: 'seed' })],
        claims: [vmidClaim],
        cluster: { vms: [aVm({ tags: [], lock: 'clone' })], clones: [{ startedAtMs: NOW }] },
      },
    ],
    [
      'a claim of one that is looking for its place',
      {
        rows: [aSummary({ phase: 'Pending', step: 'reserve', place: undefined, seed: undefined })],
        claims: [vmidClaim],
      },
    ],
    [
      'a place in the queue of one that clones',
      { rows: [aSummary({ phase: 'Provisioning', step: 'clone' })], claims: [slotClaim] },
    ],
    [
      'a place in the queue of one that is destroyed',
      { rows: [aSummary({ phase: 'Deleting', step: 'destroy', wish: 'absent' })], claims: [slotClaim] },
    ],
    [
      'a failed proxy with all it has',
      {
        rows: [aSummary({ phase: 'Failed', failedStep: 'start', dueAt: 0 })],
        claims: [vmidClaim],
        cluster: { vms: [aVm()], seeds: [aShelf([seedA])] },
      },
    ],
    [
      'a turn to ask an agent, which lapses by itself',
      { claims: [{ partition: 'agent#lab#pve1', sort: '0', owner: 'a' }] },
    ],
    [
      'an orphan that is being deleted',
      {
        rows: [
          aSummary({
            uid: 'orphan#lab#5001',
            orphanOf: 'a',
            phase: 'Deleting',
            step: 'stop',
            wish: 'absent',
          }),
        ],
        cluster: { vms: [aVm()], seeds: [aShelf([seedA])] },
      },
    ],
    [
      'the seed of an orphan whose row has yet to learn of it',
      {
        rows: [
          aSummary({
            uid: 'orphan#lab#5001',
            orphanOf: 'a',
            phase: 'Deleting',
            step: 'stop',
            wish: 'absent',
            seed: undefined,
            seededOn: undefined,
          }),
        ],
        cluster: { vms: [aVm()], seeds: [aShelf([seedA])] },
      },
    ],
    [
      'an orphan whose deletion failed and waits for a person',
      {
        rows: [
          aSummary({
            uid: 'orphan#lab#5001',
            orphanOf: 'a',
            phase: 'Failed',
            failedStep: 'stop',
            wish: 'absent',
          }),
        ],
        cluster: { vms: [aVm()] },
      },
    ],
    [
      'a VM of others in our range',
      { cluster: { vms: [aVm({ tags: [] })], sights: new Map([[5001, { kind: 'foreign' }]]) } },
    ],
    ['a VM that no one looked into', { cluster: { vms: [aVm({ vmid: 77, tags: ['egress-prod'] })] } }],
    ['a container at a number of ours', { cluster: { vms: [aVm({ type: 'lxc', tags: [] })] } }],
    [
      'a seed with the orphan that carries it',
      {
        cluster: { ...orphan, seeds: [aShelf([seedA])] },
        suspects: [
          aSuspect('vm#lab#5001#a', { firstSeen: JUST_NOW }),
          aSuspect(`seed#lab#pve1#x`, { cluster: 'other' }),
        ],
      },
    ],
    [
      'a seed on the node to which its VM has moved',
      {
        rows: [aSummary()],
        cluster: { vms: [aVm({ node: 'pve2' })], seeds: [aShelf([seedA], { node: 'pve2' })] },
      },
    ],
    [
      'a seed that was sent to a node before its VM went elsewhere',
      {
        rows: [aSummary({ seededOn: ['pve1', 'pve2'] })],
        cluster: { vms: [aVm()], seeds: [aShelf([seedA], { node: 'pve2' })] },
      },
    ],
    [
      'a seed on a shared storage, from whatever node it is listed',
      {
        rows: [aSummary()],
        cluster: { vms: [aVm()], seeds: [aShelf([seedA], { node: 'pve2', shared: true })] },
      },
    ],
    [
      'ISOs of others, of other deployments and with names nearly ours',
      {
        cluster: {
          seeds: [
            aShelf([
              'local:iso/debian-12.iso',
              'local:iso/egress-prod-a-g1.iso',
              'local:iso/egress-test2-a-g1.iso',
              'local:iso/egress-testing-a-g1.iso',
              'local:iso/egress-test-a-g1 (copy).iso',
              'local:iso/egress-test-a-g1-copy.iso',
              'local:iso/egress-test-a-g0.iso',
              'local:iso/egress-test-a-g1.img',
              'local:iso/egress-test-A-g1.iso',
              'local:iso/my-egress-test-a-g1.iso',
              'local:iso/egress-test--g1.iso',
            ]),
          ],
        },
      },
    ],
    [
      'a disk of a number where a VM is',
      { claims: [vmidClaim], rows: [aSummary()], cluster: { vms: [aVm()], disks: disksOf([diskA, 5001]) } },
    ],
    [
      'a disk of a number that a row is about to use',
      {
        claims: [vmidClaim],
        rows: [aSummary({ phase: 'Provisioning', step: 'clone' })],
        cluster: { disks: disksOf([diskA, 5001]) },
      },
    ],
    [
      'a disk of a number that is claimed by one on its way',
      {
        claims: [vmidClaim],
        rows: [aSummary({ phase: 'Pending', step: 'reserve', place: undefined, seed: undefined })],
        cluster: { disks: disksOf([diskA, 5001]) },
      },
    ],
    [
      'a disk of a number outside our ranges',
      { cluster: { disks: disksOf(['vmdata:100/vm-100-disk-0.qcow2', 100]) } },
    ],
  ])('is %s', (_, parts) => {
    const { waiting, ...plan } = planOf(parts)
    expect({ ...plan, waiting: [] }).toEqual(nothing)
    expect(waiting.map(({ key }) => key)).toEqual(parts.suspects ? ['vm#lab#5001#a'] : [])
  })

  it.each<[string, Parts, string]>([
    [
      'an orphan that a person holds',
      {
        cluster: {
          vms: [aVm({ tags: ['egress', 'egress-test', 'egress-hold'] })],
          sights: new Map([[5001, ours()]]),
        },
      },
      'vm#lab#5001#a',
    ],
    [
      'an orphan that is half made',
      { cluster: { vms: [aVm({ lock: 'clone' })], sights: new Map([[5001, ours({}, 'clone')]]) } },
      'vm#lab#5001#a',
    ],
    [
      'a disk of ours while a node is silent',
      {
        claims: [vmidClaim],
        cluster: {
          nodes: [
            { name: 'pve1', silent: false },
            { name: 'pve2', silent: true },
          ],
          disks: disksOf([diskA, 5001]),
        },
      },
      `disk#lab#pve1#${diskA}`,
    ],
    [
      'a seed on a shared storage while a node is silent',
      {
        cluster: {
          nodes: [
            { name: 'pve1', silent: false },
            { name: 'pve2', silent: true },
          ],
          seeds: [aShelf([seedA], { shared: true })],
        },
      },
      `seed#lab#*#${seedA}`,
    ],
    [
      'a claim of a VMID while a node is silent',
      {
        claims: [vmidClaim],
        cluster: {
          nodes: [
            { name: 'pve1', silent: false },
            { name: 'pve2', silent: true },
          ],
        },
      },
      'claim#vmid#lab#5001#a',
    ],
    [
      'a place in the queue of a node that is silent',
      {
        claims: [slotClaim],
        cluster: {
          nodes: [
            { name: 'pve1', silent: true },
            { name: 'pve2', silent: false },
          ],
        },
      },
      'claim#clone#lab#vmdata#pve1#0#a',
    ],
    [
      'a claim in a cluster that does not answer',
      { claims: [vmidClaim], clusters: [] },
      'claim#vmid#lab#5001#a',
    ],
    [
      'a claim in a cluster that is not configured any more',
      { claims: [{ ...vmidClaim, partition: 'vmid#gone' }] },
      'claim#vmid#gone#5001#a',
    ],
    [
      'a claim whose VM still stands',
      {
        claims: [vmidClaim],
        cluster: {
          vms: [aVm({ tags: ['egress', 'egress-test', 'egress-hold'] })],
          sights: new Map([[5001, ours()]]),
        },
      },
      'claim#vmid#lab#5001#a',
    ],
    [
      'a claim of which a disk is left',
      {
        claims: [vmidClaim],
        cluster: { nodes: [{ name: 'pve1', silent: true }], disks: disksOf([diskA, 5001]) },
      },
      'claim#vmid#lab#5001#a',
    ],
    [
      'a claim while a clone runs that began when its owner may still have been there',
      {
        claims: [vmidClaim],
        cluster: { clones: [{ startedAtMs: rules.settleMs }] },
      },
      'claim#vmid#lab#5001#a',
    ],
  ])('is %s, however long it has been known', (_, parts, key) => {
    const plan = planOf({ ...parts, suspects: [aSuspect(key, { firstSeen: 0 })] })
    expect(plan.actions.filter(({ action }) => action.kind !== 'expire')).toEqual([])
    expect(plan.waiting.map((one) => one.key)).toContain(key)
    expect(plan.clears).toEqual([])
  })

  it('is no claim for a clone that began long after its owner was gone', () => {
    const cluster = { clones: [{ startedAtMs: LONG_AGO + rules.settleMs + 1 }] }
    const plan = planOf({ claims: [vmidClaim], cluster, suspects: [aSuspect('claim#vmid#lab#5001#a')] })
    expect(kinds(plan)).toEqual(['free claim'])
  })

  it('is no place in the queue of a node for the silence of another', () => {
    const nodes = [
      { name: 'pve1', silent: false },
      { name: 'pve2', silent: true },
    ]
    const suspects = [aSuspect('claim#clone#lab#vmdata#pve1#0#a')]
    expect(kinds(planOf({ claims: [slotClaim], cluster: { nodes }, suspects }))).toEqual(['free claim'])
  })
})

describe('a disk', () => {
  const disks = disksOf([diskA, 5001])
  const key = `disk#lab#pve1#${diskA}`

  // Report: PegaProx/project-pegaprox#703
  it('that nobody is known to have owned is never deleted, only shown', () => {
    const suspects = [aSuspect(key, { firstSeen: 0, node: 'pve1', volume: diskA })]
    const plan = planOf({ cluster: { disks }, suspects })
    expect(plan.actions.map(({ action }) => action)).toEqual([
      { kind: 'show disk', cluster: 'lab', node: 'pve1', volume: diskA, vmid: 5001 },
    ])
  })

  it.each([
    ['by its name', diskA],
    ['by its number alone, for want of a look', 'vmdata:vm-5001'],
  ])('that `destroy` had to leave, and named %s, is deleted after one look more', (_, volume) => {
    const left = aSuspect(`disk#lab#pve1#${volume}`, { kind: 'disk', node: 'pve1', volume, uid: 'a' })
    const plan = planOf({ cluster: { disks }, suspects: [left] })
    expect(plan.actions).toEqual([
      { action: expect.objectContaining({ kind: 'sweep disk', volume: diskA, uid: 'a' }), since: LONG_AGO },
    ])
    expect(plan.clears).toEqual([])
  })

  it('of the same name on another node is another’s', () => {
    const left = aSuspect(`disk#lab#pve2#${diskA}`, { kind: 'disk', node: 'pve2', volume: diskA, uid: 'a' })
    expect(kinds(planOf({ cluster: { disks }, suspects: [left] }))).toEqual([])
  })

  it('that cannot be looked at yet stays suspect past its expiry', () => {
    const left = aSuspect(`disk#lab#pve2#${diskA}`, {
      kind: 'disk',
      node: 'pve2',
      volume: diskA,
      uid: 'a',
      purgeAt: NOW / 1000 + 86_400,
    })
    const nodes = [
      { name: 'pve1', silent: false },
      { name: 'pve2', silent: true },
    ]
    expect(planOf({ cluster: { nodes }, suspects: [left] })).toMatchObject({ keeps: [left], clears: [] })
  })

  it('whose node has left the cluster is forgotten', () => {
    const left = aSuspect('disk#lab#pve9#x', { kind: 'disk', node: 'pve9', volume: 'vmdata:x', uid: 'a' })
    expect(planOf({ suspects: [left] }).clears).toEqual([left])
  })
})

describe('a suspect', () => {
  const gone: [string, Parameters<typeof aSuspect>[1]][] = [
    ['vm#lab#5001#a', { vmid: 5001, node: 'pve1' }],
    [`seed#lab#pve1#${seedA}`, { node: 'pve1', volume: seedA }],
    [`disk#lab#pve1#${diskA}`, { node: 'pve1', volume: diskA, uid: 'a' }],
    ['claim#vmid#lab#5001#a', {}],
    ['lock#lab#5001#clone', { vmid: 5001 }],
  ]
  const looked = {
    seeds: [aShelf([])],
    disks: [aShelf([], { storage: 'vmdata' })],
  }

  it.each(gone)('is cleared when it looks well again: %s', (key, changes) => {
    const suspect = aSuspect(key, changes)
    expect(planOf({ cluster: looked, suspects: [suspect] })).toEqual({ ...nothing, clears: [suspect] })
  })

  it.each(gone.filter(([key]) => !key.startsWith('claim')))(
    'stays while nobody can look: %s',
    (key, changes) => {
      const suspect = aSuspect(key, changes)
      const blind = { unread: new Set([5001]) }
      expect(planOf({ cluster: blind, suspects: [suspect] }).clears).toEqual([])
      expect(planOf({ clusters: [], suspects: [suspect] }).clears).toEqual([])
    },
  )
})

describe('a row', () => {
  const stalled = { phase: 'Provisioning', step: 'clone', dueAt: NOW - rules.stallMs - 1 } as const

  it.each([
    ['that stands still', stalled, 'create'],
    [
      'that stands still on its way out',
      { ...stalled, phase: 'Deleting', step: 'unseed', wish: 'absent' },
      'delete',
    ],
    ['that never began', { ...stalled, phase: 'Pending', step: 'reserve', place: undefined }, 'create'],
    ['whose failure was not told', { ...stalled, step: 'report', failedStep: 'destroy' }, 'delete'],
    ['whose holder has died', { ...stalled, lease: { until: NOW - 1 } }, 'create'],
  ] as const)('%s is kicked', (_, changes, side) => {
    const plan = planOf({ rows: [aSummary(changes)] })
    expect(plan.actions.map(({ action }) => action)).toEqual([
      expect.objectContaining({ kind: 'kick', uid: 'a', turn: 7, side }),
    ])
  })

  it.each([
    ['whose message is not that late', { ...stalled, dueAt: NOW - rules.stallMs }],
    ['that is held', { ...stalled, lease: { until: NOW } }],
    ['that is ready', { dueAt: 0 }],
    ['that failed', { phase: 'Failed', failedStep: 'clone', dueAt: 0 }],
    ['that is deleted', { phase: 'Deleted', dueAt: 0, place: undefined, seed: undefined }],
  ] as const)('%s is left alone', (_, changes) => {
    expect(planOf({ rows: [aSummary(changes)] }).actions).toEqual([])
  })

  it.each([
    ['ready', {}],
    ['failed', { phase: 'Failed', failedStep: 'clone' }],
    ['on its way, and stalled besides', stalled],
    ['without a place', { phase: 'Failed', failedStep: 'reserve', place: undefined }],
  ] as const)('whose time is up is deleted: %s', (_, changes) => {
    const plan = planOf({ rows: [aSummary({ ...changes, expiresAt: NOW })], cluster: { vms: [aVm()] } })
    expect(plan.actions).toEqual([{ action: { kind: 'expire', uid: 'a', expiresAt: NOW }, since: NOW }])
  })

  it.each<[string, Parameters<typeof aSummary>[0], Parts]>([
    ['has time left', { expiresAt: NOW + 1 }, {}],
    ['is being deleted', { expiresAt: 0, wish: 'absent', phase: 'Deleting' }, {}],
    ['is deleted', { expiresAt: 0, phase: 'Deleted', wish: 'absent' }, {}],
    ['cannot be seen, so that a hold would not be', { expiresAt: 0 }, { clusters: [] }],
  ])('is not deleted that %s', (_, changes, parts) => {
    expect(planOf({ rows: [aSummary(changes)], ...parts }).actions).toEqual([])
  })

  it('whose time is up and whose VM a person holds is shown', () => {
    const vms = [aVm({ tags: ['egress', 'egress-test', 'egress-hold'] })]
    const plan = planOf({ rows: [aSummary({ expiresAt: 0 })], cluster: { vms } })
    expect(plan.actions).toEqual([])
    expect(codes(plan)).toEqual(['Held'])
  })
})

describe('a warning', () => {
  it('tells of two VMs of one uid, and which is the row’s', () => {
    const vms = [aVm(), aVm({ vmid: 5002, node: 'pve2' })]
    const plan = planOf({
      rows: [aSummary()],
      cluster: { vms, sights: new Map([[5002, ours({ vmid: 5002 })]]) },
    })
    expect(plan.actions).toEqual([])
    expect(plan.notes).toEqual([])
    expect(plan.warnings).toEqual([expect.objectContaining({ code: 'TwoVms', vmid: 5002, uid: 'a' })])
    expect(plan.warnings[0]?.hint).toContain('VM 5001 of cluster lab')
  })

  it('is not given of a row that moves between two places', () => {
    const row = aSummary({ phase: 'Provisioning', step: 'clone' })
    const cluster = { vms: [aVm({ vmid: 5002 })], sights: new Map([[5002, ours({ vmid: 5002 })]]) }
    expect(planOf({ rows: [row], cluster }).warnings).toEqual([])
  })

  it('names the tags that a ready proxy’s VM lacks, and keeps those it has', () => {
    const cluster = { vms: [aVm({ tags: ['web'] })], sights: new Map([[5001, ours()]]) }
    const plan = planOf({ rows: [aSummary()], cluster })
    expect(codes(plan)).toEqual(['NoTags'])
    expect(plan.warnings[0]?.hint).toContain("qm set 5001 --tags 'web;egress;egress-test'")
  })

  it('is not given of another’s VM at the place of a ready proxy: that is check’s', () => {
    const cluster = { vms: [aVm({ tags: [] })], sights: new Map([[5001, { kind: 'foreign' } as const]]) }
    expect(planOf({ rows: [aSummary()], cluster }).warnings).toEqual([])
  })

  it('tells of a VM that looks like ours and bears no mark', () => {
    const cluster = { vms: [aVm()], sights: new Map([[5001, { kind: 'doubtful' } as const]]) }
    const plan = planOf({ cluster })
    expect(plan.notes).toEqual([])
    expect(codes(plan)).toEqual(['NoMark'])
  })

  it.each([
    ['clone', rules.graceMs, 'qm unlock 5001 && qm destroy 5001 --purge --destroy-unreferenced-disks 1'],
    ['backup', 6 * 3600_000, 'qm unlock 5001`'],
  ])('gives the qm line for a lock (%s) once it has been there for too long', (lock, patienceMs, line) => {
    const parts = { rows: [aSummary()], cluster: { vms: [aVm({ lock })] } }
    const key = `lock#lab#5001#${lock}`
    expect(notedKeys(planOf(parts))).toEqual([key])
    const laterBy = (ms: number) =>
      planOf({ ...parts, suspects: [aSuspect(key, { firstSeen: NOW - ms, vmid: 5001 })] })
    expect(codes(laterBy(patienceMs - 1))).toEqual([])
    expect(codes(laterBy(patienceMs))).toEqual(['StuckLock'])
    expect(laterBy(patienceMs).warnings[0]?.hint).toContain(line)
    expect(laterBy(patienceMs).actions).toEqual([])
  })

  it('is not given of a half-made VM while a clone of ours runs', () => {
    const cluster = { vms: [aVm({ lock: 'clone' })], clones: [{ startedAtMs: NOW }] }
    const suspects = [aSuspect('lock#lab#5001#clone', { firstSeen: 0, vmid: 5001 })]
    expect(codes(planOf({ rows: [aSummary()], cluster, suspects }))).toEqual([])
  })
})

describe('the brake', () => {
  const vmids = Array.from({ length: 30 }, (_, index) => 5001 + index)
  const orphans: Parts = {
    cluster: {
      vms: vmids.map((vmid) => aVm({ vmid })),
      sights: new Map(vmids.map((vmid) => [vmid, ours({ vmid, uid: `p${vmid}` })])),
    },
    suspects: vmids.map((vmid) => aSuspect(`vm#lab#${vmid}#p${vmid}`, { firstSeen: LONG_AGO - vmid })),
  }

  it('holds deletions beyond its limit back, and lets the oldest through', () => {
    const plan = planOf(orphans)
    expect(plan.actions).toHaveLength(20)
    expect(plan.heldBack).toHaveLength(10)
    expect(plan.actions[0]).toMatchObject({ action: { vmid: 5030 } })
  })

  it('counts everything that is deleted, whatever for', () => {
    const rows = [aSummary({ uid: 'x', place: undefined, seed: undefined, expiresAt: 0 })]
    const seeds = [aShelf(['local:iso/egress-test-y-g1.iso'])]
    const suspects = [
      ...(orphans.suspects ?? []),
      aSuspect('seed#lab#pve1#local:iso/egress-test-y-g1.iso', { firstSeen: 1 }),
    ]
    const plan = planOf({
      ...orphans,
      rows,
      suspects,
      cluster: { ...orphans.cluster, seeds },
      rules: { maxDeletions: 2 },
    })
    expect(kinds(plan)).toEqual(['expire', 'sweep seed'])
    expect(plan.heldBack).toHaveLength(30)
  })

  it('can stop all of them, and holds nothing else', () => {
    const claims = [{ partition: 'vmid#lab', sort: '5900', owner: 'z' }]
    const suspects = [...(orphans.suspects ?? []), aSuspect('claim#vmid#lab#5900#z')]
    const rows = [
      aSummary({ uid: 'w', place: undefined, seed: undefined, step: 'reserve', phase: 'Pending', dueAt: 0 }),
    ]
    const plan = planOf({ ...orphans, rows, claims, suspects, rules: { maxDeletions: 0 } })
    expect(kinds(plan)).toEqual(['kick', 'free claim'])
    expect(plan.heldBack).toHaveLength(30)
  })

  it('sends no flood of kicks into queues that are far behind', () => {
    const rows = Array.from({ length: 1000 }, (_, index) =>
      aSummary({
        uid: `p${index}`,
        place: undefined,
        seed: undefined,
        step: 'reserve',
        phase: 'Pending',
        dueAt: 1000 - index,
      }),
    )
    const plan = planOf({ rows })
    expect(plan.actions).toHaveLength(100)
    expect(plan.actions[0]).toMatchObject({ action: { uid: 'p999' } })
    expect(plan.heldBack).toHaveLength(900)
    expect(plan.heldBack[0]).toMatchObject({ kind: 'kick', uid: 'p899' })
  })
})

it('plans the same for the same world', () => {
  const parts: Parts = {
    claims: [vmidClaim, slotClaim],
    cluster: { seeds: [aShelf([seedA])], vms: [aVm()], sights: new Map([[5001, ours()]]) },
  }
  expect(planOf(parts)).toEqual(planOf(parts))
})

it('keeps the clusters apart', () => {
  const other = aCluster({
    name: 'other',
    seeds: [aShelf([seedA])],
    vms: [aVm()],
    sights: new Map([[5001, ours()]]),
  })
  const plan = planOf({
    rows: [aSummary()],
    clusters: [aCluster({ vms: [aVm()], seeds: [aShelf([seedA])] }), other],
  })
  // The row’s VM is in lab: the one in the other cluster is a second, with its seed.
  expect(codes(plan)).toEqual(['TwoVms'])
  expect(plan.notes).toEqual([])
})
