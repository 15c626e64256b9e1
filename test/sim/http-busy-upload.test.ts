import { describe, expect, it } from 'vitest'
import { openSim } from './harness.ts'

describe('sim: front and engine', () => {
  it('drop an upload that waits behind busy workers, and never carry it out', async () => {
    const { sim, clock, admin, world } = openSim({ version: 8, nodes: 1, durations: { cloneMs: 60_000 } })
    expect(await admin('POST', '/nodes/pve1/qemu/9000/clone', { newid: '101', full: '1' })).toMatchObject({
      status: 200,
    })
    await clock.advance(1000)
    // Three workers a node: each waits ten seconds for the lock that the clone holds.
    const headers = {
      authorization: `PVEAPIToken=${world.tokens.admin}`,
      'content-type': 'application/x-www-form-urlencoded',
    }
    const path = '/api2/json/nodes/pve1/qemu/101/config'
    const blocked = ['a', 'b', 'c'].map((word) =>
      sim.request('pve1', { method: 'PUT', path, headers, body: Buffer.from(`description=${word}`) }),
    )
    await clock.advance(100)

    const startMs = clock.now()
    const failure = await admin
      .upload('pve1', 'local', 'queued.iso', Buffer.from('bytes'))
      .catch((cause: unknown) => cause)
    expect(failure).toMatchObject({ code: 'ECONNRESET', sent: true })
    expect(clock.now() - startMs).toBe(5000)

    const answers = await clock.until(Promise.all(blocked))
    expect(answers.map(({ status }) => status)).toEqual([500, 500, 500])
    await clock.advance(60_000)
    expect(sim.tasks().map(({ type }) => type)).toEqual(['qmclone'])
    expect(sim.volumes().filter(({ content }) => content === 'iso')).toEqual([])
    expect(await admin.upload('pve1', 'local', 'later.iso', Buffer.from('bytes'))).toMatchObject({
      status: 200,
    })
    await sim.close()
  })
})
