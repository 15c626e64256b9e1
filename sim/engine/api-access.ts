import { isToken, listedPaths, privilegesOn, userOf } from './access.ts'
import { type Ctx, type Endpoint, flag, may, mayAny, maybeText, mustHave, reply, text } from './endpoint.ts'
import { die, forbid, refuseParams } from './errors.ts'
import { lastTold } from './pvestatd.ts'

export const accessEndpoints: Endpoint[] = [
  { method: 'GET', path: '/access/permissions', handler: (ctx) => reply(permissions(ctx)) },
  {
    method: 'GET',
    path: '/access/users',
    parameters: {
      enabled: { type: 'boolean', optional: true },
      full: { type: 'boolean', optional: true },
    },
    handler: (ctx) => reply(users(ctx)),
  },
  { method: 'GET', path: '/pools', handler: (ctx) => reply(pools(ctx)) },
  {
    method: 'GET',
    path: '/pools/{poolid}',
    permission: (ctx) => mustHave(ctx, `/pool/${text(ctx, 'poolid')}`, 'Pool.Audit'),
    handler: (ctx) => {
      const name = text(ctx, 'poolid')
      return reply({ poolid: name, ...poolWithMembers(ctx, name) })
    },
  },
]

function permissions(ctx: Ctx) {
  const { state } = ctx.cluster
  const who = maybeText(ctx, 'userid') ?? ctx.caller
  const own = who === ctx.caller || (isToken(who) ? userOf(who) === ctx.caller : userOf(ctx.caller) === who)
  if (!own && !may(ctx, '/access', 'Sys.Audit')) forbid('/access, Sys.Audit')
  if (!own && !state.users.some((user) => user.userid === userOf(who)))
    refuseParams({ userid: `no such user ('${who}')` })

  const asked = maybeText(ctx, 'path')
  const shown: Record<string, Record<string, number>> = {}
  for (const path of asked === undefined ? listedPaths(state) : [asked]) {
    const granted = privilegesOn(state, who, path)
    if (granted.size === 0 && asked === undefined) continue
    shown[path] = Object.fromEntries(
      [...granted].map(([privilege, propagate]) => [privilege, propagate ? 1 : 0]),
    )
  }
  return shown
}

/** Source: pve-access-control API2/User.pm index. A token is not its user, so by itself it sees nobody. */
function users(ctx: Ctx) {
  const seesAll = mayAny(ctx, '/access/groups', ['User.Modify', 'Sys.Audit'])
  return ctx.cluster.state.users
    .filter(({ userid }) => seesAll || userid === ctx.caller)
    .map(({ userid, enabled = true, expireSeconds = 0, tokens = [] }) => ({
      userid,
      enable: enabled ? 1 : 0,
      expire: expireSeconds,
      'realm-type': userid.split('@')[1],
      ...(flag(ctx, 'full')
        ? {
            groups: '',
            tokens: tokens.map((token) => ({
              tokenid: token.id,
              expire: token.expireSeconds ?? 0,
              privsep: token.privsep === false ? 0 : 1,
            })),
          }
        : {}),
    }))
}

function pools(ctx: Ctx) {
  const asked = maybeText(ctx, 'poolid')
  if (asked !== undefined) {
    if (!ctx.cluster.state.pools[asked]) die(`pool '${asked}' does not exist`)
    mustHave(ctx, `/pool/${asked}`, 'Pool.Audit')
    return [{ poolid: asked, ...poolWithMembers(ctx, asked) }]
  }
  return Object.entries(ctx.cluster.state.pools)
    .filter(([name]) => may(ctx, `/pool/${name}`, 'Pool.Audit'))
    .map(([poolid, { comment }]) => ({ poolid, ...(comment === undefined ? {} : { comment }) }))
}

function poolWithMembers(ctx: Ctx, name: string) {
  const { cluster } = ctx
  const pool = cluster.state.pools[name] ?? die(`pool '${name}' does not exist`)
  const guests = pool.vmids.flatMap((vmid) => {
    const vm = cluster.state.vms[vmid]
    if (!vm) return []
    const type = vm.container ? 'lxc' : 'qemu'
    const told = lastTold(cluster, vmid) ?? { status: 'unknown' }
    return [{ id: `${type}/${vmid}`, node: vm.node, type, vmid, ...told }]
  })
  const storages = pool.storages.flatMap((storage) =>
    cluster.state.nodes.map((node) => ({
      id: `storage/${node.name}/${storage}`,
      node: node.name,
      storage,
      type: 'storage',
    })),
  )
  return {
    ...(pool.comment === undefined ? {} : { comment: pool.comment }),
    members: [...guests, ...storages],
  }
}
