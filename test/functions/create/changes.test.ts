import { describe, expect, it } from 'vitest'
import { changes, templateFault } from '../../../functions/create/changes.ts'
import type { VmConfig } from '../../../lib/proxmox/index.ts'
import { readConfig } from '../../../lib/proxmox/vm-config.ts'
import { aFullSpec } from '../../lib/a-row.ts'

const seed = 'local:iso/egress-test-a-g1.iso'
const mac = '02:00:00:00:00:0a'
const row = { spec: aFullSpec, mac, seed }
const wanted = { deployment: 'test', bridge: 'vmbr0' }
const disk = { slot: 'scsi0', volume: 'vmdata:5001/vm-5001-disk-0.qcow2', sizeBytes: 2 ** 31, options: {} }

/** A VM that is what its row asks for. */
const settled: VmConfig = {
  digest: 'd',
  protection: false,
  template: false,
  onboot: true,
  agent: true,
  tags: new Set(['egress', 'egress-test']),
  cores: 1,
  memoryMiB: 512,
  net0: { model: 'virtio', mac: mac.toUpperCase(), bridge: 'vmbr0', options: {} },
  bootDisk: disk,
  disks: [disk],
  cdroms: [{ slot: 'ide2', volume: seed, cloudInit: false }],
  raw: { boot: 'order=scsi0' },
}
const change = (config: Partial<VmConfig>, over: Partial<Parameters<typeof changes>[2]> = {}) =>
  changes({ ...settled, ...config }, row, { ...wanted, ...over })

describe('create: changes', () => {
  it('are none for a VM that is what its row asks for', () => {
    expect(change({})).toBeUndefined()
  })

  // Report: bpg/terraform-provider-proxmox#321
  // Report: Telmate/terraform-provider-proxmox#951
  it.each(['egress-test;egress', 'Egress,EGRESS-TEST', 'egress egress-test egress'])(
    'are none for a VM that is what its row asks for, however its tags are ordered, spelt and joined: %s',
    (tags) => {
      expect(change({ tags: readConfig({ digest: 'd', tags }).tags })).toBeUndefined()
    },
  )

  it('are all of it, in one, for a fresh clone', () => {
    const { net0: _, ...bare } = settled
    const fresh = {
      ...bare,
      onboot: false,
      agent: false,
      tags: new Set<string>(),
      cores: 2,
      memoryMiB: 2048,
      cdroms: [{ slot: 'ide0', cloudInit: true }],
      raw: {},
    }
    expect(changes(fresh, row, wanted)).toEqual({
      set: {
        cores: 1,
        memory: 512,
        net0: 'virtio=02:00:00:00:00:0A,bridge=vmbr0',
        ide2: `${seed},media=cdrom`,
        boot: 'order=scsi0',
        tags: 'egress;egress-test',
        agent: 'enabled=1',
        onboot: true,
      },
      delete: ['ide0'],
    })
  })

  it.each<[string, Partial<VmConfig>, object]>([
    ['cores', { cores: 4 }, { cores: 1 }],
    ['sockets, which multiply the cores', { raw: { ...settled.raw, sockets: '2' } }, { sockets: 1 }],
    ['memory', { memoryMiB: 1024 }, { memory: 512 }],
    ['a balloon above the memory', { raw: { ...settled.raw, balloon: '2048' } }, { balloon: 0 }],
    ['a missing tag', { tags: new Set(['egress']) }, { tags: 'egress;egress-test' }],
    [
      'an inherited tag',
      { tags: new Set(['egress', 'egress-test', 'golden']) },
      { tags: 'egress;egress-test' },
    ],
    ['the agent', { agent: false }, { agent: 'enabled=1' }],
    ['onboot', { onboot: false }, { onboot: true }],
    ['the boot order', { raw: { boot: 'order=scsi0;net0' } }, { boot: 'order=scsi0' }],
    [
      'another seed, with the boot order that Proxmox would extend',
      { cdroms: [{ slot: 'ide2', volume: 'local:iso/old.iso', cloudInit: false }] },
      { ide2: `${seed},media=cdrom`, boot: 'order=scsi0' },
    ],
    [
      'the seed in another drive',
      { cdroms: [{ slot: 'ide0', volume: seed, cloudInit: false }] },
      { ide2: `${seed},media=cdrom`, boot: 'order=scsi0' },
    ],
  ])('mend %s and nothing else', (_, config, set) => {
    expect(change(config)).toEqual({ set, delete: [] })
  })

  it('leave a balloon alone that fits, and sockets that are one', () => {
    expect(change({ raw: { ...settled.raw, balloon: '512', sockets: '1' } })).toBeUndefined()
  })

  it('take away inherited cloud-init drives, but not the one that the seed replaces', () => {
    const cdroms = [
      { slot: 'ide2', volume: 'local-lvm:vm-9000-cloudinit', cloudInit: true },
      { slot: 'scsi1', volume: 'local-lvm:vm-9000-cloudinit-1', cloudInit: true },
      { slot: 'ide3', cloudInit: false },
    ]
    expect(change({ cdroms })).toEqual({
      set: { ide2: `${seed},media=cdrom`, boot: 'order=scsi0' },
      delete: ['scsi1'],
    })
  })

  // Report: TAPPaaS/TAPPaaS#210
  // Report: ansible-collections/community.general#1342
  it.each<[string, Partial<NonNullable<VmConfig['net0']>>, number | undefined, string]>([
    ['another MAC', { mac: 'BC:24:11:00:00:01' }, undefined, 'virtio=02:00:00:00:00:0A,bridge=vmbr0'],
    ['another bridge', { bridge: 'vmbr9' }, undefined, 'virtio=02:00:00:00:00:0A,bridge=vmbr0'],
    ['no VLAN where one is wanted', {}, 42, 'virtio=02:00:00:00:00:0A,bridge=vmbr0,tag=42'],
    [
      'a VLAN where none is wanted',
      { options: { tag: '7' } },
      undefined,
      'virtio=02:00:00:00:00:0A,bridge=vmbr0',
    ],
    [
      'another VLAN, its other options kept',
      { model: 'e1000', options: { tag: '7', firewall: '1', queues: '2' } },
      42,
      'e1000=02:00:00:00:00:0A,bridge=vmbr0,tag=42,firewall=1,queues=2',
    ],
  ])('write the whole NIC, MAC and all, for %s', (_, nic, vlan, net0) => {
    const config = { net0: { model: 'virtio', mac: mac.toUpperCase(), bridge: 'vmbr0', options: {}, ...nic } }
    expect(change(config, { vlan })).toEqual({ set: { net0 }, delete: [] })
  })

  it('leave a NIC alone that is on the right VLAN already', () => {
    const net0 = { model: 'virtio', mac, bridge: 'vmbr0', options: { tag: '42', firewall: '1' } }
    expect(change({ net0 }, { vlan: 42 })).toBeUndefined()
  })
})

describe('create: template', () => {
  // Report: Telmate/terraform-provider-proxmox#901
  it('must have a disk to boot from, and none where the seed goes', () => {
    const { bootDisk: _, ...diskless } = settled
    expect(templateFault(settled)).toBeUndefined()
    expect(templateFault(diskless)).toBe('has no disk to boot from')
    expect(templateFault({ ...settled, disks: [disk, { ...disk, slot: 'ide2' }] })).toBe(
      'has a disk on ide2, where the seed goes',
    )
  })
})
