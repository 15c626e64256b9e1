import { afterEach, describe, expect, it } from 'vitest'
import { caller, openSim } from './harness.ts'

let opened: ReturnType<typeof openSim>
afterEach(() => opened.sim.close())

const TOKENS = '/access/users/egress@pve/token'
const open = () => {
  opened = openSim()
  return opened
}

describe('tokens of a user', () => {
  it('are made with separated privileges, shown without their secret, and may nothing at first', async () => {
    const { admin, sim, clock } = open()
    const made = await admin('POST', `${TOKENS}/next`, { comment: 'a comment' })
    expect(made.data).toEqual({
      'full-tokenid': 'egress@pve!next',
      info: { privsep: 1, expire: 0, comment: 'a comment' },
      value: expect.stringMatching(/^[0-9a-f-]{36}$/),
    })
    expect((await admin('GET', TOKENS)).data).toContainEqual({
      tokenid: 'next',
      privsep: 1,
      expire: 0,
      comment: 'a comment',
    })
    const next = caller(sim, clock, `egress@pve!next=${made.data.value}`)
    expect((await next('GET', '/access/permissions')).data).toEqual({})
    expect((await admin('POST', `${TOKENS}/next`, {})).errors).toEqual({ tokenid: 'Token already exists.' })
  })

  it('are refused once removed, and their grants are gone', async () => {
    const { admin, api } = open()
    expect((await admin('DELETE', `${TOKENS}/ctl`)).status).toBe(200)
    expect((await api('GET', '/version')).status).toBe(401)
    const { data } = await admin('GET', '/access/acl')
    expect(data.filter(({ ugid }: { ugid: string }) => ugid === 'egress@pve!ctl')).toEqual([])
    expect(await admin('DELETE', `${TOKENS}/ctl`)).toMatchObject({
      status: 500,
      message: "deleting token failed: no such token 'ctl' for user 'egress@pve'\n",
    })
  })

  it.each([
    ['GET', ''],
    ['POST', '/next'],
    ['DELETE', '/ctl'],
  ])('are not to be touched without User.Modify: %s', async (method, rest) => {
    const { api } = open()
    const form = method === 'POST' ? {} : undefined
    expect(await api(method, `${TOKENS}${rest}`, form)).toMatchObject({
      status: 403,
      message: 'Permission check failed\n',
    })
  })
})

describe('the access control list', () => {
  const entry = { path: '/pool/egress', roles: 'EgressVm', tokens: 'egress@pve!ctl' }

  it('is listed by path, holder and role, to who may change it there', async () => {
    const { admin, api } = open()
    expect((await admin('GET', '/access/acl')).data).toContainEqual({
      path: '/pool/egress',
      ugid: 'egress@pve!ctl',
      roleid: 'EgressVm',
      type: 'token',
      propagate: 1,
    })
    // Datastore.Allocate lets a token hand out its storage, which is what our own may see of the list.
    const paths = (await api('GET', '/access/acl')).data.map(({ path }: { path: string }) => path)
    expect(new Set(paths)).toEqual(new Set(['/storage/local']))
  })

  it('takes an entry once, gives it up again, and knows its roles and tokens', async () => {
    const { admin } = open()
    const mine = async () =>
      (await admin('GET', '/access/acl')).data.filter(
        (one: { ugid: string; path: string }) => one.ugid === entry.tokens && one.path === entry.path,
      )
    await admin('PUT', '/access/acl', { ...entry, propagate: '0' })
    expect(await mine()).toEqual([expect.objectContaining({ propagate: 0 })])
    await admin('PUT', '/access/acl', { ...entry, delete: '1' })
    expect(await mine()).toEqual([])
    expect((await admin('PUT', '/access/acl', { ...entry, roles: 'Nobody' })).status).toBe(500)
    expect((await admin('PUT', '/access/acl', { ...entry, tokens: 'egress@pve!none' })).status).toBe(500)
  })

  it('is changed only by who may modify permissions there, and by no role that they lack', async () => {
    const { api } = open()
    expect(await api('PUT', '/access/acl', entry)).toMatchObject({
      status: 403,
      message: 'Permission check failed (/pool/egress, Permissions.Modify|Pool.Allocate)\n',
    })
    const wider = { ...entry, path: '/storage/local', roles: 'Administrator' }
    expect((await api('PUT', '/access/acl', wider)).errors).toEqual({
      role: expect.stringContaining("Cannot add role 'Administrator'"),
    })
  })
})

describe('pveum user token', () => {
  it('adds and removes one, and prints the secret', async () => {
    const { sim, clock } = open()
    const { stdout } = sim.root('pve1', [
      'pveum',
      'user',
      'token',
      'add',
      'egress@pve',
      'next',
      '--privsep',
      '1',
    ])
    const secret = /^value (\S+)$/m.exec(stdout)?.[1]
    const next = caller(sim, clock, `egress@pve!next=${secret}`)
    expect((await next('GET', '/version')).status).toBe(200)
    sim.root('pve1', ['pveum', 'user', 'token', 'remove', 'egress@pve', 'next'])
    expect((await next('GET', '/version')).status).toBe(401)
  })
})
