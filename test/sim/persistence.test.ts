import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import {
  createSim,
  createVirtualClock,
  defaultWorld,
  type GuestSpec,
  type Sim,
  type SimOptions,
} from '../../sim/index.ts'
import { caller, seededRandom } from './harness.ts'

describe('a cluster with its state on disk', () => {
  let stateDir: string
  const world = defaultWorld({ nodes: 1 })
  const open: Sim[] = []
  const booted: GuestSpec[] = []

  beforeEach(() => {
    stateDir = mkdtempSync(join(tmpdir(), 'sim-state-'))
    booted.length = 0
  })
  afterEach(async () => {
    for (const sim of open.splice(0)) await sim.close()
    rmSync(stateDir, { recursive: true })
  })

  const start = (atMs: number, more: Partial<SimOptions> = {}) => {
    const clock = createVirtualClock(atMs)
    const guests = async (spec: GuestSpec) => {
      booted.push(spec)
      return { interfaces: () => undefined, close: async () => {} }
    }
    const sim = createSim({
      world,
      clock,
      stateDir,
      guests,
      random: seededRandom(3),
      durations: { cloneMs: 10_000 },
      ...more,
    })
    open.push(sim)
    return { sim, clock, api: caller(sim, clock, world.tokens.egress) }
  }

  const clone = { newid: '101', name: 'a', pool: 'egress', full: '1' }
  const atMs = Date.UTC(2026, 5, 1)

  it('goes on with a running clone where another process has left it', async () => {
    const first = start(atMs)
    const { data: upid } = await first.api('POST', '/nodes/pve1/qemu/9000/clone', clone)
    await first.clock.advance(4000)
    expect(first.sim.vms().find((vm) => vm.vmid === 101)?.lock).toBe('clone')

    // The first process is gone without a word; what it had not written would be missing now.
    const second = start(atMs + 20_000)
    expect(second.sim.tasks().find((task) => task.upid === upid)?.status).toBe('running')
    await second.clock.runUntilIdle()
    expect(second.sim.tasks().find((task) => task.upid === upid)?.exitstatus).toBe('OK')
    expect(second.sim.vms().find((vm) => vm.vmid === 101)).toMatchObject({
      name: 'a',
      pool: 'egress',
      running: false,
    })
  })

  it('holds the locks of the tasks that go on', async () => {
    const first = start(atMs)
    await first.api('POST', '/nodes/pve1/qemu/9000/clone', clone)
    await first.clock.advance(1000)
    const second = start(atMs + 1000)
    const { data: upid } = await second.api('POST', '/nodes/pve1/qemu/101/status/start')
    expect(upid).toBeNull()
    const admin = caller(second.sim, second.clock, world.tokens.admin)
    const started = await admin('POST', '/nodes/pve1/qemu/101/status/start')
    await second.clock.advance(1000)
    const task = second.sim.tasks().find((candidate) => candidate.upid === started.data)
    expect(task).toMatchObject({ status: 'running', log: ['trying to acquire lock...'] })
  })

  it('leaves a killed clone locked after a reset of the hosts, as qm alone can mend', async () => {
    const first = start(atMs)
    const { data: upid } = await first.api('POST', '/nodes/pve1/qemu/9000/clone', clone)
    await first.clock.advance(4000)

    const second = start(atMs + 20_000, { hostReset: true })
    expect(second.sim.tasks().find((task) => task.upid === upid)?.exitstatus).toBe('unexpected status')
    expect(second.sim.vms().find((vm) => vm.vmid === 101)?.lock).toBe('clone')
    const admin = caller(second.sim, second.clock, world.tokens.admin)
    const refused = await admin('DELETE', '/nodes/pve1/qemu/101?skiplock=1')
    expect(refused.errors).toEqual({ skiplock: 'Only root may use this option.' })

    expect(second.sim.qm('pve1', ['unlock', '101'])).toMatchObject({ exitCode: 0 })
    const destroy = ['destroy', '101', '--purge', '--destroy-unreferenced-disks', '1']
    expect(second.sim.qm('pve1', destroy)).toMatchObject({ exitCode: 0 })
    await second.clock.runUntilIdle()
    expect(second.sim.vms().map((vm) => vm.vmid)).toEqual([9000])
    expect(second.sim.volumes().filter((volume) => volume.vmid === 101)).toEqual([])
  })

  it('boots the guests of running VMs anew, from the same seed, and not for the first time', async () => {
    const first = start(atMs)
    const bytes = new Uint8Array(2048).fill(9)
    await first.api.upload('pve1', 'local', 'seed.iso', bytes)
    await first.api('POST', '/nodes/pve1/qemu/9000/clone', { ...clone, full: '0' })
    await first.clock.runUntilIdle()
    expect(
      (await first.api('PUT', '/nodes/pve1/qemu/101/config', { ide2: 'local:iso/seed.iso,media=cdrom' }))
        .status,
    ).toBe(200)
    await first.api('POST', '/nodes/pve1/qemu/101/status/start')
    await first.clock.runUntilIdle()
    expect(booted.map(({ vmid, firstBoot }) => ({ vmid, firstBoot }))).toEqual([
      { vmid: 101, firstBoot: true },
    ])

    const second = start(atMs + 3600_000)
    expect(booted).toHaveLength(2)
    expect(booted[1]).toMatchObject({ vmid: 101, firstBoot: false, name: 'a', bridge: 'vmbr0' })
    expect([...(booted[1]?.cdroms[0] ?? [])]).toEqual([...bytes])
    expect(second.sim.vms().find((vm) => vm.vmid === 101)).toMatchObject({ running: true, pool: 'egress' })
  })

  it('keeps what ended tasks have said', async () => {
    const first = start(atMs)
    const { data: upid } = await first
      .api('POST', '/nodes/pve1/qemu/101/status/stop')
      .then(() => first.api('POST', '/nodes/pve1/qemu/9000/clone', { ...clone, full: '0' }))
    await first.clock.runUntilIdle()
    const second = start(atMs + 60_000)
    const { data } = await second.api('GET', `/nodes/pve1/tasks/${encodeURIComponent(upid)}/status`)
    expect(data).toMatchObject({ status: 'stopped', exitstatus: 'OK', type: 'qmclone', tokenid: 'ctl' })
  })
})
