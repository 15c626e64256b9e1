import { describe, expect, it } from 'vitest'
import type { Disks, Guest, GuestSpec } from '../../sim/index.ts'
import { openSim } from './harness.ts'

type Options = Parameters<typeof openSim>[0]

/** A guest with a machine below it, as far as the cluster sees it, with whatever a test wants otherwise. */
function aMachine(changes: Partial<Guest> = {}): { guest: Guest; end: () => void } {
  let end = () => {}
  const ended = new Promise<void>((resolve) => {
    end = resolve
  })
  return { guest: { interfaces: () => [], close: async () => end(), ended, ...changes }, end }
}

function recordedDisks(): { calls: string[]; disks: Disks } {
  const calls: string[] = []
  const disks: Disks = {
    begin: (disk) => void calls.push(`begin ${disk}`),
    clone: (disk, of, how) => void calls.push(`${how} ${disk} of ${of}`),
    resize: (disk, bytes) => void calls.push(`resize ${disk} ${bytes}`),
    remove: (disk) => void calls.push(`remove ${disk}`),
  }
  return { calls, disks }
}

const vm = '/nodes/pve1/qemu/101'

/** A cluster with one clone, 101, that was started. */
async function started(options: Options) {
  const here = openSim({ nodes: 1, disks: recordedDisks().disks, ...options })
  await here.task(
    (await here.admin('POST', '/nodes/pve1/qemu/9000/clone', { newid: '101', name: 'a', pool: 'egress' }))
      .data,
  )
  const start = await here.task((await here.admin('POST', `${vm}/status/start`)).data)
  return { ...here, start }
}

const statusOf = async ({ admin }: Pick<Awaited<ReturnType<typeof started>>, 'admin'>) => {
  const { status, qmpstatus } = (await admin('GET', `${vm}/status/current`)).data
  return { status, qmpstatus }
}

describe('a machine below a guest', () => {
  it('is told what it consists of, its disks in the order of booting', async () => {
    let spec: GuestSpec | undefined
    await started({
      guests: async (given) => {
        spec = given
        return aMachine().guest
      },
    })
    expect(spec).toMatchObject({
      cores: 1,
      disks: ['pve1/vmdata:9000/base-9000-disk-0.qcow2/101/vm-101-disk-0.qcow2'],
    })
  })

  it('names its own state', async () => {
    const here = await started({ guests: async () => aMachine({ qmpstatus: () => 'io-error' }).guest })
    expect(await statusOf(here)).toEqual({ status: 'running', qmpstatus: 'io-error' })
    expect(here.sim.vms().find(({ vmid }) => vmid === 101)?.qmpstatus).toBe('io-error')
  })

  it('that ends by itself stands still, and can be started again', async () => {
    const { guest, end } = aMachine()
    const here = await started({ guests: async () => guest })
    end()
    await here.clock.advance(1)
    expect(await statusOf(here)).toEqual({ status: 'stopped', qmpstatus: 'stopped' })
    expect(await here.task((await here.admin('POST', `${vm}/status/start`)).data)).toBe('OK')
  })

  it('that cannot be switched on fails its start, and stands still', async () => {
    const here = await started({
      guests: async () => {
        throw new Error('QEMU exited with code 1: Could not open disk')
      },
    })
    expect(here.start).toBe('start failed: QEMU exited with code 1')
    expect(here.sim.tasks().at(-1)?.log).toContain('Error: QEMU exited with code 1: Could not open disk')
    expect(await statusOf(here)).toEqual({ status: 'stopped', qmpstatus: 'stopped' })
  })

  it('answers through its agent, errors inside a 200 as well', async () => {
    const ask = async (command: string) =>
      command === 'guest-get-host-name' ? { 'host-name': 'itself' } : { error: { class: 'A', desc: 'b' } }
    const { admin } = await started({ guests: async () => aMachine({ ask }).guest })
    expect((await admin('GET', `${vm}/agent/get-host-name`)).data).toEqual({
      result: { 'host-name': 'itself' },
    })
    expect((await admin('GET', `${vm}/agent/get-osinfo`)).data).toEqual({
      result: { error: { class: 'A', desc: 'b' } },
    })
  })

  it('whose agent is silent is told of after three seconds', async () => {
    const guest = aMachine({ interfaces: () => undefined, ask: async () => undefined }).guest
    const { admin } = await started({ guests: async () => guest })
    expect(await admin('GET', `${vm}/agent/network-get-interfaces`)).toMatchObject({
      status: 500,
      message: 'QEMU guest agent is not running\n',
      tookMs: 3000,
    })
  })

  it('shuts down by itself when asked', async () => {
    const { guest, end } = aMachine({ shutDown: async () => end() })
    const here = await started({ guests: async () => guest })
    expect(await here.task((await here.admin('POST', `${vm}/status/shutdown`)).data)).toBe('OK')
    expect(await statusOf(here)).toMatchObject({ status: 'stopped' })
  })

  it('that does not shut down when asked is not made to', async () => {
    const here = await started({ guests: async () => aMachine({ shutDown: async () => {} }).guest })
    const end = await here.task((await here.admin('POST', `${vm}/status/shutdown`, { timeout: '5' })).data)
    expect(end).toBe('VM quit/powerdown failed - got timeout')
    expect(await statusOf(here)).toMatchObject({ status: 'running' })
  })
})

describe('real disks', () => {
  const base = 'pve1/vmdata:9000/base-9000-disk-0.qcow2'

  it.each([
    ['linked', '0', `${base}/101/vm-101-disk-0.qcow2`],
    ['full', '1', 'pve1/vmdata:101/vm-101-disk-0.qcow2'],
  ])('of a %s clone are made, grown and removed with their volume', async (how, full, disk) => {
    const { calls, disks } = recordedDisks()
    const { admin, task } = openSim({ nodes: 1, disks })
    const form = { newid: '101', name: 'a', pool: 'egress', full }
    await task((await admin('POST', '/nodes/pve1/qemu/9000/clone', form)).data)
    await task((await admin('PUT', `${vm}/resize`, { disk: 'scsi0', size: '4G' })).data)
    await task((await admin('DELETE', vm)).data)
    expect(calls).toEqual([
      `begin ${base}`,
      `${how} ${disk} of ${base}`,
      `resize ${disk} ${4 * 1024 ** 3}`,
      `remove ${disk}`,
    ])
  })

  it('grow below a running guest', async () => {
    const grown: [string, number][] = []
    const resize = async (disk: string, bytes: number) => void grown.push([disk, bytes])
    const { admin, task } = await started({ guests: async () => aMachine({ resize }).guest })
    await task((await admin('PUT', `${vm}/resize`, { disk: 'scsi0', size: '4G' })).data)
    expect(grown).toEqual([[`${base}/101/vm-101-disk-0.qcow2`, 4 * 1024 ** 3]])
  })
})
