import { describe, expect, it } from 'vitest'
import { openSim } from './harness.ts'

const clone = { newid: '101', name: 'a', pool: 'egress', full: '0' }
const clonePath = '/nodes/pve1/qemu/9000/clone'

describe('faults by script', () => {
  it('answer instead of the call, and only so often', async () => {
    const { sim, api } = openSim()
    const answer = { status: 500, message: "cfs-lock 'file-user_cfg' error: no quorum!" }
    sim.faults.add({
      match: { method: 'POST', path: '/clone$' },
      skip: 1,
      times: 1,
      effect: { kind: 'answer', answer },
    })
    expect((await api('POST', clonePath, clone)).status).toBe(200)
    expect(await api('POST', clonePath, { ...clone, newid: '102' })).toMatchObject({
      status: 500,
      message: `${answer.message}\n`,
    })
    expect((await api('POST', clonePath, { ...clone, newid: '102' })).status).toBe(200)
  })

  it('answer 596 while the call is carried out later', async () => {
    const { sim, api, clock } = openSim()
    const answer = { status: 596, reason: 'Connection timed out' }
    sim.faults.add({
      match: { path: '/clone$' },
      times: 1,
      effect: { kind: 'answer', answer, afterMs: 30_000, runAfterMs: 60_000 },
    })
    const answered = await api('POST', clonePath, clone)
    expect(answered).toMatchObject({ status: 596, reason: 'Connection timed out', tookMs: 30_000 })
    await clock.advance(59_000)
    expect(sim.vms().some((vm) => vm.vmid === 101)).toBe(false)
    await clock.advance(30_000)
    expect(sim.vms().find((vm) => vm.vmid === 101)).toMatchObject({ name: 'a', pool: 'egress' })
  })

  it('cut the connection before or after the call was sent', async () => {
    const { sim, api, clock } = openSim()
    sim.faults.add({
      match: { path: '/version' },
      times: 1,
      effect: { kind: 'connection', code: 'ECONNREFUSED', sent: false },
    })
    await expect(api('GET', '/version')).rejects.toMatchObject({ code: 'ECONNREFUSED', sent: false })
    sim.faults.add({
      match: { path: '/clone$' },
      times: 1,
      effect: { kind: 'connection', code: 'ECONNRESET', sent: true, runAfterMs: 0 },
    })
    await expect(api('POST', clonePath, clone)).rejects.toMatchObject({ code: 'ECONNRESET', sent: true })
    await clock.runUntilIdle()
    expect(sim.vms().some((vm) => vm.vmid === 101)).toBe(true)
  })

  it('let a task fail before it did anything, or after everything', async () => {
    const { sim, api, task } = openSim()
    const exitText = "clone failed: can't lock file '/var/lock/pve-manager/pve-storage-vmdata' - got timeout"
    sim.faults.add({
      match: { taskType: 'qmclone' },
      times: 1,
      effect: { kind: 'taskFails', exitText, effects: 'none' },
    })
    expect(await task((await api('POST', clonePath, clone)).data)).toBe(exitText)
    expect(sim.vms().some((vm) => vm.vmid === 101)).toBe(false)

    const late = 'unable to read tail (got 0 bytes)'
    sim.faults.add({
      match: { taskType: 'qmclone' },
      times: 1,
      effect: { kind: 'taskFails', exitText: late, effects: 'all' },
    })
    expect(await task((await api('POST', clonePath, clone)).data)).toBe(late)
    expect(sim.vms().find((vm) => vm.vmid === 101)?.pool).toBe('egress')
  })

  it('kill the worker of a clone, which leaves the VM locked', async () => {
    const { sim, api, task } = openSim({ durations: { cloneMs: 20_000 } })
    sim.faults.add({
      match: { taskType: 'qmclone' },
      times: 1,
      effect: { kind: 'taskKilled', afterMs: 5000 },
    })
    expect(await task((await api('POST', clonePath, { ...clone, full: '1' })).data)).toBe('unexpected status')
    expect(sim.vms().find((vm) => vm.vmid === 101)).toMatchObject({
      lock: 'clone',
      config: { description: ' qmclone temporary file' },
    })
  })

  it('are listed with how often they struck, and can be removed', async () => {
    const { sim, api } = openSim()
    const id = sim.faults.add({
      match: { path: '/version' },
      effect: { kind: 'answer', answer: { status: 500, message: 'x' } },
    })
    await api('GET', '/version')
    expect(sim.faults.list()).toEqual([expect.objectContaining({ id, struck: 1 })])
    sim.faults.remove(id)
    expect((await api('GET', '/version')).status).toBe(200)
  })
})
