import { afterEach, describe, expect, it } from 'vitest'
import { defaultWorld } from '../../sim/index.ts'
import { openSim } from './harness.ts'

let opened: ReturnType<typeof openSim>
afterEach(() => opened.sim.close())

const [first, ...others] = defaultWorld().nodes
const world = () => {
  const known = defaultWorld()
  const ends = Date.UTC(2026, 5, 1)
  const node = { name: 'pve1', ...first, clockSkewMs: 90_000, certificateEndsMs: ends }
  const bridges = [{ iface: 'vmbr0' }, { iface: 'vmbr9' }]
  known.users
    ?.find(({ userid }) => userid === 'egress@pve')
    ?.tokens?.forEach((token) => {
      token.expireSeconds = 1_800_000_000
    })
  return { ...known, nodes: [{ ...node, bridges }, ...others] }
}
const open = () => {
  const known = world()
  opened = openSim({ world: known, tokens: known.tokens })
}

describe('what a check asks of a cluster', () => {
  it('is the clock of each node, which may be wrong, from those with Sys.Audit on it', async () => {
    open()
    const { admin, api, clock } = opened
    expect((await admin('GET', '/nodes/pve1/time')).data.time * 1000).toBe(clock.now() + 90_000)
    expect((await admin('GET', '/nodes/pve2/time')).data.time * 1000).toBe(clock.now())
    expect(await api('GET', '/nodes/pve1/time')).toMatchObject({
      status: 403,
      message: 'Permission check failed (/nodes/pve1, Sys.Audit)\n',
    })
  })

  it('is the users with their tokens, of which a token by itself sees none', async () => {
    open()
    const { admin, api } = opened
    const users = (await admin('GET', '/access/users?full=1')).data
    expect(users).toContainEqual(
      expect.objectContaining({
        userid: 'egress@pve',
        expire: 0,
        tokens: [{ tokenid: 'ctl', expire: 1_800_000_000, privsep: 1 }],
      }),
    )
    expect((await admin('GET', '/access/users')).data[0]).not.toHaveProperty('tokens')
    expect((await api('GET', '/access/users?full=1')).data).toEqual([])
  })

  it('is the bridges that the caller may use', async () => {
    open()
    const { admin } = opened
    const names = (answer: { data: { iface: string }[] }) => answer.data.map(({ iface }) => iface)
    expect(names(await admin('GET', '/nodes/pve1/network?type=any_bridge'))).toEqual(['vmbr0', 'vmbr9'])
    await opened.sim.close()
    const known = world()
    known.acl = known.acl?.filter(({ role }) => role !== 'EgressNetwork') ?? []
    opened = openSim({ world: known, tokens: known.tokens })
    expect(names(await opened.api('GET', '/nodes/pve1/network?type=any_bridge'))).toEqual([])
  })

  it('is the certificates with their end', async () => {
    open()
    const { data } = await opened.api('GET', '/nodes/pve1/certificates/info')
    expect(data).toContainEqual(
      expect.objectContaining({ filename: 'pve-ssl.pem', notafter: Date.UTC(2026, 5, 1) / 1000 }),
    )
  })
})
