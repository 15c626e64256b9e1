import { describe, expect, it } from 'vitest'
import { openSim } from './harness.ts'

describe.each([8, 9] as const)('a VM under HA on PVE %i', (version) => {
  async function open() {
    const { sim, clock, admin, task } = openSim({ version })
    const clone = await admin('POST', '/nodes/pve1/qemu/9000/clone', { newid: '101', full: '1' })
    expect(await task(clone.data)).toBe('OK')
    const state = async () => (await admin('GET', '/nodes/pve1/qemu/101/status/current')).data
    const ha = (...words: string[]) => sim.root('pve1', ['ha-manager', ...words])
    return { sim, clock, admin, task, state, ha }
  }

  it('is started and stopped by the manager, some time after the task that asked for it has ended well', async () => {
    const { clock, admin, task, state, ha } = await open()
    expect(ha('add', 'vm:101', '--state', 'stopped').exitCode).toBe(0)
    for (const [verb, status] of [
      ['start', 'running'],
      ['stop', 'stopped'],
    ]) {
      const { data } = await admin('POST', `/nodes/pve1/qemu/101/status/${verb}`)
      expect(data).toContain(`:ha${verb}:101:`)
      expect(await task(data)).toBe('OK')
      expect((await state()).status).not.toBe(status)
      await clock.advance(20_000)
      expect(await state()).toMatchObject({ status, ha: { managed: 1 } })
    }
  })

  it('is started again when it stopped and should run', async () => {
    const { sim, clock, state, ha } = await open()
    ha('add', 'vm:101')
    await clock.advance(20_000)
    expect((await state()).status).toBe('running')
    const booted = (await state()).pid
    ha('remove', 'vm:101')
    sim.qm('pve1', ['stop', '101'])
    ha('add', 'vm:101')
    await clock.advance(30_000)
    expect((await state()).status).toBe('running')
    expect((await state()).pid).not.toBe(booted)
  })

  it('is destroyed with purge alone, which takes it out of HA', async () => {
    const { sim, clock, admin, task, ha } = await open()
    ha('add', 'vm:101', '--state', 'stopped')
    const refused = 'unable to remove VM 101 - used in HA resources and purge parameter not set.'
    expect((await admin('DELETE', '/nodes/pve1/qemu/101')).message?.trim()).toBe(refused)
    expect(sim.qm('pve1', ['destroy', '101']).stderr.trim()).toBe(refused)
    const { data } = await admin('DELETE', '/nodes/pve1/qemu/101?purge=1')
    expect(await task(data)).toBe('OK')
    const again = await admin('POST', '/nodes/pve1/qemu/9000/clone', { newid: '101', full: '1' })
    expect(await task(again.data)).toBe('OK')
    await clock.advance(30_000)
    const { data: fresh } = await admin('GET', '/nodes/pve1/qemu/101/status/current')
    expect(fresh.ha).toEqual({ managed: 0 })
  })
})
