import { afterEach, expect, it } from 'vitest'
import { vmName } from '../../lib/names.ts'
import { defaultWorld } from '../../sim/index.ts'
import { expectDeletable, portrait } from '../functions/adversity.ts'
import { type Lab, openLab, settled } from '../lab/lab.ts'

let lab: Lab
afterEach(() => lab?.close())

// Report: ansible-collections/community.proxmox#404
it('another’s VM and a template that have our VM’s very name are not taken for it, and not touched', async () => {
  const world = defaultWorld()
  const name = vmName({ uid: 'alpha', name: 'alpha' })
  for (const vm of world.vms ?? []) vm.config.name = name
  world.vms?.push({ vmid: 5900, node: 'pve1', config: { name, cores: 1 }, pool: 'egress' })
  lab = await openLab({ world })
  const others = [9000, 9001, 9002, 5900]
  const before = others.map((vmid) => portrait(lab, vmid))
  lab.request('alpha')
  const { place, phase } = await settled(lab, 'alpha')
  expect(phase).toBe('Ready')
  expect(others).not.toContain(place?.vmid)
  expect(portrait(lab, place?.vmid ?? 0)).toMatchObject({ name, running: true })
  await expectDeletable(lab, 'alpha', { vms: [5900] })
  expect(others.map((vmid) => portrait(lab, vmid))).toEqual(before)
})
