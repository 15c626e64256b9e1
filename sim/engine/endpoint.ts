import type { EngineCall, ParamValue } from '../types.ts'
import type { AuthId } from './access.ts'
import { has, hasAny, need, needAny } from './access.ts'
import type { Cluster } from './cluster.ts'
import type { ParamSchema } from './schema.ts'

/** One call as its handler sees it, on the node where it is carried out. */
export type Ctx = {
  cluster: Cluster
  node: string
  /** The node whose pveproxy took the request. */
  received: string
  caller: AuthId
  /** Path, query and body in one, checked by the schema. */
  params: Record<string, ParamValue>
  call: EngineCall
}

export type Reply = { data: unknown; total?: number }

/** An endpoint: who may, and what is done. Parameters come from the schema file unless given here. */
export type Endpoint = {
  method: string
  path: string
  /** The check PVE registers with the method; without it every authenticated caller may. */
  permission?(ctx: Ctx): void
  handler(ctx: Ctx): Reply | Promise<Reply>
  protected?: boolean
  proxied?: boolean
  parameters?: Record<string, ParamSchema>
}

export const reply = (data: unknown, total?: number): Reply =>
  total === undefined ? { data } : { data, total }

export function text(ctx: Ctx, name: string): string {
  const value = ctx.params[name]
  if (value === undefined || Array.isArray(value)) throw new Error(`parameter ${name} is not there`)
  return String(value)
}

/** An empty text counts as given. */
export function maybeText(ctx: Ctx, name: string): string | undefined {
  return ctx.params[name] === undefined ? undefined : text(ctx, name)
}

export function maybeNumber(ctx: Ctx, name: string): number | undefined {
  return ctx.params[name] === undefined ? undefined : Number(text(ctx, name))
}

export function flag(ctx: Ctx, name: string): boolean {
  const value = ctx.params[name]
  return value === true || String(value ?? '0') === '1'
}

export const vmidOf = (ctx: Ctx): number => Number(text(ctx, 'vmid'))

export const may = (ctx: Ctx, path: string, ...privileges: string[]): boolean =>
  has(ctx.cluster.state, ctx.caller, path, ...privileges)
export const mayAny = (ctx: Ctx, path: string, privileges: string[]): boolean =>
  hasAny(ctx.cluster.state, ctx.caller, path, privileges)
export const mustHave = (ctx: Ctx, path: string, ...privileges: string[]): void =>
  need(ctx.cluster.state, ctx.caller, path, ...privileges)
export const mustHaveAny = (ctx: Ctx, path: string, privileges: string[]): void =>
  needAny(ctx.cluster.state, ctx.caller, path, privileges)

export const storageUser = ['Datastore.Audit', 'Datastore.AllocateSpace']

/** Path parameters shared by many. */
export const nodeParam: Record<string, ParamSchema> = { node: { type: 'string', format: 'pve-node' } }
export const vmParams: Record<string, ParamSchema> = {
  ...nodeParam,
  vmid: { type: 'integer', format: 'pve-vmid', min: 100, max: 999_999_999 },
}
