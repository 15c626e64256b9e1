import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type Admin, listenAdmin } from '../../sim/index.ts'
import { openSim } from './harness.ts'

describe('the door for scripts', () => {
  const { sim, api, clock } = openSim()
  let admin: Admin

  beforeEach(async () => {
    admin = await listenAdmin(sim)
  })
  afterEach(() => admin.close())

  const ask = async (method: string, path: string, body?: unknown) => {
    const response = await fetch(admin.url + path, {
      method,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    // biome-ignore lint/suspicious/noExplicitAny: the test asserts on the shape itself
    return { status: response.status, body: (await response.json()) as any }
  }

  it('stands on the loopback address only', () => {
    expect(admin.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/)
  })

  it('lists what there is', async () => {
    expect((await ask('GET', '/nodes')).body).toEqual(
      ['pve1', 'pve2', 'pve3'].map((name) => ({ name, state: 'up' })),
    )
    expect((await ask('GET', '/vms')).body).toHaveLength(3)
    expect((await ask('GET', '/volumes')).body).toHaveLength(3)
    expect((await ask('GET', '/tasks')).body).toEqual([])
  })

  it('adds and removes faults', async () => {
    const rule = {
      match: { path: '^/version' },
      effect: { kind: 'answer', answer: { status: 500, message: 'broken' } },
    }
    const { body } = await ask('POST', '/faults', rule)
    expect((await api('GET', '/version')).message).toBe('broken\n')
    expect((await ask('DELETE', `/faults/${body.id}`)).status).toBe(200)
    expect((await api('GET', '/version')).status).toBe(200)
    expect((await ask('DELETE', `/faults/${body.id}`)).status).toBe(404)
    expect((await ask('POST', '/faults', { match: {} })).status).toBe(400)
  })

  it('changes the state of a node', async () => {
    expect((await ask('POST', '/nodes/pve2', { state: 'down' })).body).toContainEqual({
      name: 'pve2',
      state: 'down',
    })
    expect((await ask('POST', '/nodes/pve2', { state: 'up' })).status).toBe(200)
    expect((await ask('POST', '/nodes/pve9', { state: 'up' })).status).toBe(404)
    expect((await ask('POST', '/nodes/pve1', { state: 'asleep' })).body.error).toMatch(/^state is one of/)
  })

  it('runs qm as root of a host', async () => {
    const qm = async (...argv: string[]) => (await ask('POST', '/qm', { node: 'pve1', argv })).body
    expect(await qm('status', '9000')).toEqual({ exitCode: 0, stdout: 'status: stopped\n', stderr: '' })
    expect((await qm('config', '9000')).stdout).toMatch(/^agent: 1\nboot: order=scsi0\ncores: 1\n/)
    expect((await qm('list')).stdout).toMatch(/VMID NAME .*\n +9000 debian-12/)
    expect(await qm('unlock', '4711')).toMatchObject({
      exitCode: 2,
      stderr: "Configuration file 'nodes/pve1/qemu-server/4711.conf' does not exist\n",
    })
    expect(await qm('set', '9000', '--protection', '1')).toMatchObject({ exitCode: 0 })
    expect((await qm('destroy', '9000')).stderr).toBe("can't remove VM 9000 - protection mode enabled\n")
    expect(await qm('set', '9000', '--protection', '0')).toMatchObject({ exitCode: 0 })
    expect(await qm('dance')).toMatchObject({ exitCode: 255 })
    await clock.runUntilIdle()
  })

  it('says what it does not know', async () => {
    expect(await ask('GET', '/nothing')).toEqual({
      status: 404,
      body: { error: 'no such call: GET /nothing' },
    })
  })
})
