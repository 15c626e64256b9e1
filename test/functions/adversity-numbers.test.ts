import { afterEach, describe, expect, it } from 'vitest'
import { hashNumber } from '../../lib/names.ts'
import { byHand, everywhere, worldOf } from '../lab/by-hand.ts'
import { atStep, type Lab, type LabOptions, openLab, settled } from '../lab/lab.ts'
import { deadLetterCodes, expectDeletable, portrait } from './adversity.ts'

let lab: Lab
const open = async (options: LabOptions) => {
  lab = await openLab(options)
}
afterEach(() => lab?.close())

/** The number that a proxy of this uid tries first. */
const firstChoice = (uid: string) => 5000 + (hashNumber(uid) % 1000)

/** A stranger is as it was before, and none of our tasks was ever about it. */
function expectUntouched(vmid: number, before: ReturnType<typeof portrait>) {
  expect(portrait(lab, vmid)).toEqual(before)
  const tasks = lab.sim.tasks().filter(({ id, user }) => id === String(vmid) && user.startsWith('egress@'))
  expect(tasks).toEqual([])
}

describe.each(everywhere)('on PVE $version, with sight of $sight', ({ version, sight }) => {
  describe('a number that another takes between reserve and clone', () => {
    // Report: ionos-cloud/cluster-api-provider-proxmox#842
    // Report: bpg/terraform-provider-proxmox#1610
    // Report: bpg/terraform-provider-proxmox#1567
    it.each([
      ['a VM on the same node', 0, {}],
      ['a VM on another node', 1, {}],
      ['a VM in our own pool', 0, { pool: 'egress' }],
      ['a VM in our own pool on another node', 1, { pool: 'egress' }],
      ['a full clone', 0, { full: '1' }],
    ])('for %s is left to it for ever', async (_, further, form) => {
      await open({ world: worldOf({ version, sight }) })
      lab.request('alpha')
      const { place } = await atStep(lab, 'alpha', 'clone')
      const taken = place?.vmid ?? 0
      const index = (Number(place?.node.slice(3)) - 1 + further) % 3
      await byHand(lab).clone(`pve${index + 1}`, 9000 + index, taken, { name: 'theirs', ...form })
      const before = portrait(lab, taken)

      const ready = await settled(lab, 'alpha')
      expect(ready.phase).toBe('Ready')
      expect(ready.place?.vmid).not.toBe(taken)
      expectUntouched(taken, before)
      const disks = lab.sim.volumes().filter((volume) => volume.vmid === taken)
      await expectDeletable(lab, 'alpha', { vms: [taken], volumes: disks.map(({ volid }) => volid) })
      expectUntouched(taken, before)
      expect(deadLetterCodes(lab)).toEqual([])
    })

    // Report: k8s-proxmox/cluster-api-provider-proxmox#94
    it('for a copy of its own earlier VM, description and all, is left to it', async () => {
      await open({ world: worldOf({ version, sight }), cluster: { vmids: { from: 5000, to: 5003 } } })
      lab.request('alpha')
      const first = (await settled(lab, 'alpha')).place
      const hand = byHand(lab)
      await hand.clone(first?.node ?? '', first?.vmid ?? 0, 5900, { full: '1', name: 'copy' })
      lab.request('alpha', { generation: 2 })
      // The number it had is taken when it comes to choose again, and the next one just after it has chosen.
      await lab.run(() => lab.row('alpha')?.step === 'reserve')
      await hand.clone('pve1', 9000, first?.vmid ?? 0, { name: 'theirs' })
      const { place } = await atStep(lab, 'alpha', 'clone')
      const taken = place?.vmid ?? 0
      expect(taken).not.toBe(first?.vmid)
      await hand.clone(first?.node ?? '', 5900, taken, { full: '1', name: 'copy', pool: 'egress' })
      const before = portrait(lab, taken)
      expect(before?.config.description).toContain('"uid":"alpha"')
      const ready = await settled(lab, 'alpha')
      expect(ready).toMatchObject({ phase: 'Ready', generation: 2 })
      expect(ready.place?.vmid).not.toBe(taken)
      lab.remove('alpha')
      await lab.run()
      expect(lab.row('alpha')?.phase).toBe('Deleted')
      expect(portrait(lab, taken)).toEqual(before)
      expect(lab.claims.all()).toEqual([])
    })

    // Report: ansible-collections/community.proxmox#58
    it('for a VM still in the making is left to it', async () => {
      await open({ world: worldOf({ version, sight }) })
      lab.request('alpha')
      const { place } = await atStep(lab, 'alpha', 'clone')
      const taken = place?.vmid ?? 0
      const index = Number(place?.node.slice(3)) - 1
      await byHand(lab).beginClone(`pve${index + 1}`, 9000 + index, taken, { name: 'theirs', full: '1' })
      const ready = await settled(lab, 'alpha')
      expect(ready.phase).toBe('Ready')
      expect(ready.place?.vmid).not.toBe(taken)
      const theirs = portrait(lab, taken)
      expect(theirs?.name).toBe('theirs')
      await expectDeletable(lab, 'alpha', {
        vms: [taken],
        volumes: [expect.stringContaining(`vm-${taken}-disk-0`)] as string[],
      })
      expectUntouched(taken, theirs)
    })

    it('for a container is left to it', async () => {
      const taken = firstChoice('alpha')
      const world = worldOf({ version, sight })
      world.vms?.push({ vmid: taken, node: 'pve2', container: true, config: { hostname: 'theirs' } })
      await open({ world })
      // It came just after the number was found free.
      lab.sim.faults.add({
        match: { method: 'GET', path: '^/cluster/nextid' },
        times: 1,
        effect: { kind: 'answer', answer: { status: 200, data: String(taken) } },
      })
      lab.request('alpha')
      expect((await atStep(lab, 'alpha', 'clone')).place?.vmid).toBe(taken)
      const before = portrait(lab, taken)
      const ready = await settled(lab, 'alpha')
      expect(ready.phase).toBe('Ready')
      expect(ready.place?.vmid).not.toBe(taken)
      await expectDeletable(lab, 'alpha', { vms: [taken] })
      expectUntouched(taken, before)
    })
  })

  it('a number under which a disk of another lies is passed over by a token that may see disks, and the disk is kept', async () => {
    const littered = firstChoice('alpha')
    const world = worldOf({ version, sight })
    for (const ugid of ['egress@pve', 'egress@pve!ctl'])
      world.acl?.push({ path: '/storage/vmdata', ugid, role: 'PVEDatastoreAdmin', propagate: true })
    for (const { name } of world.nodes) {
      world.volumes?.push({
        storage: 'vmdata',
        node: name,
        name: `${littered}/vm-${littered}-disk-3.qcow2`,
        sizeBytes: 1024 ** 3,
        vmid: littered,
      })
    }
    await open({ world })
    lab.request('alpha')
    const ready = await settled(lab, 'alpha')
    expect(ready.phase).toBe('Ready')
    expect(ready.place?.vmid).not.toBe(littered)
    const volid = `vmdata:${littered}/vm-${littered}-disk-3.qcow2`
    await expectDeletable(lab, 'alpha', { volumes: [volid, volid, volid] })
  })

  // Proxmox gives a cloud-init drive a name of its own, so what is left of one is in the way of the next.
  // Report: truenas/truenas-proxmox-plugin#88
  // Report: sergelogvinov/proxmox-csi-plugin#598
  it('a number under which a volume lies that only a clone trips over is passed over, and the volume is kept', async () => {
    const littered = firstChoice('alpha')
    const world = worldOf({ version, sight })
    world.roles = { ...world.roles, EgressVm: [...(world.roles?.EgressVm ?? []), 'VM.Config.Cloudinit'] }
    const drive = (vmid: number) => `${vmid}/vm-${vmid}-cloudinit.qcow2`
    for (const [index, { name: node }] of world.nodes.entries()) {
      const template = world.vms?.find(({ vmid }) => vmid === 9000 + index)
      if (template) template.config.ide2 = `vmdata:${drive(9000 + index)},media=cdrom`
      for (const vmid of [9000 + index, littered])
        world.volumes?.push({ storage: 'vmdata', node, name: drive(vmid), sizeBytes: 4 * 1024 ** 2, vmid })
    }
    await open({ world })
    lab.request('alpha')
    const ready = await settled(lab, 'alpha')
    expect(ready).toMatchObject({ phase: 'Ready', littered: [littered] })
    expect(ready.place?.vmid).not.toBe(littered)
    expect(deadLetterCodes(lab)).toEqual([])
    expect(lab.claims.all().map(({ sort }) => sort)).not.toContain(String(littered))
    const kept = lab.sim.volumes().filter(({ volid }) => volid === `vmdata:${drive(littered)}`)
    expect(kept).toHaveLength(3)
    await expectDeletable(lab, 'alpha', {
      volumes: [9000, littered, 9001, littered, 9002, littered].map((vmid) => `vmdata:${drive(vmid)}`),
    })
  })

  it('two proxies share a range of one number, one after the other', async () => {
    await open({ world: worldOf({ version, sight }), cluster: { vmids: { from: 5000, to: 5000 } } })
    lab.request('alpha')
    await settled(lab, 'alpha')
    lab.request('beta')
    await lab.run(() => lab.row('beta')?.problem?.code === 'RangeExhausted')
    expect(lab.row('beta')?.problem?.hint).toMatch(/widen .*vmids/)
    lab.remove('alpha')
    await lab.run()
    expect(lab.row('alpha')?.phase).toBe('Deleted')
    expect(lab.row('beta')).toMatchObject({ phase: 'Ready', place: { vmid: 5000 } })
    expect(deadLetterCodes(lab)).toEqual([])
    await expectDeletable(lab, 'beta')
  })
})
