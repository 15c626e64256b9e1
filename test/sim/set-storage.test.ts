import { expect, it } from 'vitest'
import { openSim } from './harness.ts'

it('a storage goes away and comes back while the cluster runs', async () => {
  const { sim, clock, admin, task } = openSim()
  const { data } = await admin('POST', '/nodes/pve1/qemu/9000/clone', { newid: '101', full: '1' })
  expect(await task(data)).toBe('OK')
  const offline =
    "unable to activate storage 'vmdata' - directory is expected to be a mount point but is not mounted"
  sim.setStorage('vmdata', { offline })
  const destroy = await admin('DELETE', '/nodes/pve1/qemu/101?destroy-unreferenced-disks=1')
  expect(await task(destroy.data)).toContain("unable to activate storage 'vmdata'")
  sim.setStorage('vmdata', {})
  const again = await admin('DELETE', '/nodes/pve1/qemu/101?destroy-unreferenced-disks=1')
  expect(await task(again.data)).toBe('OK')
  await clock.runUntilIdle()
  expect(sim.volumes().filter(({ vmid }) => vmid === 101)).toEqual([])
  expect(() => sim.setStorage('nowhere', {})).toThrow('no such storage: nowhere')
})
