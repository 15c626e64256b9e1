import { timingSafeEqual } from 'node:crypto'
import { forbid, PveError } from './errors.ts'
import { builtInRoles } from './privileges.ts'
import type { State } from './state.ts'

/** Who calls: `user@realm`, or `user@realm!token`. */
export type AuthId = string

/** Privileges on a path; the value is the propagate flag, presence means granted. */
export type Privileges = Map<string, boolean>

export const isToken = (id: AuthId): boolean => id.includes('!')
export const userOf = (id: AuthId): string => id.split('!')[0] ?? id

/** @throws {PveError} 401, with nothing that tells why. Source: pve-manager HTTPServer.pm auth_handler. */
export function authenticate(state: State, nowMs: number, authorization?: string, cookie?: string): AuthId {
  const ticket = /(?:^|;\s*)PVEAuthCookie=([^;]+)/.exec(cookie ?? '')?.[1]
  if (ticket !== undefined) {
    const user = state.users.find((candidate) => candidate.ticket === decodeURIComponent(ticket))
    if (!user || !isAlive(user, nowMs)) throw new PveError(401, 'Authentication failed!')
    return user.userid
  }
  const value = /^PVEAPIToken[= ]([^;]*)/.exec(authorization ?? '')?.[1]
  if (value === undefined) throw new PveError(401, 'No ticket')
  const [, userid = '', id = '', secret = ''] =
    /^(.+)!([a-zA-Z][a-zA-Z0-9.\-_]+)=(.+)$/.exec(unescaped(value)) ?? []
  const user = state.users.find((candidate) => candidate.userid === userid)
  const token = user?.tokens?.find((candidate) => candidate.id === id)
  if (!user || !token || !isAlive(user, nowMs) || !isAlive(token, nowMs) || !same(token.secret, secret))
    throw new PveError(401, 'Authentication failed!')
  return `${userid}!${id}`
}

function unescaped(text: string): string {
  return text.replace(/%([0-9a-fA-F]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
}

function isAlive(who: { enabled?: boolean; expireSeconds?: number }, nowMs: number): boolean {
  return who.enabled !== false && (!who.expireSeconds || who.expireSeconds >= nowMs / 1000)
}

function same(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)]
  return left.length === right.length && timingSafeEqual(left, right)
}

/** Source: pve-access-control RPCEnvironment.pm compute_api_permission, permissions; AccessControl.pm roles. */
export function privilegesOn(state: State, id: AuthId, path: string): Privileges {
  if (!isToken(id)) return ownPrivileges(state, id, path)
  const user = state.users.find((candidate) => candidate.userid === userOf(id))
  const token = user?.tokens?.find((candidate) => `${user.userid}!${candidate.id}` === id)
  if (!user || !token) return new Map()
  const ofUser = ownPrivileges(state, user.userid, path)
  if (token.privsep === false) return ofUser
  const both: Privileges = new Map()
  for (const [privilege, propagate] of ownPrivileges(state, id, path)) {
    const theirs = ofUser.get(privilege)
    if (theirs !== undefined) both.set(privilege, propagate && theirs)
  }
  return both
}

function ownPrivileges(state: State, id: AuthId, path: string): Privileges {
  const roles = rolesOn(state, id, path)
  const pool = poolOf(state, path)
  if (pool !== undefined && !roles.has('NoAccess')) {
    for (const [role] of rolesOn(state, id, `/pool/${pool}`)) if (!roles.has(role)) roles.set(role, false)
  }
  const privileges: Privileges = new Map()
  if (roles.has('NoAccess')) return privileges
  const known = { ...builtInRoles(state.version), ...state.roles }
  for (const [role, propagate] of roles) {
    for (const privilege of known[role] ?? [])
      privileges.set(privilege, propagate || (privileges.get(privilege) ?? false))
  }
  return privileges
}

/** The nearest entry on the way down wins over those above it. */
function rolesOn(state: State, id: AuthId, path: string): Map<string, boolean> {
  if (id === 'root@pam') return new Map([['Administrator', true]])
  let roles = new Map<string, boolean>()
  for (const place of ancestors(path)) {
    const entries = state.acl.filter(
      (entry) => entry.path === place && entry.ugid === id && (place === path || entry.propagate !== false),
    )
    if (entries.length > 0) roles = new Map(entries.map((entry) => [entry.role, entry.propagate !== false]))
  }
  return roles
}

function ancestors(path: string): string[] {
  const parts = path.split('/').filter((part) => part !== '')
  return ['/', ...parts.map((_, index) => `/${parts.slice(0, index + 1).join('/')}`)]
}

/** Members of a pool share its roles for as long as they are in it. */
function poolOf(state: State, path: string): string | undefined {
  const [, kind, id = ''] = /^\/(vms|storage)\/([^/]+)$/.exec(path) ?? []
  if (!kind) return undefined
  for (const [name, pool] of Object.entries(state.pools)) {
    if (kind === 'vms' ? pool.vmids.includes(Number(id)) : pool.storages.includes(id)) return name
  }
  return undefined
}

export function has(state: State, id: AuthId, path: string, ...privileges: string[]): boolean {
  const granted = privilegesOn(state, id, path)
  return privileges.every((privilege) => granted.has(privilege))
}

export function hasAny(state: State, id: AuthId, path: string, privileges: string[]): boolean {
  const granted = privilegesOn(state, id, path)
  return privileges.some((privilege) => granted.has(privilege))
}

/** @throws {PveError} 403 naming the first privilege that is missing. */
export function need(state: State, id: AuthId, path: string, ...privileges: string[]): void {
  needPool(state, path)
  const granted = privilegesOn(state, id, path)
  for (const privilege of privileges) if (!granted.has(privilege)) forbid(`${path}, ${privilege}`)
}

/** @throws {PveError} 403 naming all of which one would do. */
export function needAny(state: State, id: AuthId, path: string, privileges: string[]): void {
  needPool(state, path)
  if (!hasAny(state, id, path, privileges)) forbid(`${path}, ${privileges.join('|')}`)
}

function needPool(state: State, path: string): void {
  const pool = /^\/pool\/(.+)$/.exec(path)?.[1]
  if (pool !== undefined && !state.pools[pool]) forbid(`pool '${pool}' does not exist`)
}

/** All paths worth listing for a caller who asks for no path of its own. */
export function listedPaths(state: State): string[] {
  const members = Object.values(state.pools).flatMap((pool) => [
    ...pool.vmids.map((vmid) => `/vms/${vmid}`),
    ...pool.storages.map((storage) => `/storage/${storage}`),
  ])
  const fixed = ['/', '/access', '/access/groups', '/nodes', '/pool', '/sdn', '/storage', '/vms']
  return [...new Set([...fixed, ...state.acl.flatMap((entry) => ancestors(entry.path)), ...members])]
}
