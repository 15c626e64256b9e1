import { afterEach, describe, expect, it } from 'vitest'
import { hashNumber } from '../../lib/names.ts'
import { CREATE_STEPS, type CreateStep } from '../../lib/record.ts'
import { byHand, everywhere, resume, worldOf } from '../lab/by-hand.ts'
import { atStep, type Lab, type LabOptions, openLab, settled } from '../lab/lab.ts'
import { deadLetterCodes, expectDeletable, expectNothingLeft, portrait } from './adversity.ts'

let lab: Lab
const open = async (options: LabOptions) => {
  lab = await openLab(options)
}
afterEach(() => lab?.close())

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const withVm = CREATE_STEPS.filter((step) => step !== 'reserve' && step !== 'clone')
const vmidOf = (uid = 'alpha') => lab.row(uid)?.place?.vmid ?? 0

describe.each(everywhere)('on PVE $version, with sight of $sight', (where) => {
  describe('protection', () => {
    it('that the template hands down is turned off', async () => {
      const world = worldOf(where)
      for (const vm of world.vms ?? []) vm.config.protection = 1
      await open({ world })
      lab.request('alpha')
      expect((await settled(lab, 'alpha')).phase).toBe('Ready')
      await expectDeletable(lab, 'alpha')
    })

    // Report: Telmate/terraform-provider-proxmox#1043
    it('that a person set keeps a VM running until the person takes it off', async () => {
      await open({ world: worldOf(where) })
      lab.request('alpha')
      await settled(lab, 'alpha')
      byHand(lab).qm(vmidOf(), 'set', '--protection', '1')
      lab.remove('alpha')
      await lab.run()
      const row = lab.row('alpha')
      expect(row).toMatchObject({ phase: 'Failed', problem: { code: 'Protected' } })
      expect(byHand(lab).vm(vmidOf()).running).toBe(true)
      expect(byHand(lab).typeHint(row?.problem?.hint ?? '')).toEqual([`qm set ${vmidOf()} --protection 0`])
      await expectDeletable(lab, 'alpha')
      expect(deadLetterCodes(lab)).toEqual(['Protected'])
    })
  })

  describe('a mark that is edited away', () => {
    it.each(['start', 'address', 'verify'] as const)('at the step %s is written again', async (step) => {
      await open({ world: worldOf(where) })
      lab.request('alpha')
      await atStep(lab, 'alpha', step)
      byHand(lab).qm(vmidOf(), 'set', '--description', 'what is this?')
      await lab.run()
      expect(lab.row('alpha')?.phase).toBe('Ready')
      await expectDeletable(lab, 'alpha')
      expect(deadLetterCodes(lab)).toEqual([])
    })

    it('of a VM in use is written again when the VM is deleted', async () => {
      await open({ world: worldOf(where) })
      lab.request('alpha')
      await settled(lab, 'alpha')
      byHand(lab).qm(vmidOf(), 'set', '--description', 'what is this?')
      await expectDeletable(lab, 'alpha')
      expect(deadLetterCodes(lab)).toEqual([])
    })

    it('before the seed is in the VM is a person’s to put back', async () => {
      await open({ world: worldOf(where) })
      lab.request('alpha')
      await atStep(lab, 'alpha', 'configure')
      byHand(lab).qm(vmidOf(), 'set', '--description', 'what is this?')
      await lab.run()
      const { problem } = lab.row('alpha') ?? {}
      expect(problem?.code).toBe('MarkLost')
      const line = /(\{.*\})/.exec(problem?.hint ?? '')?.[1] ?? ''
      expect(JSON.parse(line).egress).toMatchObject({ deployment: 'test', uid: 'alpha', vmid: vmidOf() })
      byHand(lab).qm(vmidOf(), 'set', '--description', line)
      resume(lab, 'alpha')
      await lab.run()
      expect(lab.row('alpha')?.phase).toBe('Ready')
      await expectDeletable(lab, 'alpha')
    })
  })

  it('a copy made by hand, description and all, is never touched', async () => {
    await open({ world: worldOf(where) })
    lab.request('alpha')
    const { place } = await settled(lab, 'alpha')
    const node = place?.node ?? ''
    await byHand(lab).clone(node, vmidOf(), 5001, { full: '1', name: 'copy', pool: 'egress' })
    const before = portrait(lab, 5001)
    expect(before?.config.description).toContain('"uid":"alpha"')
    lab.request('alpha', { generation: 2 })
    await lab.run()
    expect(lab.row('alpha')).toMatchObject({ phase: 'Ready', generation: 2 })
    const disks = lab.sim.volumes().filter(({ vmid }) => vmid === 5001)
    await expectDeletable(lab, 'alpha', { vms: [5001], volumes: disks.map(({ volid }) => volid) })
    expect(portrait(lab, 5001)).toEqual(before)
  })

  describe('a VM that a person destroys', () => {
    it.each(withVm)('at the step %s is made again', async (step) => {
      await open({ world: worldOf(where) })
      lab.request('alpha')
      await atStep(lab, 'alpha', step)
      await byHand(lab).destroy(vmidOf())
      await lab.run()
      expect(lab.row('alpha')?.phase).toBe('Ready')
      expect(byHand(lab).vm(vmidOf()).running).toBe(true)
      await expectDeletable(lab, 'alpha')
      expect(deadLetterCodes(lab)).toEqual([])
    })

    it('each time is made again three times, and then it is told', async () => {
      await open({ world: worldOf(where) })
      lab.request('alpha')
      for (let times = 0; times < 4; times++) {
        await atStep(lab, 'alpha', 'configure')
        await byHand(lab).destroy(vmidOf())
        await lab.run(() => lab.row('alpha')?.step !== 'configure')
      }
      await lab.run()
      expect(lab.row('alpha')).toMatchObject({ phase: 'Failed', problem: { code: 'VmGone' } })
      resume(lab, 'alpha')
      await lab.run()
      expect(lab.row('alpha')?.phase).toBe('Ready')
      await expectDeletable(lab, 'alpha')
    })

    // Report: github-aws-runners/terraform-aws-github-runner#4724
    it('while it is in use leaves nothing when the proxy is deleted: its seed is swept on every node', async () => {
      await open({ world: worldOf(where) })
      lab.request('alpha')
      await settled(lab, 'alpha')
      await byHand(lab).destroy(vmidOf())
      await expectDeletable(lab, 'alpha')
      const swept = lab.calls.filter(
        ({ call, status }) => call.startsWith('DELETE') && call.includes('content') && status === 200,
      )
      expect(new Set(swept.map(({ node }) => node))).toEqual(new Set(['pve1', 'pve2', 'pve3']))
    })
  })

  it('a VM that stops each time it is started is told of', async () => {
    await open({ world: worldOf(where) })
    lab.request('alpha')
    for (let times = 0; times < 4; times++) {
      await atStep(lab, 'alpha', 'address')
      await byHand(lab).stop(vmidOf())
      await lab.run(() => lab.row('alpha')?.step !== 'address')
    }
    await lab.run()
    expect(lab.row('alpha')).toMatchObject({ phase: 'Failed', problem: { code: 'VmBroken' } })
    await expectDeletable(lab, 'alpha')
  })

  it.each(withVm)('a VM that a person stops at the step %s is started again', async (step) => {
    await open({ world: worldOf(where) })
    lab.request('alpha')
    await atStep(lab, 'alpha', step)
    await byHand(lab).stop(vmidOf())
    await lab.run()
    expect(lab.row('alpha')?.phase).toBe('Ready')
    expect(byHand(lab).vm(vmidOf()).running).toBe(true)
    await expectDeletable(lab, 'alpha')
  })

  // Report: bpg/terraform-provider-proxmox#391
  // Report: Telmate/terraform-provider-proxmox#1343
  it.each(withVm)('a VM that moves to another node at the step %s is followed', async (step) => {
    const world = worldOf(where)
    for (const storage of world.storages) storage.shared = true
    for (const volume of world.volumes ?? []) delete volume.node
    await open({ world, cluster: { isoStorageShared: true, storageShared: true } })
    lab.request('alpha')
    const { place } = await atStep(lab, 'alpha', step)
    const target = place?.node === 'pve1' ? 'pve2' : 'pve1'
    byHand(lab).qm(vmidOf(), 'migrate', target, '--online')
    await lab.run()
    expect(lab.row('alpha')).toMatchObject({ phase: 'Ready' })
    expect(byHand(lab).vm(vmidOf())).toMatchObject({ node: target, running: true })
    await expectDeletable(lab, 'alpha')
  })

  // Report: bpg/terraform-provider-proxmox#586
  it('a VM that moves away from its seed before it is configured gets another', async () => {
    await open({ world: worldOf(where), cluster: { clone: 'full' } })
    lab.request('alpha')
    const { place } = await atStep(lab, 'alpha', 'configure')
    const target = place?.node === 'pve1' ? 'pve2' : 'pve1'
    byHand(lab).qm(vmidOf(), 'migrate', target)
    await lab.run()
    expect(lab.row('alpha')?.phase).toBe('Ready')
    expect(byHand(lab).vm(vmidOf())).toMatchObject({ node: target, running: true })
    await expectDeletable(lab, 'alpha')
  })

  it.each(['configure', 'start'] as const)(
    'a seed that a person deletes before the step %s is sent again',
    async (step) => {
      await open({ world: worldOf(where) })
      lab.request('alpha')
      const { place, seed } = await atStep(lab, 'alpha', step)
      await byHand(lab).deleteVolume(place?.node ?? '', seed ?? '')
      await lab.run()
      expect(lab.row('alpha')?.phase).toBe('Ready')
      await expectDeletable(lab, 'alpha')
      expect(deadLetterCodes(lab)).toEqual([])
    },
  )
})

const locks = ['backup', 'snapshot', 'migrate', 'rollback', 'snapshot-delete', 'suspending'] as const

describe.each([
  { version: 8, sight: 'audit' },
  { version: 9, sight: 'pool' },
] as const)('on PVE $version, with sight of $sight, a lock', (where) => {
  const lockAt = async (step: CreateStep | 'stop' | 'destroy', lock: string) => {
    await open({ world: worldOf(where) })
    lab.request('alpha')
    if (step === 'stop' || step === 'destroy') {
      await settled(lab, 'alpha')
      lab.remove('alpha')
    }
    await atStep(lab, 'alpha', step)
    byHand(lab).qm(vmidOf(), 'set', '--lock', lock)
  }
  const unlockIn = (ms: number) => void lab.clock.after(ms, () => byHand(lab).qm(vmidOf(), 'unlock'))

  it.each(
    locks.flatMap((lock) =>
      (['configure', 'start', 'stop', 'destroy'] as const).map((step) => [lock, step] as const),
    ),
  )('of the kind %s at the step %s is waited for, an hour long', async (lock, step) => {
    await lockAt(step, lock)
    unlockIn(HOUR_MS)
    await lab.run()
    expect(deadLetterCodes(lab)).toEqual([])
    if (step === 'configure' || step === 'start') await expectDeletable(lab, 'alpha')
    expect(lab.row('alpha')?.phase).toBe('Deleted')
    expectNothingLeft(lab)
  })

  // Report: prometheus-pve/prometheus-pve-exporter#303
  it.each(['backup', 'frobnicate'])(
    'of the kind %s that is held for seven hours fails the row, and a redrive ends well',
    async (lock) => {
      await lockAt('start', lock)
      await lab.run()
      expect(lab.row('alpha')).toMatchObject({
        phase: 'Failed',
        problem: { reason: expect.stringContaining(`locked (${lock})`) },
      })
      expect(deadLetterCodes(lab)).toEqual(['StepTimedOut'])
      byHand(lab).qm(vmidOf(), 'unlock')
      resume(lab, 'alpha')
      await lab.run()
      expect(lab.row('alpha')?.phase).toBe('Ready')
      await expectDeletable(lab, 'alpha')
    },
  )

  it('of the kind suspended does not keep a VM from being deleted', async () => {
    await lockAt('destroy', 'suspended')
    await lab.run()
    expect(lab.row('alpha')?.phase).toBe('Deleted')
    expectNothingLeft(lab)
  })
})

describe.each(everywhere)('on PVE $version, with sight of $sight, a deletion', (where) => {
  it('makes a suspect of a seed on a dead node that nothing stands on', async () => {
    await open({ world: worldOf(where) })
    lab.request('alpha')
    await settled(lab, 'alpha')
    await byHand(lab).destroy(vmidOf())
    lab.sim.setNode(lab.row('alpha')?.place?.node ?? '', 'unreachable')
    lab.remove('alpha')
    await lab.run()
    expect(lab.row('alpha')?.phase).toBe('Deleted')
    const suspects = lab.claims.suspects().map(({ kind, node, volume }) => `${kind} ${node} ${volume}`)
    expect(suspects).toContain('seed pve1 local:iso/egress-test-alpha-g1.iso')
    expect(lab.claims.all()).toEqual([])
  })

  it('that may not delete seeds fails, naming what it lacks', async () => {
    const world = worldOf(where)
    if (world.roles) world.roles.EgressSeeds = ['Datastore.AllocateTemplate']
    await open({ world })
    lab.request('alpha')
    await settled(lab, 'alpha')
    lab.remove('alpha')
    await lab.run()
    expect(lab.row('alpha')).toMatchObject({
      phase: 'Failed',
      failedStep: 'unseed',
      problem: { code: 'Forbidden', hint: expect.stringContaining('Datastore.Allocate') },
    })
    expect(byHand(lab).vm(vmidOf()).running).toBe(false)
  })

  it('waits for a storage that is away, and leaves no disk behind', async () => {
    await open({ world: worldOf(where), cluster: { clone: 'full' } })
    lab.request('alpha')
    await settled(lab, 'alpha')
    lab.remove('alpha')
    await atStep(lab, 'alpha', 'destroy')
    const offline =
      "unable to activate storage 'vmdata' - directory is expected to be a mount point but is not mounted: '/var/lib/vmdata'"
    lab.sim.setStorage('vmdata', { offline })
    lab.clock.after(30 * MINUTE_MS, () => lab.sim.setStorage('vmdata', {}))
    await lab.run()
    expect(lab.row('alpha')?.phase).toBe('Deleted')
    expectNothingLeft(lab)
  })

  it('deletes a disk that Proxmox left behind, where the token may see it', async () => {
    const world = worldOf(where)
    for (const ugid of ['egress@pve', 'egress@pve!ctl'])
      world.acl?.push({ path: '/storage/vmdata', ugid, role: 'PVEDatastoreAdmin', propagate: true })
    const vmid = 5000 + (hashNumber('alpha') % 1000)
    const stray = { storage: 'vmdata', name: `${vmid}/vm-${vmid}-disk-3.qcow2`, sizeBytes: 1024 ** 3, vmid }
    for (const { name } of world.nodes) world.volumes?.push({ ...stray, node: name })
    world.storages.push({ storage: 'other', type: 'dir', path: '/mnt/other', content: ['images'] })
    await open({ world })
    // It was not there yet when the number was chosen.
    lab.sim.faults.add({
      match: { method: 'GET', path: '/storage/vmdata/content' },
      times: 1,
      effect: { kind: 'answer', answer: { status: 200, data: [] } },
    })
    lab.request('alpha')
    expect((await settled(lab, 'alpha')).place?.vmid).toBe(vmid)
    lab.remove('alpha')
    await atStep(lab, 'alpha', 'destroy')
    // Another storage is away, so that Proxmox does not look for strays.
    lab.sim.setStorage('other', { offline: "unable to activate storage 'other' - not mounted" })
    const { place } = lab.row('alpha') ?? {}
    await lab.run()
    expect(lab.row('alpha')?.phase).toBe('Deleted')
    const left = lab.sim.volumes().filter((volume) => volume.vmid === vmid)
    expect(left.map(({ node }) => node)).toEqual(
      ['pve1', 'pve2', 'pve3'].filter((node) => node !== place?.node),
    )
  })
})
