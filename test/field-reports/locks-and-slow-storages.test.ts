import { afterEach, describe, expect, it } from 'vitest'
import { deadLetterCodes, expectDeletable, expectNothingLeft } from '../functions/adversity.ts'
import { type Lab, type LabOptions, openLab, settled } from '../lab/lab.ts'

let lab: Lab
const open = async (options: LabOptions) => {
  lab = await openLab(options)
}
afterEach(() => lab?.close())

const MINUTE_MS = 60_000
const lockTimeouts = () =>
  lab.sim.tasks().filter(({ exitstatus = '' }) => /got (?:lock request )?timeout/.test(exitstatus))

describe('a clone that takes much longer than a call, an invocation or a lease', () => {
  // Report: bpg/terraform-provider-proxmox#133
  // Report: ansible-collections/community.proxmox#67
  it('is waited for, over as many invocations as it takes', async () => {
    await open({ cluster: { clone: 'full' }, durations: { cloneMs: 25 * MINUTE_MS } })
    lab.request('alpha')
    const { timeline } = await settled(lab, 'alpha')
    expect(lab.row('alpha')?.phase).toBe('Ready')
    expect(timeline.find(({ step }) => step === 'clone')?.ms).toBeGreaterThan(25 * MINUTE_MS)
    expect(lab.sim.tasks().filter(({ type }) => type === 'qmclone')).toHaveLength(1)
    expect(deadLetterCodes(lab)).toEqual([])
  })

  // Report: k8s-proxmox/cluster-api-provider-proxmox#109
  it.each([
    ['is late after half an hour', {}, 'Failed'],
    ['is not, where the configuration gives it longer', { deadlineSeconds: { clone: 7200 } }, 'Ready'],
  ])('%s', async (_, timings, phase) => {
    await open({
      cluster: { clone: 'full' },
      config: { timings: { maxClockSkewSeconds: 0, ...timings } },
      durations: { cloneMs: 80 * MINUTE_MS },
    })
    lab.request('alpha')
    expect((await settled(lab, 'alpha')).phase).toBe(phase)
  })
})

describe('more proxies at once than a storage can take', () => {
  // One node, one storage whose lock is held for 6 s by each clone and destroy, and given up after 10 s.
  const slow: LabOptions = {
    nodes: 1,
    cluster: { clone: 'full' },
    durations: { storageLockMs: 6000, cloneMs: 30_000 },
  }

  // Report: khanh-ph/proxmox-kubernetes#71
  // Report: LINBIT/linstor-proxmox#73
  it('queue for it, and none of them meets the time-out of its lock', async () => {
    await open(slow)
    const uids = Array.from({ length: 8 }, (_, index) => `proxy-${index}`)
    for (const uid of uids) lab.request(uid)
    await lab.run(() => uids.every((uid) => lab.row(uid)?.phase === 'Ready'))
    expect(lockTimeouts()).toEqual([])
    for (const uid of uids) lab.remove(uid)
    await lab.run()
    expect(lockTimeouts()).toEqual([])
    expectNothingLeft(lab)
    expect(deadLetterCodes(lab)).toEqual([])
  })

  // Report: ionos-cloud/cluster-api-provider-proxmox#389
  it('are all made in the end where too many are let in, whose clones fail by that time-out', async () => {
    await open({ ...slow, config: { limits: { clonesPerStorage: 6 } } })
    const uids = Array.from({ length: 6 }, (_, index) => `proxy-${index}`)
    for (const uid of uids) lab.request(uid)
    await lab.run(() => uids.every((uid) => lab.row(uid)?.phase === 'Ready'))
    expect(lockTimeouts()).not.toEqual([])
    expect(new Set(lab.leftOvers().vms).size).toBe(6)
    expect(deadLetterCodes(lab)).toEqual([])
    for (const uid of uids.slice(1)) lab.remove(uid)
    await lab.run()
    await expectDeletable(lab, 'proxy-0')
  })

  // Report: sergelogvinov/proxmox-csi-plugin#479
  it('more than eighty of them are made, with no more clones at work than a storage may have', {
    timeout: 240_000,
  }, async () => {
    await open({ nodes: 3 })
    const uids = Array.from({ length: 81 }, (_, index) => `proxy-${index}`)
    for (const uid of uids) lab.request(uid)
    await lab.run(() => uids.every((uid) => lab.row(uid)?.phase === 'Ready'))
    for (const { name } of lab.world.nodes) expect(mostAtOnce(name)).toBeLessThanOrEqual(2)
    expect(lockTimeouts()).toEqual([])
    expect(deadLetterCodes(lab)).toEqual([])
  })
})

/** The most clones that ran at one time on a node, whose disks lie on one storage. */
function mostAtOnce(node: string): number {
  const clones = lab.sim.tasks().filter((task) => task.node === node && task.type === 'qmclone')
  return Math.max(
    ...clones.map(
      ({ startMs }) =>
        clones.filter((other) => other.startMs <= startMs && (other.endMs ?? startMs) >= startMs).length,
    ),
  )
}
