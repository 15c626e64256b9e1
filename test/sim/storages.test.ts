import { describe, expect, it } from 'vitest'
import { defaultWorld, type World, type WorldStorage } from '../../sim/index.ts'
import { openSim } from './harness.ts'

const gib = 1024 ** 3

/** The default world with one more storage, and a template whose disk lies on it. */
function worldWith(storage: WorldStorage, disk: string, node = 'pve1') {
  const world = defaultWorld({ version: 9 })
  const [first] = world.vms ?? []
  const wider: World = {
    ...world,
    storages: [...world.storages, storage],
    volumes: [
      ...(world.volumes ?? []),
      { storage: storage.storage, node, name: disk, sizeBytes: 2 * gib, usedBytes: gib },
    ],
    vms: [
      ...(world.vms ?? []),
      {
        vmid: 9100,
        node,
        config: { ...first?.config, scsi0: `${storage.storage}:${disk},size=2G`, name: 'other' },
      },
    ],
  }
  return { ...wider, tokens: world.tokens }
}

const clonePath = '/nodes/pve1/qemu/9100/clone'

describe('storages of other kinds', () => {
  it('clones on LVM-thin without files and formats', async () => {
    const thin: WorldStorage = {
      storage: 'thin',
      type: 'lvmthin',
      vgname: 'pve',
      thinpool: 'data',
      content: ['images'],
    }
    const world = worldWith(thin, 'base-9100-disk-0')
    const { admin, task } = openSim({ world, tokens: world.tokens })
    expect(await task((await admin('POST', clonePath, { newid: '101', full: '0' })).data)).toBe('OK')
    expect(await task((await admin('POST', clonePath, { newid: '102', full: '1' })).data)).toBe('OK')
    const drive = async (vmid: number) => (await admin('GET', `/nodes/pve1/qemu/${vmid}/config`)).data.scsi0
    expect(await drive(101)).toBe('thin:base-9100-disk-0/vm-101-disk-0,size=2G')
    expect(await drive(102)).toBe('thin:vm-102-disk-0,size=2G')
    const upload = await admin.upload('pve1', 'thin', 'x.iso', new Uint8Array(10))
    expect(upload.message).toBe("can't upload to storage type 'lvmthin'\n")
  })

  it('cannot make linked clones on thick LVM', async () => {
    const thick: WorldStorage = { storage: 'thick', type: 'lvm', vgname: 'vg', content: ['images'] }
    const world = worldWith(thick, 'base-9100-disk-0')
    const { admin } = openSim({ world, tokens: world.tokens })
    const refused = await admin('POST', clonePath, { newid: '101', full: '0' })
    expect(refused.message).toBe(
      "Linked clone feature is not supported for 'thick:base-9100-disk-0' (scsi0)\n",
    )
  })

  it('clones over to another node where all disks are shared, and only there', async () => {
    const nfs: WorldStorage = {
      storage: 'shared',
      type: 'nfs',
      path: '/mnt/pve/shared',
      content: ['images', 'iso'],
    }
    const world = worldWith(nfs, '9100/base-9100-disk-0.qcow2')
    const { sim, admin, task } = openSim({ world, tokens: world.tokens })
    const form = { newid: '101', full: '0', target: 'pve2' }
    expect(await task((await admin('POST', clonePath, form)).data)).toBe('OK')
    expect(sim.vms().find((vm) => vm.vmid === 101)?.node).toBe('pve2')
    const local = await admin('POST', '/nodes/pve1/qemu/9000/clone', { ...form, newid: '102' })
    expect(local.message).toBe("can't clone VM to node 'pve2' (VM uses local storage)\n")
  })

  it('shows an ISO on shared storage from every node, and on local storage from its own', async () => {
    const nfs: WorldStorage = {
      storage: 'shared',
      type: 'nfs',
      path: '/mnt/pve/shared',
      content: ['images', 'iso'],
    }
    const world = worldWith(nfs, '9100/base-9100-disk-0.qcow2')
    const { admin, task } = openSim({ world, tokens: world.tokens })
    for (const storage of ['shared', 'local'])
      await task((await admin.upload('pve1', storage, 'x.iso', new Uint8Array(10).fill(1))).data)
    const isos = async (node: string, storage: string) =>
      (await admin('GET', `/nodes/${node}/storage/${storage}/content?content=iso`)).data.map(
        (iso: { volid: string }) => iso.volid,
      )
    expect(await isos('pve2', 'shared')).toEqual(['shared:iso/x.iso'])
    expect(await isos('pve2', 'local')).toEqual([])
    expect(await isos('pve1', 'local')).toEqual(['local:iso/x.iso'])
  })

  it('waits for the cluster-wide lock of a shared storage in its own words', async () => {
    const nfs: WorldStorage = { storage: 'shared', type: 'nfs', path: '/mnt/pve/shared', content: ['images'] }
    const world = worldWith(nfs, '9100/base-9100-disk-0.qcow2')
    const { sim, clock, admin } = openSim({
      world,
      tokens: world.tokens,
      durations: { storageLockMs: 12_000 },
    })
    for (const newid of ['101', '102']) await admin('POST', clonePath, { newid, full: '0' })
    await clock.runUntilIdle()
    expect(sim.tasks().map((task) => task.exitstatus)).toEqual([
      'OK',
      "clone failed: cfs-lock 'storage-shared' error: got lock request timeout",
    ])
    expect(sim.tasks()[1]?.log).toContain("trying to acquire cfs lock 'storage-shared' ...")
  })
})
