import * as z from 'zod'
import { Nothing, PermissionsAnswer, VersionAnswer } from './answers.ts'
import { type CallSpec, calls } from './calls.ts'
import type { Invocation, ProxmoxOptions } from './options.ts'
import { createTransport } from './transport.ts'

/** A token as its user's list shows it; the secret is shown once, when it is made. */
export type TokenEntry = { id: string; comment: string }

/** An entry of the cluster's access control list, whoever has it. */
export type Grant = { path: string; holder: string; role: string; propagate: boolean }

/** What a person does who replaces a token; no function calls it. Token ids are whole: `user@realm!name`. */
export type Administration = {
  version(): Promise<string>
  /** What the caller may on each of the paths, wherever above it that was granted. */
  ownPrivileges(paths: readonly string[]): Promise<ReadonlyMap<string, ReadonlySet<string>>>
  /** @throws {ProxmoxError} Forbidden without User.Modify */
  tokensOf(user: string): Promise<TokenEntry[]>
  /** Makes a token that may nothing yet, and gives its whole value. @throws {ProxmoxError} Rejected when there is one of that name */
  addToken(tokenId: string, comment: string): Promise<string>
  /** Takes its grants with it. */
  removeToken(tokenId: string): Promise<void>
  /** Only entries on paths that the caller may change, or all with Sys.Audit on /access. */
  grants(): Promise<Grant[]>
  grant(entry: Grant): Promise<void>
  close(): Promise<void>
}

// Apart from the functions' own calls, from which their roles are made.
const adminCalls = {
  tokens: {
    method: 'GET',
    path: '/access/users/{userid}/token',
    needs: () => [{ anyOf: ['User.Modify'], on: ['/access/groups'], for: 'admin' }],
  },
  addToken: {
    method: 'POST',
    path: '/access/users/{userid}/token/{tokenid}',
    needs: () => [{ anyOf: ['User.Modify'], on: ['/access/groups'], for: 'admin' }],
  },
  removeToken: {
    method: 'DELETE',
    path: '/access/users/{userid}/token/{tokenid}',
    needs: () => [{ anyOf: ['User.Modify'], on: ['/access/groups'], for: 'admin' }],
  },
  acl: { method: 'GET', path: '/access/acl', needs: () => [] },
  modifyAcl: {
    method: 'PUT',
    path: '/access/acl',
    needs: () => [{ anyOf: ['Permissions.Modify'], on: ['{path}'], for: 'admin' }],
  },
} as const satisfies Record<string, CallSpec>

/** @throws {TypeError} as `createProxmox` does */
export function createAdministration(options: ProxmoxOptions, invocation: Invocation): Administration {
  const transport = createTransport(options)
  const send: <T>(call: Parameters<typeof transport.send<T>>[0]) => Promise<T> = (call) =>
    transport.send(call, invocation)
  // Made here, so that no function's bundle carries them.
  const comment = z
    .string()
    .nullish()
    .transform((value) => value ?? '')
  const Tokens = z.array(z.object({ tokenid: z.string(), comment }))
  const Acl = z.array(
    z.object({
      path: z.string(),
      ugid: z.string(),
      roleid: z.string(),
      propagate: z.union([z.boolean(), z.coerce.number()]).nullish(),
    }),
  )
  return {
    version: async () => (await send({ spec: calls.version, answer: VersionAnswer })).version,
    ownPrivileges: async (paths) => {
      const granted = new Map<string, ReadonlySet<string>>()
      for (const path of paths) {
        const answer = await send({ spec: calls.permissions, form: { path }, answer: PermissionsAnswer })
        granted.set(path, new Set(Object.keys(answer[path] ?? {})))
      }
      return granted
    },
    tokensOf: async (userid) => {
      const entries = await send({ spec: adminCalls.tokens, path: { userid }, answer: Tokens })
      return entries.map(({ tokenid, comment }) => ({ id: `${userid}!${tokenid}`, comment }))
    },
    addToken: async (tokenId, comment) => {
      const answer = z.object({ value: z.string().min(1) })
      const form = { privsep: true, comment }
      const { value } = await send({ spec: adminCalls.addToken, path: parts(tokenId), form, answer })
      return `${tokenId}=${value}`
    },
    removeToken: (tokenId) => send({ spec: adminCalls.removeToken, path: parts(tokenId), answer: Nothing }),
    grants: async () =>
      (await send({ spec: adminCalls.acl, answer: Acl })).map(({ path, ugid, roleid, propagate }) => ({
        path,
        holder: ugid,
        role: roleid,
        propagate: Boolean(propagate),
      })),
    grant: ({ path, holder, role, propagate }) =>
      send({
        spec: adminCalls.modifyAcl,
        form: { path, roles: role, tokens: holder, propagate },
        answer: Nothing,
      }),
    close: () => transport.close(),
  }
}

function parts(tokenId: string): { userid: string; tokenid: string } {
  const [userid = '', tokenid = ''] = tokenId.split('!')
  return { userid, tokenid }
}
