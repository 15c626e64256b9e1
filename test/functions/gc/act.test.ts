import { describe, expect, it } from 'vitest'
import { act, type Hands } from '../../../functions/gc/act.ts'
import type { Action } from '../../../functions/gc/event.ts'
import type { Claim } from '../../../lib/claims.ts'
import type { RowSummary } from '../../../lib/inventory.ts'
import { describe as describeMark } from '../../../lib/mark.ts'
import { type ListedVm, type Look, ProxmoxError, type VmConfig } from '../../../lib/proxmox/index.ts'
import { NOW } from '../../lib/a-row.ts'
import { aMark, aSummary, aVm } from './a-world.ts'

type World = {
  rows?: RowSummary[]
  free?: boolean
  look?: Look
  listed?: ListedVm | undefined
  failure?: Error
  /** Whose the claim was when this run looked, and what else it said; `a` unless said otherwise. */
  owner?: string | undefined
  claim?: Partial<Claim>
  /** It was taken anew since. */
  anew?: boolean
}

const config = (changes: Partial<VmConfig> = {}): VmConfig => ({
  name: 'egress-a-ca9781',
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
  tags: new Set(),
  description: describeMark(aMark(), 'alpha'),
  ...changes,
})
const vm = (changes: Partial<VmConfig> = {}, node = 'pve1'): Look => ({
  kind: 'vm',
  node,
  config: config(changes),
})

/** Carries one action out in a world of fakes, and tells what came of it and what was done. */
async function carriedOut(action: Action, world: World = {}, now = NOW) {
  const { rows = [], free = true, look = vm(), failure, anew = false, claim = {} } = world
  const owner = 'owner' in world ? world.owner : 'a'
  const done: string[] = []
  const hands: Hands = {
    inventory: { row: async (uid) => rows.find((row) => row.uid === uid) },
    claims: {
      async leaveVmid({ cluster, vmid }, owner, keeper, seen) {
        if (anew) return false
        done.push(`leave ${cluster} ${vmid} of ${owner} to ${keeper}, ${seen?.stamp}`)
        return true
      },
      async free({ partition, sort, stamp }) {
        if (anew) return false
        done.push(`free ${partition} ${sort}, ${stamp}`)
        return true
      },
    },
    claimed: (partition, sort) =>
      owner === undefined ? undefined : { partition, sort, stamp: 's1', ...claim, owner },
    queues: { send: async (side, message) => void done.push(`${side} ${JSON.stringify(message)}`) },
    vmsOf: (name) =>
      name !== 'lab'
        ? undefined
        : {
            isFree: async () => {
              if (failure) throw failure
              return free
            },
            look: async () => look,
            deleteVolume: async ({ node, volume }) => {
              if (failure) throw failure
              done.push(`delete ${volume} on ${node}`)
              return undefined
            },
          },
    listed: () => ('listed' in world ? world.listed : aVm()),
    deployment: 'test',
    now: () => now,
    untilMs: NOW + 1,
  }
  const [deed] = await act([{ action, since: 0 }], hands)
  return { deed, done }
}

const volume = 'local:iso/egress-test-a-g1.iso'
const orphan: Action = { kind: 'delete orphan', cluster: 'lab', vmid: 5001, node: 'pve1', uid: 'a' }
const expiry: Action = { kind: 'expire', uid: 'a', expiresAt: NOW }
const kick: Action = { kind: 'kick', uid: 'a', turn: 7, side: 'delete', step: 'unseed', dueAt: 0 }
const seed: Action = {
  kind: 'sweep seed',
  cluster: 'lab',
  node: 'pve2',
  storage: 'local',
  shared: false,
  volume,
  uid: 'a',
}
const sharedSeed: Action = { ...seed, shared: true }
const disk: Action = {
  kind: 'sweep disk',
  cluster: 'lab',
  node: 'pve1',
  storage: 'vmdata',
  volume: 'vmdata:x',
  vmid: 5001,
  uid: 'a',
}
const stray: Action = { kind: 'show disk', cluster: 'lab', node: 'pve1', volume: 'vmdata:x', vmid: 5001 }
const vmid: Action = {
  kind: 'free claim',
  cluster: 'lab',
  partition: 'vmid#lab',
  sort: '5001',
  owner: 'a',
  vmid: 5001,
}
const slot: Action = {
  kind: 'free claim',
  cluster: 'lab',
  partition: 'clone#lab#vmdata#pve1',
  sort: '0',
  owner: 'a',
}
const address: Action = {
  kind: 'free claim',
  cluster: 'lab',
  partition: 'address#lab#10.0.0.7',
  sort: '0',
  owner: 'a',
}
const place = { cluster: 'lab', node: 'pve1', vmid: 5001, template: 9000, storage: 'vmdata' }
const zone: Action = { kind: 'free claim', cluster: 'lab', partition: 'zone#lab-1', sort: '0', owner: 'a' }

const deleted = aSummary({ phase: 'Deleted', place: undefined, seed: undefined })
const ofOrphan = (phase: RowSummary['phase']) =>
  aSummary({ uid: 'orphan#lab#5001', orphanOf: 'a', phase, wish: 'absent' })
const expired = aSummary({ expiresAt: NOW })

describe('is done', () => {
  it.each<[string, Action, World, string[]]>([
    [
      'the deletion of an orphan, whose number stays taken meanwhile',
      orphan,
      {},
      [
        'leave lab 5001 of a to orphan#lab#5001, s1',
        'delete {"type":"Orphan","cluster":"lab","vmid":5001,"uid":"a"}',
      ],
    ],
    [
      'the deletion of an orphan that came back after it was deleted',
      orphan,
      { rows: [deleted, ofOrphan('Deleted')] },
      [
        'leave lab 5001 of a to orphan#lab#5001, s1',
        'delete {"type":"Orphan","cluster":"lab","vmid":5001,"uid":"a"}',
      ],
    ],
    [
      '… whose number was left to a row that never came, also when its uid has a row again',
      orphan,
      { rows: [aSummary({ phase: 'Pending', place: undefined })], claim: { leaving: 'orphan#lab#5001' } },
      [
        'leave lab 5001 of a to orphan#lab#5001, s1',
        'delete {"type":"Orphan","cluster":"lab","vmid":5001,"uid":"a"}',
      ],
    ],
    ['an expiry', expiry, { rows: [expired] }, ['delete {"type":"ProxyDeletionRequested","uid":"a"}']],
    ['a kick, on the queue of its step', kick, {}, ['delete {"type":"Resume","uid":"a","turn":7}']],
    ['the sweep of a seed', seed, {}, [`delete ${volume} on pve2`]],
    ['the sweep of a seed whose proxy is deleted', seed, { rows: [deleted] }, [`delete ${volume} on pve2`]],
    [
      'the sweep of a copy, beside a VM that has the seed on its own node',
      seed,
      { rows: [aSummary()], look: vm({ cdroms: [{ slot: 'ide2', volume, cloudInit: false }] }) },
      [`delete ${volume} on pve2`],
    ],
    ['the sweep of a disk', disk, {}, ['delete vmdata:x on pve1']],
    ['the freeing of a number that nothing holds', vmid, {}, ['free vmid#lab 5001, s1']],
    [
      '… that a container holds',
      vmid,
      { free: false, look: { kind: 'container', node: 'pve1' } },
      ['free vmid#lab 5001, s1'],
    ],
    [
      '… that another’s VM holds',
      vmid,
      { free: false, look: vm({ description: 'web' }) },
      ['free vmid#lab 5001, s1'],
    ],
    [
      '… that another proxy’s VM holds',
      vmid,
      { free: false, look: vm({ description: describeMark(aMark({ uid: 'b' }), 'beta') }) },
      ['free vmid#lab 5001, s1'],
    ],
    [
      '… that was let go of just now',
      vmid,
      { free: false, look: { kind: 'absent' } },
      ['free vmid#lab 5001, s1'],
    ],
    [
      'the freeing of a number that its proxy does not need, being ready at another',
      vmid,
      { rows: [aSummary({ place: { ...place, vmid: 5002 } })] },
      ['free vmid#lab 5001, s1'],
    ],
    [
      '… at the same number of another cluster',
      vmid,
      { rows: [aSummary({ place: { ...place, cluster: 'other' } })] },
      ['free vmid#lab 5001, s1'],
    ],
    [
      '… that was left to a row which is gone',
      vmid,
      { rows: [aSummary({ phase: 'Pending', place: undefined })], claim: { leaving: 'orphan#lab#5001' } },
      ['free vmid#lab 5001, s1'],
    ],
    [
      'the freeing of an address that its proxy does not need, being ready at another',
      address,
      { rows: [aSummary({ address: '10.0.0.8' })] },
      ['free address#lab#10.0.0.7 0, s1'],
    ],
    ['the freeing of a place in a queue', slot, {}, ['free clone#lab#vmdata#pve1 0, s1']],
    ['… of one that is not in its turn', slot, { rows: [aSummary()] }, ['free clone#lab#vmdata#pve1 0, s1']],
    ['the freeing of a place in a zone', zone, { rows: [deleted] }, ['free zone#lab-1 0, s1']],
  ])('%s', async (_, action, world, expected) => {
    const { deed, done } = await carriedOut(action, world)
    expect(deed).toEqual({ state: 'done' })
    expect(done).toEqual(expected)
  })
})

describe('is overtaken, and nothing done', () => {
  it.each<[string, Action, World]>([
    [
      'an orphan whose uid has a row again',
      orphan,
      { rows: [aSummary({ phase: 'Pending', place: undefined })] },
    ],
    ['an orphan that another run gave away', orphan, { rows: [ofOrphan('Deleting')] }],
    ['an orphan whose deletion has failed', orphan, { rows: [ofOrphan('Failed')] }],
    ['an orphan whose number was taken anew', orphan, { anew: true }],
    ['an expiry of what was deleted', expiry, { rows: [deleted] }],
    [
      'an expiry of what is being deleted',
      expiry,
      { rows: [{ ...expired, wish: 'absent', phase: 'Deleting' }] },
    ],
    [
      'an expiry of what was replaced and has time again',
      expiry,
      { rows: [aSummary({ expiresAt: NOW + 1 })] },
    ],
    ['an expiry of what was replaced and lives for ever', expiry, { rows: [aSummary()] }],
    ['a seed that a row names there', { ...seed, node: 'pve1' }, { rows: [aSummary()] }],
    ['a seed that a row has just sent there', seed, { rows: [aSummary({ seededOn: ['pve1', 'pve2'] })] }],
    ['a seed on a shared storage that a row names', sharedSeed, { rows: [aSummary({ place: undefined })] }],
    [
      'a seed in the drive of a VM that has moved there',
      seed,
      { rows: [aSummary()], look: vm({ cdroms: [{ slot: 'ide2', volume, cloudInit: false }] }, 'pve2') },
    ],
    [
      'an old seed on a shared storage that is still in the VM’s drive',
      sharedSeed,
      {
        rows: [aSummary({ seed: 'local:iso/egress-test-a-g2.iso' })],
        look: vm({ cdroms: [{ slot: 'ide2', volume, cloudInit: false }] }),
      },
    ],
    ['a seed whose VM cannot be seen', seed, { rows: [aSummary()], look: { kind: 'hidden' } }],
    ['a seed whose VM is not known of', seed, { rows: [aSummary()], look: { kind: 'unknown', reason: '' } }],
    ['a seed in a cluster that is not configured', { ...seed, cluster: 'gone' }, {}],
    ['a disk whose owner has a row again', disk, { rows: [aSummary({ place: undefined })] }],
    ['a disk of a number that a VM holds', disk, { free: false }],
    ['a disk in a cluster that is not configured', { ...disk, cluster: 'gone' }, {}],
    ['a disk of a VM that our token may not see', stray, { free: false }],
    [
      'a number whose owner has a row again',
      vmid,
      { rows: [aSummary({ phase: 'Pending', place: undefined })] },
    ],
    ['a number whose VM still stands', vmid, { free: false }],
    ['a number that its proxy is ready at', vmid, { rows: [aSummary()] }],
    [
      'a number that its proxy may need yet',
      vmid,
      { rows: [aSummary({ phase: 'Failed', place: { ...place, vmid: 5002 } })] },
    ],
    ['a number that was taken anew', vmid, { anew: true }],
    ['a number that is another’s now', vmid, { owner: 'b' }],
    ['a number that was given back', vmid, { owner: undefined }],
    [
      'a number that is left to a row which is there',
      vmid,
      { rows: [ofOrphan('Failed')], claim: { leaving: 'orphan#lab#5001' } },
    ],
    ['an address that its proxy is ready at', address, { rows: [aSummary({ address: '10.0.0.7' })] }],
    ['an address of a proxy whose own is not known', address, { rows: [aSummary()] }],
    [
      'an address of a proxy that looks for its own',
      address,
      { rows: [aSummary({ phase: 'Provisioning' })] },
    ],
    ['a number in a cluster that is not configured', { ...vmid, cluster: 'gone' }, {}],
    [
      'a place in a queue whose owner is at it',
      slot,
      { rows: [aSummary({ phase: 'Provisioning', step: 'clone' })] },
    ],
    [
      'a place in a queue whose owner destroys',
      slot,
      { rows: [aSummary({ phase: 'Deleting', step: 'destroy' })] },
    ],
    ['a place in a zone whose owner has a row', zone, { rows: [aSummary()] }],
  ])('%s', async (_, action, world) => {
    const { deed, done } = await carriedOut(action, world)
    expect(deed).toMatchObject({ state: 'overtaken', why: expect.any(String) })
    expect(done).toEqual([])
  })
})

describe('a person is told', () => {
  it.each<[string, Action, World]>([
    ['a claimed number is held by something unseen', vmid, { free: false, listed: undefined }],
    [
      'a claimed number is held by something half made',
      vmid,
      { free: false, look: { kind: 'vm', node: 'pve1', config: halfMade() } },
    ],
    [
      'a claimed number is held by a VM without a mark',
      vmid,
      { free: false, look: vm({ description: '', tags: new Set(['egress-test']) }) },
    ],
    ['a claimed number’s VM cannot be seen now', vmid, { free: false, look: { kind: 'hidden' } }],
    ['a disk of ours is of something unseen', disk, { free: false, listed: undefined }],
  ])('that %s', async (_, action, world) => {
    const { deed, done } = await carriedOut(action, world)
    expect(deed).toMatchObject({ state: 'overtaken', warning: { code: 'HiddenVm', vmid: 5001, uid: 'a' } })
    expect(deed?.warning?.hint).toContain('qm unlock 5001 && qm destroy 5001')
    expect(done).toEqual([])
  })

  it('of a disk that nothing holds and nobody is known to have owned', async () => {
    const { deed, done } = await carriedOut(stray)
    expect(deed).toMatchObject({ state: 'done', warning: { code: 'StrayDisk' } })
    expect(done).toEqual([])
  })
})

describe('a failure', () => {
  const failure = new ProxmoxError('no quorum', {
    code: 'NoQuorum',
    call: 'GET /',
    sent: 'yes',
    ambiguous: false,
  })

  it.each([seed, disk, vmid, stray])(
    'of Proxmox is told, and tried again by the next run: %o',
    async (action) => {
      expect((await carriedOut(action, { failure })).deed).toEqual({ state: 'failed', why: 'no quorum' })
    },
  )

  it('of ours ends the run', async () => {
    await expect(carriedOut(disk, { failure: new TypeError('ours') })).rejects.toThrow('ours')
  })
})

it('nothing is begun when the time of the run is over', async () => {
  for (const action of [orphan, expiry, kick, seed, disk, vmid]) {
    expect(await carriedOut(action, {}, NOW + 1)).toMatchObject({ deed: { state: 'left' }, done: [] })
  }
})

function halfMade(): VmConfig {
  const { name: _, description: __, ...rest } = config({ lock: 'clone' })
  return rest
}
