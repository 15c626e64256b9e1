import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { openSim } from './harness.ts'

describe.each([8, 9] as const)('the life of a VM on PVE %i', (version) => {
  it('goes from clone to nothing left behind', async () => {
    const { api, task, sim } = openSim({ version })
    expect((await api('GET', '/cluster/nextid?vmid=101')).data).toBe('101')
    const bytes = new Uint8Array(4096).fill(7)
    const checksum = createHash('sha256').update(bytes).digest('hex')
    const uploaded = await api.upload('pve1', 'local', 'seed.iso', bytes, {
      'checksum-algorithm': 'sha256',
      checksum,
    })
    expect(await task(uploaded.data)).toBe('OK')

    const form = { newid: '101', name: 'egress-a', pool: 'egress', full: '1', description: 'mine' }
    const cloned = await api('POST', '/nodes/pve1/qemu/9000/clone', form)
    expect(cloned.data).toMatch(
      /^UPID:pve1:[0-9A-F]{8}:[0-9A-F]{8}:[0-9A-F]{8}:qmclone:9000:egress@pve!ctl:$/,
    )
    expect(await task(cloned.data)).toBe('OK')

    const set = { ide2: 'local:iso/seed.iso,media=cdrom', boot: 'order=scsi0', tags: 'B;a', cores: '2' }
    expect((await api('PUT', '/nodes/pve1/qemu/101/config', set)).status).toBe(200)
    const { data: config } = await api('GET', '/nodes/pve1/qemu/101/config')
    expect(config).toMatchObject({
      name: 'egress-a',
      ide2: 'local:iso/seed.iso,media=cdrom,size=4K',
      tags: 'a;b',
      cores: 2,
      boot: 'order=scsi0',
      scsi0: 'vmdata:101/vm-101-disk-0.qcow2,size=2G',
      description: 'mine',
    })
    expect(
      await task((await api('PUT', '/nodes/pve1/qemu/101/resize', { disk: 'scsi0', size: '3G' })).data),
    ).toBe('OK')
    expect(await task((await api('POST', '/nodes/pve1/qemu/101/status/start')).data)).toBe('OK')
    const silent = await api('GET', '/nodes/pve1/qemu/101/agent/network-get-interfaces')
    expect(silent.message).toBe('QEMU guest agent is not running\n')
    expect(await task((await api('POST', '/nodes/pve1/qemu/101/status/stop')).data)).toBe('OK')
    expect(await task((await api('DELETE', '/nodes/pve1/qemu/101?purge=1')).data)).toBe('OK')
    expect(await task((await api('DELETE', '/nodes/pve1/storage/local/content/iso/seed.iso')).data)).toBe(
      'OK',
    )

    expect(sim.vms().map((vm) => vm.vmid)).toEqual([9000, 9001, 9002])
    expect(sim.volumes().filter((volume) => volume.vmid === 101 || volume.content === 'iso')).toEqual([])
  })
})
