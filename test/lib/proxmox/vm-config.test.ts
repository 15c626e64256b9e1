import { describe, expect, test } from 'vitest'
import { readConfig } from '../../../lib/proxmox/vm-config.ts'

const config = (options: Record<string, string>) => readConfig({ digest: 'd', ...options })

describe('vm-config', () => {
  test('reads a clone as PVE 9 shows it', () => {
    const read = config({
      name: 'egress-a',
      description: 'for people\n{"egress":{}}',
      scsi0: 'vmdata:101/vm-101-disk-0.qcow2,iothread=1,size=2G',
      ide2: 'local:iso/egress-a.iso,media=cdrom,size=372K',
      net0: 'virtio=BC:24:11:DC:91:E5,bridge=vmbr0,firewall=1,tag=5',
      boot: 'order=scsi0;ide2',
      agent: '1',
      memory: '1024',
      cores: '2',
      tags: 'a;B',
      onboot: '1',
    })
    expect(read).toMatchObject({
      name: 'egress-a',
      agent: true,
      onboot: true,
      protection: false,
      template: false,
      cores: 2,
      memoryMiB: 1024,
      tags: new Set(['a', 'b']),
      net0: {
        model: 'virtio',
        mac: 'BC:24:11:DC:91:E5',
        bridge: 'vmbr0',
        options: { firewall: '1', tag: '5' },
      },
      bootDisk: { slot: 'scsi0', volume: 'vmdata:101/vm-101-disk-0.qcow2', sizeBytes: 2 ** 31 },
      cdroms: [{ slot: 'ide2', volume: 'local:iso/egress-a.iso', cloudInit: false }],
    })
  })

  test('reads the placeholder of a clone under way', () => {
    const read = config({ lock: 'clone', description: ' qmclone temporary file' })
    expect(read.lock).toBe('clone')
    expect(read.name).toBeUndefined()
    expect(read.bootDisk).toBeUndefined()
    expect(read).toMatchObject({ cores: 1, memoryMiB: 512, disks: [], cdroms: [] })
  })

  test.each([
    ['vmdata:171/vm-171-cloudinit.qcow2,media=cdrom', true],
    ['lvm:vm-171-cloudinit,media=cdrom,size=4M', true],
    ['vmdata:cloudinit,media=cdrom', true],
    ['local:iso/cloudinit-notes.iso,media=cdrom', false],
  ])('tells whether %s is PVE’s own cloud-init drive', (value, cloudInit) => {
    expect(config({ ide0: value }).cdroms).toMatchObject([{ slot: 'ide0', cloudInit }])
  })

  test('sees an empty cdrom drive', () => {
    expect(config({ ide2: 'none,media=cdrom' }).cdroms).toEqual([{ slot: 'ide2', cloudInit: false }])
  })

  test.each([
    ['the boot order', { boot: 'order=ide2;virtio1;scsi0' }, 'virtio1'],
    ['the old bootdisk', { boot: 'cdn', bootdisk: 'virtio1' }, 'virtio1'],
    ['PVE’s own order, when nothing is named', {}, 'scsi0'],
    ['PVE’s own order, when what is named is gone', { boot: 'order=sata3' }, 'scsi0'],
  ])('finds the boot disk by %s', (_, boot, slot) => {
    const disks = { virtio1: 'a:2', scsi0: 'a:1', ide2: 'none,media=cdrom' }
    expect(config({ ...disks, ...boot }).bootDisk?.slot).toBe(slot)
  })

  test.each([
    ['enabled=1,fstrim_cloned_disks=1', true],
    ['1,type=virtio', true],
    ['type=virtio,enabled=1', true],
    ['0', false],
    ['enabled=0', false],
    ['type=virtio', false],
  ])('reads agent: %s', (agent, on) => {
    expect(config({ agent }).agent).toBe(on)
  })

  test.each([
    ['3584M', 3584 * 1024 ** 2],
    ['1.5G', 1.5 * 1024 ** 3],
    ['4096', 4096],
  ])('reads a size of %s', (size, bytes) => {
    expect(config({ scsi0: `a:1,size=${size}` }).disks[0]?.sizeBytes).toBe(bytes)
  })

  // Report: TAPPaaS/TAPPaaS#210
  test('reads a network card whose model is spelt out', () => {
    expect(config({ net0: 'model=e1000,macaddr=02:00:00:00:00:01,bridge=b' }).net0).toEqual({
      model: 'e1000',
      mac: '02:00:00:00:00:01',
      bridge: 'b',
      options: {},
    })
  })

  test('reads the memory of PVE 7 and of a hotpluggable VM', () => {
    expect(config({ memory: '2048' }).memoryMiB).toBe(2048)
    expect(config({ memory: 'current=4096' }).memoryMiB).toBe(4096)
  })
})
