import type { WorldAcl } from '../types.ts'
import { addToken, removeToken } from './api-tokens.ts'
import type { Cluster } from './cluster.ts'
import { die, PveError } from './errors.ts'
import { removeHa, setHa } from './ha.ts'
import { textTable } from './print.ts'
import { builtInRoles } from './privileges.ts'
import { type Args, answered, parseArgv, type QmResult, qm } from './qm.ts'
import { looks } from './root-looks.ts'
import type { State } from './state.ts'
import { parseVolumeId, storageConfig } from './storage.ts'

/** A text is what it prints, a UPID in an object a task that it began. */
type Command = (cluster: Cluster, args: Args, node: string) => string | { upid: string } | undefined

/**
 * What root types in the shell of a host: `qm`, what one looks with (`root-looks.ts`), and of ha-manager, pveum, pvesm and pvesh
 * what setting access and storages right takes.
 */
export function root(cluster: Cluster, node: string, argv: string[]): QmResult {
  const [program = '', ...rest] = argv
  const args = parseArgv(rest)
  const absent = reasonOf(program, args.words)
  if (absent !== undefined)
    return { exitCode: 127, stdout: '', stderr: `${argv.join(' ')}: not in the simulator: ${absent}\n` }
  if (program === 'qm') return qm(cluster, node, rest)
  const verb = [3, 2, 1].find((count) => known[`${program} ${args.words.slice(0, count).join(' ')}`]) ?? 0
  const run = known[`${program} ${args.words.slice(0, verb).join(' ')}`]
  if (!run) return { exitCode: 255, stdout: '', stderr: `ERROR: unknown command '${argv.join(' ')}'\n` }
  return answered(cluster, () => run(cluster, { ...args, words: args.words.slice(verb) }, node) ?? '')
}

/** What a host has and the simulator has not, and why: also `program verb`. */
const absences: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    ['systemctl', 'journalctl', 'df', 'free', 'grep', 'getent', 'curl', 'openssl', 'ifup', 'cat', 'aws'].map(
      (program) => [program, 'there is no machine behind a simulated node to ask'],
    ),
  ),
  'qm terminal': 'its guests have no console to sit at; what they print is in up.log, at level debug',
  'qm agent': 'the guest is asked through the API only',
  'qm disk': 'nothing moves a disk between its storages',
  'qm create': 'it comes with its templates',
  'qm template': 'it comes with its templates',
  'qm resume': 'nobody can pause its machines',
  'pveum user token permissions': 'what its token may is asked by egress check',
  'pvenode cert': 'the fingerprints of its nodes are in the configuration that it writes',
  'pvenode acme': 'its certificates are its own',
  'pvecm updatecerts': 'its certificates are its own',
  'pvesh set /cluster/options': 'its datacenter options are given with its world',
  pve8to9: 'its version is chosen when its folder is new',
  'pve-firewall': 'it has no firewall',
}

function reasonOf(program: string, words: readonly string[]): string | undefined {
  return [0, 1, 2, 3].map((count) => absences[[program, ...words.slice(0, count)].join(' ')]).find(Boolean)
}

const list = (text = '') => text.split(/[,;\s]+/).filter((one) => one !== '')

// Source: pve-access-control API2/Role.pm, API2/ACL.pm, AccessControl.pm add_role_privs; pve-storage API2/Storage/Config.pm; pve-manager API2/Pool.pm.
const commands: Record<string, Command> = {
  'pveum role add'({ state }, { words, options }) {
    const role = nameOf(words)
    if (state.roles[role] ?? builtInRoles(state.version)[role]) die(`role '${role}' already exists`)
    state.roles[role] = valid(state.version, list(options.privs))
  },
  'pveum role modify'({ state }, { words, options }) {
    const role = nameOf(words)
    const had = state.roles[role] ?? die(`role '${role}' does not exist`)
    const given = valid(state.version, list(options.privs))
    state.roles[role] = options.append === '1' ? [...new Set([...had, ...given])] : given
  },
  'pveum role delete'({ state }, { words }) {
    const role = nameOf(words)
    if (!state.roles[role]) die(`role '${role}' does not exist`)
    delete state.roles[role]
    state.acl = state.acl.filter((entry) => entry.role !== role)
  },
  'pveum acl modify'({ state }, args) {
    for (const entry of entriesIn(args)) {
      if (!state.roles[entry.role] && !builtInRoles(state.version)[entry.role])
        die(`update ACL failed: role '${entry.role}' does not exist`)
      state.acl = [...state.acl.filter((one) => !isSame(one, entry)), entry]
    }
  },
  'pveum acl delete'({ state }, args) {
    for (const entry of entriesIn(args)) state.acl = state.acl.filter((one) => !isSame(one, entry))
  },
  'pveum user add'({ state }, { words }) {
    const userid = nameOf(words)
    if (state.users.some((user) => user.userid === userid))
      die(`create user failed: user '${userid}' already exists`)
    state.users.push({ userid })
  },
  'pveum user delete'({ state }, { words }) {
    const { userid } = userNamed(state, words)
    state.users = state.users.filter((user) => user.userid !== userid)
    state.acl = state.acl.filter(({ ugid }) => ugid !== userid && !ugid.startsWith(`${userid}!`))
  },
  'pveum user modify'({ state }, { words, options }) {
    const user = userNamed(state, words)
    if (options.expire !== undefined) user.expireSeconds = Number(options.expire)
    if (options.enable !== undefined) user.enabled = options.enable === '1'
  },
  /** `pveum user token add|modify|remove|list`, whose verb is the third word. */
  'pveum user token'({ state }, { words: [verb, user, ...rest], options }) {
    if (verb === 'list') {
      const { tokens = [] } = userNamed(state, [user ?? ''])
      const rows = tokens.map(({ id: tokenid, comment, expireSeconds: expire = 0, privsep }) => ({
        tokenid,
        comment,
        expire,
        privsep: privsep === false ? 0 : 1,
      }))
      return textTable(['tokenid', 'comment', 'expire', 'privsep'], rows)
    }
    const id = nameOf(rest)
    if (verb === 'modify') {
      const token =
        userNamed(state, [user ?? '']).tokens?.find((one) => one.id === id) ?? die(`no such token '${id}'`)
      if (options.expire !== undefined) token.expireSeconds = Number(options.expire)
      return ''
    }
    if (verb === 'remove') {
      removeToken(state, nameOf([user ?? '']), id)
      return ''
    }
    if (verb !== 'add') return die(`unknown command 'user token ${verb}'`)
    const { secret } = addToken(state, nameOf([user ?? '']), id, {
      privsep: options.privsep !== '0',
      ...(options.comment === undefined ? {} : { comment: options.comment }),
    })
    return `full-tokenid ${user}!${id}\nvalue ${secret}\n`
  },
  'pveum pool add'({ state }, { words }) {
    const pool = nameOf(words)
    if (state.pools[pool]) die(`create pool failed: pool '${pool}' already exists`)
    state.pools[pool] = { vmids: [], storages: [] }
  },
  'pveum pool delete'({ state }, { words }) {
    const name = nameOf(words)
    const pool = state.pools[name] ?? die(`delete pool failed: pool '${name}' does not exist`)
    if (pool.vmids.length + pool.storages.length > 0) die(`delete pool failed: pool '${name}' is not empty`)
    delete state.pools[name]
  },
  // Source: pve-ha-manager API2/HA/Resources.pm.
  'ha-manager add'(cluster, { words, options }) {
    const vmid = haVmid(words)
    if (!cluster.state.vms[vmid]) die(`unable to add resource: VM ${vmid} does not exist`)
    setHa(cluster, vmid, options.state === 'stopped' ? 'stopped' : 'started')
  },
  'ha-manager remove'(cluster, { words }) {
    removeHa(cluster, haVmid(words))
  },
  'pvesm set'({ state }, { words, options }) {
    const id = nameOf(words)
    const storage =
      state.storages.find((one) => one.storage === id) ??
      die(`update storage failed: storage '${id}' does not exist`)
    if (options.content !== undefined) storage.content = list(options.content)
    if (options.disable !== undefined) storage.disable = options.disable === '1'
  },
  // Source: pve-storage CLI/pvesm.pm, which waits for the task.
  'pvesm free'(cluster, { words }, node) {
    const { storage, name } = parseVolumeId(nameOf(words))
    storageConfig(cluster, storage)
    return { upid: cluster.tasks.fork(node, 'imgdel', storage, 'root@pam', { storage, name }) }
  },
  'pveum pool modify': (cluster, { words, options }) => setPool(cluster, nameOf(words), options),
  'pvesh set'(cluster, { words, options }) {
    const id = /^\/pools\/([^/]+)$/.exec(nameOf(words))?.[1] ?? die(`no such resource '${nameOf(words)}'`)
    return setPool(cluster, id, options)
  },
}

function setPool({ state }: Cluster, id: string, options: Args['options']): string {
  const pool = state.pools[id] ?? die(`pool '${id}' does not exist`)
  for (const vmid of list(options.vms).map(Number)) {
    if (!state.vms[vmid]) die(`update pool failed: VM ${vmid} does not exist`)
    pool.vmids = pool.vmids.filter((one) => one !== vmid)
    if (options.delete !== '1') pool.vmids.push(vmid)
  }
  return ''
}

const known: Record<string, Command> = { ...commands, ...looks }

const userNamed = (state: State, words: string[]) =>
  state.users.find(({ userid }) => userid === nameOf(words)) ?? die(`no such user ('${nameOf(words)}')`)

const nameOf = ([name]: string[]): string => name ?? die('not enough arguments')

const haVmid = (words: string[]): number =>
  Number(/^(?:vm:)?(\d+)$/.exec(nameOf(words))?.[1] ?? die(`unable to parse resource id '${nameOf(words)}'`))

function valid(version: 8 | 9, privileges: string[]): string[] {
  const known = new Set(Object.values(builtInRoles(version)).flat())
  for (const one of privileges) if (!known.has(one)) die(`invalid privilege '${one}'`)
  return privileges
}

function entriesIn({ words, options }: Args): WorldAcl[] {
  const holders = [...list(options.users), ...list(options.tokens)]
  const roles = list(options.roles)
  if (roles.length === 0)
    throw new PveError(400, '400 not enough arguments', {
      roles: 'property is missing and it is not optional',
    })
  return holders.flatMap((ugid) =>
    roles.map((role) => ({ path: nameOf(words), ugid, role, propagate: options.propagate !== '0' })),
  )
}

const isSame = (a: WorldAcl, b: WorldAcl) => a.path === b.path && a.ugid === b.ugid && a.role === b.role
