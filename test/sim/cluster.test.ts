import { describe, expect, it } from 'vitest'
import { caller, openSim } from './harness.ts'

describe('nodes in trouble', () => {
  it('answers 595 for a node whose proxy is down, and refuses its own callers', async () => {
    const { sim, clock, admin, world } = openSim()
    sim.setNode('pve2', 'down')
    expect(await admin('GET', '/nodes/pve2/status')).toMatchObject({
      status: 595,
      reason: 'Connection refused',
      tookMs: 0,
    })
    const direct = caller(sim, clock, world.tokens.admin, 'pve2')
    await expect(direct('GET', '/version')).rejects.toMatchObject({ code: 'ECONNREFUSED', sent: false })
  })

  it('answers 595 after three seconds for a node that is cut off, and 596 after thirty for one that hangs', async () => {
    const { sim, admin } = openSim()
    sim.setNode('pve2', 'unreachable')
    expect(await admin('GET', '/nodes/pve2/qemu')).toMatchObject({
      status: 595,
      reason: 'No route to host',
      tookMs: 3000,
    })
    sim.setNode('pve3', 'hung')
    expect(await admin('GET', '/nodes/pve3/qemu')).toMatchObject({
      status: 596,
      reason: 'Connection timed out',
      tookMs: 30_000,
    })
  })

  it('shows who is offline, and lets the rest of three go on', async () => {
    const { sim, admin, task } = openSim()
    sim.setNode('pve3', 'unreachable')
    const { data } = await admin('GET', '/cluster/status')
    expect(data[0]).toMatchObject({ type: 'cluster', quorate: 1, nodes: 3 })
    expect(data.map((entry: { name: string; online?: number }) => [entry.name, entry.online])).toContainEqual(
      ['pve3', 0],
    )
    const cloned = await admin('POST', '/nodes/pve1/qemu/9000/clone', { newid: '101', full: '0' })
    expect(await task(cloned.data)).toBe('OK')
  })

  it('refuses changes without a quorum, and still reads', async () => {
    const { sim, admin } = openSim()
    for (const node of ['pve2', 'pve3']) sim.setNode(node, 'unreachable')
    expect((await admin('GET', '/nodes/pve1/qemu/9000/config')).status).toBe(200)
    const cloned = await admin('POST', '/nodes/pve1/qemu/9000/clone', { newid: '101', full: '0' })
    expect(cloned.message).toBe('cluster not ready - no quorum?\n')
    const set = await admin('PUT', '/nodes/pve1/qemu/9000/config', { description: 'x' })
    expect(set.message).toMatch(
      /^unable to open file '\/etc\/pve\/nodes\/pve1\/qemu-server\/9000\.conf\.tmp\.\d+' - Permission denied\n$/,
    )
  })

  it('takes an upload for another node, whose task stands at the one that received it', async () => {
    const { sim, admin, task } = openSim()
    const uploaded = await admin.upload('pve2', 'local', 'x.iso', new Uint8Array(100).fill(1))
    expect(uploaded.data).toMatch(/^UPID:pve1:/)
    expect(await task(uploaded.data)).toBe('OK')
    expect(sim.volumes().filter((volume) => volume.content === 'iso')).toMatchObject([
      { node: 'pve2', volid: 'local:iso/x.iso' },
    ])
  })
})

describe('workers and locks', () => {
  it('lets three silent agents keep a fourth call waiting', async () => {
    const { sim, clock, admin, world } = openSim()
    await admin('POST', '/nodes/pve1/qemu/9000/clone', { newid: '101', full: '0' })
    await clock.runUntilIdle()
    await admin('POST', '/nodes/pve1/qemu/101/status/start')
    await clock.runUntilIdle()
    const request = {
      method: 'GET',
      path: '/api2/json/nodes/pve1/qemu/101/agent/network-get-interfaces',
      headers: { authorization: `PVEAPIToken=${world.tokens.admin}` },
    }
    const silent = [1, 2, 3].map(() => sim.request('pve1', request))
    const behind = await admin('GET', '/nodes/pve1/qemu/101/status/current')
    expect(behind).toMatchObject({ status: 200, tookMs: 3000 })
    await clock.until(Promise.all(silent))
  })

  it('gives up on allocations that wait more than ten seconds for their storage', async () => {
    const { sim, clock, admin } = openSim({ durations: { storageLockMs: 1500, linkedCloneMs: 10 } })
    for (let vmid = 101; vmid <= 110; vmid++)
      await admin('POST', '/nodes/pve1/qemu/9000/clone', { newid: String(vmid), full: '0' })
    await clock.runUntilIdle()
    const ends = sim.tasks().map((task) => task.exitstatus)
    const timeout = "clone failed: can't lock file '/var/lock/pve-manager/pve-storage-vmdata' - got timeout"
    expect(ends.filter((end) => end === 'OK').length).toBeGreaterThan(5)
    expect(ends.filter((end) => end === timeout).length).toBeGreaterThan(0)
    expect(sim.vms().filter((vm) => vm.vmid < 9000)).toHaveLength(ends.filter((end) => end === 'OK').length)
  })

  it('shows a used number under the name of the VM that had it before, for as long as five minutes', async () => {
    const { clock, admin } = openSim()
    const listed = async () =>
      (await admin('GET', '/cluster/resources?type=vm')).data.find((vm: { vmid: number }) => vm.vmid === 101)
    await admin('POST', '/nodes/pve1/qemu/9000/clone', { newid: '101', name: 'old', full: '0' })
    await clock.advance(1000)
    expect(await listed()).toMatchObject({ status: 'unknown' })
    await clock.advance(15_000)
    expect(await listed()).toMatchObject({ status: 'stopped', name: 'old' })
    await admin('DELETE', '/nodes/pve1/qemu/101')
    await clock.advance(500)
    expect(await listed()).toBeUndefined()
    await admin('POST', '/nodes/pve1/qemu/9000/clone', { newid: '101', name: 'new', full: '0' })
    await clock.advance(500)
    expect(await listed()).toMatchObject({ name: 'old' })
    await clock.advance(11_000)
    expect(await listed()).toMatchObject({ name: 'new' })
  })
})

describe('a VM that moves', () => {
  it('is found on its new node, and missed on the old one in words that name the old one', async () => {
    const { sim, clock, admin } = openSim()
    await admin('POST', '/nodes/pve1/qemu/9000/clone', { newid: '101', name: 'mover', full: '1' })
    await clock.runUntilIdle()
    expect(sim.qm('pve1', ['migrate', '101', 'pve2'])).toMatchObject({ exitCode: 0 })
    const gone = await admin('GET', '/nodes/pve1/qemu/101/config')
    expect(gone.message).toBe("Configuration file 'nodes/pve1/qemu-server/101.conf' does not exist\n")
    expect((await admin('GET', '/nodes/pve2/qemu/101/config')).data.name).toBe('mover')
    const { data } = await admin('GET', '/cluster/resources?type=vm')
    expect(data).toContainEqual(expect.objectContaining({ vmid: 101, node: 'pve2' }))
  })

  it('stays where a disc in local storage holds it', async () => {
    const { sim, clock, admin, task } = openSim()
    await task((await admin.upload('pve1', 'local', 'x.iso', new Uint8Array(10).fill(1))).data)
    await admin('POST', '/nodes/pve1/qemu/9000/clone', { newid: '101', full: '1' })
    await clock.runUntilIdle()
    await admin('PUT', '/nodes/pve1/qemu/101/config', { ide2: 'local:iso/x.iso,media=cdrom' })
    expect(sim.qm('pve1', ['migrate', '101', 'pve2']).stderr).toMatch(
      /can't migrate local disk 'local:iso\/x\.iso': local cdrom image/,
    )
    expect(sim.vms().find((vm) => vm.vmid === 101)?.node).toBe('pve1')
  })
})

it('lives three hundred lives of VMs in hours of its own and seconds of ours', async () => {
  const { sim, clock, admin } = openSim()
  for (let vmid = 101; vmid <= 400; vmid++) {
    const node = `pve${1 + (vmid % 3)}`
    const template = 9000 + (vmid % 3)
    await admin('POST', `/nodes/${node}/qemu/${template}/clone`, { newid: String(vmid), full: '0' })
    await clock.advance(60_000)
    await admin('POST', `/nodes/${node}/qemu/${vmid}/status/start`)
    await clock.advance(60_000)
    await admin('POST', `/nodes/${node}/qemu/${vmid}/status/stop`)
    await clock.advance(60_000)
    await admin('DELETE', `/nodes/${node}/qemu/${vmid}`)
  }
  await clock.runUntilIdle()
  expect(sim.tasks().every((task) => task.exitstatus === 'OK')).toBe(true)
  expect(sim.vms()).toHaveLength(3)
})
