import { randomUUID } from 'node:crypto'
import type { WorldAcl, WorldUser } from '../types.ts'
import { isToken, privilegesOn } from './access.ts'
import {
  type Ctx,
  type Endpoint,
  flag,
  may,
  mayAny,
  maybeNumber,
  maybeText,
  reply,
  text,
} from './endpoint.ts'
import { die, forbid, refuseParams } from './errors.ts'
import { builtInRoles } from './privileges.ts'
import type { ParamSchema } from './schema.ts'
import type { State } from './state.ts'

type Token = NonNullable<WorldUser['tokens']>[number]

const userid: Record<string, ParamSchema> = { userid: { type: 'string', maxLength: 64 } }
const ofToken: Record<string, ParamSchema> = {
  ...userid,
  tokenid: { type: 'string', pattern: '[A-Za-z][A-Za-z0-9.\\-_]+' },
}

/** Source: pve-access-control API2/User.pm (tokens), API2/ACL.pm, RPCEnvironment.pm check_perm_modify. */
export const tokenEndpoints: Endpoint[] = [
  {
    method: 'GET',
    path: '/access/users/{userid}/token',
    parameters: userid,
    permission: mayManageTokens,
    handler: (ctx) =>
      reply((userNamed(ctx).tokens ?? []).map((token) => ({ tokenid: token.id, ...told(token) }))),
  },
  {
    method: 'POST',
    path: '/access/users/{userid}/token/{tokenid}',
    protected: true,
    parameters: {
      ...ofToken,
      comment: { type: 'string', optional: true },
      expire: { type: 'integer', min: 0, optional: true },
      privsep: { type: 'boolean', optional: true },
    },
    permission: mayManageTokens,
    handler: (ctx) => {
      const comment = maybeText(ctx, 'comment')
      const expireSeconds = maybeNumber(ctx, 'expire')
      const token = addToken(ctx.cluster.state, text(ctx, 'userid'), text(ctx, 'tokenid'), {
        privsep: ctx.params.privsep === undefined || flag(ctx, 'privsep'),
        ...(comment === undefined ? {} : { comment }),
        ...(expireSeconds === undefined ? {} : { expireSeconds }),
      })
      const id = `${text(ctx, 'userid')}!${token.id}`
      return reply({ 'full-tokenid': id, info: told(token), value: token.secret })
    },
  },
  {
    method: 'DELETE',
    path: '/access/users/{userid}/token/{tokenid}',
    protected: true,
    parameters: ofToken,
    permission: mayManageTokens,
    handler: (ctx) => {
      removeToken(ctx.cluster.state, text(ctx, 'userid'), text(ctx, 'tokenid'))
      return reply(null)
    },
  },
  { method: 'GET', path: '/access/acl', parameters: {}, handler: (ctx) => reply(acl(ctx)) },
  {
    method: 'PUT',
    path: '/access/acl',
    protected: true,
    parameters: {
      path: { type: 'string' },
      roles: { type: 'string' },
      users: { type: 'string', optional: true },
      tokens: { type: 'string', optional: true },
      propagate: { type: 'boolean', optional: true },
      delete: { type: 'boolean', optional: true },
    },
    permission: (ctx) => {
      const path = text(ctx, 'path')
      if (!mayModify(ctx, path)) forbid(`${path}, ${modifying(path).join('|')}`)
    },
    handler: (ctx) => {
      modifyAcl(ctx)
      return reply(null)
    },
  },
]

/** `or` of 'self' and User.Modify: what fails says no more than that. A token is not its user, so never itself. */
function mayManageTokens(ctx: Ctx): void {
  if (ctx.caller !== text(ctx, 'userid') && !may(ctx, '/access/groups', 'User.Modify')) forbid()
}

const told = ({ comment, expireSeconds = 0, privsep }: Token) => ({
  expire: expireSeconds,
  privsep: privsep === false ? 0 : 1,
  ...(comment === undefined ? {} : { comment }),
})

function userNamed(ctx: Ctx): WorldUser {
  const name = text(ctx, 'userid')
  return ctx.cluster.state.users.find((user) => user.userid === name) ?? die(`no such user ('${name}')`)
}

/** @throws {PveError} 400 when there is one of that name */
export function addToken(state: State, name: string, id: string, how: Omit<Token, 'id' | 'secret'>): Token {
  const user = state.users.find((one) => one.userid === name) ?? die(`no such user ('${name}')`)
  if (user.tokens?.some((token) => token.id === id)) refuseParams({ tokenid: 'Token already exists.' })
  const token = { id, secret: randomUUID(), ...how }
  user.tokens = [...(user.tokens ?? []), token]
  return token
}

/** What it was granted goes with it: user.cfg is read without entries of tokens that are not there. */
export function removeToken(state: State, name: string, id: string): void {
  const user = state.users.find((one) => one.userid === name)
  if (!user?.tokens?.some((token) => token.id === id))
    die(`deleting token failed: no such token '${id}' for user '${name}'`)
  user.tokens = user.tokens.filter((token) => token.id !== id)
  state.acl = state.acl.filter(({ ugid }) => ugid !== `${name}!${id}`)
}

function acl(ctx: Ctx) {
  const sees = may(ctx, '/access', 'Sys.Audit')
  return ctx.cluster.state.acl
    .filter(({ path }) => sees || mayModify(ctx, path))
    .map(({ path, ugid, role, propagate }) => ({
      path,
      ugid,
      roleid: role,
      type: isToken(ugid) ? 'token' : 'user',
      propagate: propagate === false ? 0 : 1,
    }))
}

const modifying = (path: string): string[] => {
  const [, kind = ''] = /^\/(storage|vms|pool)\/./.exec(path) ?? []
  const own = { storage: 'Datastore.Allocate', vms: 'VM.Allocate', pool: 'Pool.Allocate' }[kind]
  return ['Permissions.Modify', ...(own === undefined ? [] : [own])]
}

const mayModify = (ctx: Ctx, path: string): boolean => mayAny(ctx, path, modifying(path))

function modifyAcl(ctx: Ctx): void {
  const { state } = ctx.cluster
  const path = text(ctx, 'path')
  const list = (name: string) => (maybeText(ctx, name) ?? '').split(/[,;\s]+/).filter((one) => one !== '')
  const granted = privilegesOn(state, ctx.caller, path)
  const roles = { ...builtInRoles(state.version), ...state.roles }
  const propagate = ctx.params.propagate === undefined || flag(ctx, 'propagate')
  for (const role of list('roles')) {
    const privileges = roles[role] ?? die(`ACL update failed: role '${role}' does not exist`)
    // Who may hand out on a pool or storage only, hands out no more than they have.
    if (!granted.has('Permissions.Modify') && privileges.some((one) => !granted.has(one)))
      refuseParams({
        role: `Cannot ${flag(ctx, 'delete') ? 'remove' : 'add'} role '${role}' - requires 'Permissions.Modify' or superset of privileges.`,
      })
    for (const ugid of [...list('users'), ...list('tokens')]) {
      if (isToken(ugid) && !isThere(state, ugid)) die(`ACL update failed: no such token '${ugid}'`)
      const entry: WorldAcl = { path, ugid, role, propagate }
      const others = state.acl.filter((one) => one.path !== path || one.ugid !== ugid || one.role !== role)
      state.acl = flag(ctx, 'delete') ? others : [...others, entry]
    }
  }
}

const isThere = (state: State, ugid: string): boolean =>
  state.users.some(({ userid, tokens = [] }) => tokens.some(({ id }) => `${userid}!${id}` === ugid))
