import { afterEach, describe, expect, it } from 'vitest'
import { defaultWorld } from '../../sim/index.ts'
import { deadLetterCodes, expectDeletable, portrait } from '../functions/adversity.ts'
import { byHand, worldOf } from '../lab/by-hand.ts'
import { type Lab, openLab, settled } from '../lab/lab.ts'

let lab: Lab
afterEach(() => lab?.close())

const vmidOf = () => lab.row('alpha')?.place?.vmid ?? 0

describe.each([
  { version: 8, sight: 'pool' },
  { version: 9, sight: 'audit' },
] as const)('on PVE $version, with sight of $sight', (where) => {
  // Report: ansible-collections/community.proxmox#97
  it('another VM of the same name, in the same pool and with the same tags, is not taken for ours', async () => {
    lab = await openLab({ world: worldOf(where) })
    lab.request('alpha')
    const { place } = await settled(lab, 'alpha')
    const node = place?.node ?? ''
    const name = String(byHand(lab).vm(vmidOf()).name)
    // Before ours and after it in any list.
    for (const vmid of [4000, 7000]) {
      await byHand(lab).clone(node, place?.template ?? 0, vmid, { full: '1', name, pool: 'egress' })
      byHand(lab).qm(vmid, 'set', '--tags', 'egress;egress-test')
    }
    const before = [4000, 7000].map((vmid) => portrait(lab, vmid))
    lab.request('alpha', { generation: 2 })
    expect(await settled(lab, 'alpha')).toMatchObject({ phase: 'Ready', generation: 2 })
    const theirs = lab.sim.volumes().filter(({ vmid }) => vmid === 4000 || vmid === 7000)
    await expectDeletable(lab, 'alpha', { vms: [4000, 7000], volumes: theirs.map(({ volid }) => volid) })
    expect([4000, 7000].map((vmid) => portrait(lab, vmid))).toEqual(before)
  })
})

describe.each([8, 9] as const)('a task of PVE %i that ends with warnings', (version) => {
  // Report: Telmate/proxmox-api-go#247
  // Report: Zakkaus/gentoo-install#303
  it('has done its work', async () => {
    const world = defaultWorld({ version })
    // The start warns of a drive that the host does not have.
    for (const { config } of world.vms ?? []) config.ide3 = 'cdrom,media=cdrom'
    lab = await openLab({ world })
    lab.request('alpha')
    expect((await settled(lab, 'alpha')).phase).toBe('Ready')
    const starts = lab.sim.tasks().filter(({ type }) => type === 'qmstart')
    expect(starts.map(({ exitstatus }) => exitstatus)).toEqual(['WARNINGS: 1'])
    await expectDeletable(lab, 'alpha')
    expect(deadLetterCodes(lab)).toEqual([])
    expect(lab.decisions.filter(({ outcome }) => outcome === 'back')).toEqual([])
  })
})
