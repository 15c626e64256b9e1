import type { WorldAcl } from '../types.ts'
import { addToken, removeToken } from './api-tokens.ts'
import type { Cluster } from './cluster.ts'
import { die, PveError } from './errors.ts'
import { removeHa, setHa } from './ha.ts'
import { builtInRoles } from './privileges.ts'
import { type Args, answered, parseArgv, type QmResult, qm } from './qm.ts'

/** A text is what it prints. */
type Command = (cluster: Cluster, args: Args) => unknown

/** What root types in the shell of a host: `qm`, and of ha-manager, pveum, pvesm and pvesh what setting access and storages right takes. */
export function root(cluster: Cluster, node: string, argv: string[]): QmResult {
  const [program = '', ...rest] = argv
  if (program === 'qm') return qm(cluster, node, rest)
  const args = parseArgv(rest)
  const run = commands[`${program} ${args.words.slice(0, verbWords[program] ?? 1).join(' ')}`]
  if (!run) return { exitCode: 255, stdout: '', stderr: `ERROR: unknown command '${argv.join(' ')}'\n` }
  return answered(cluster, () => {
    const said = run(cluster, { ...args, words: args.words.slice(verbWords[program] ?? 1) })
    return typeof said === 'string' ? said : ''
  })
}

const verbWords: Record<string, number> = { pveum: 2 }

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
  /** `pveum user token add|remove`, whose verb is the third word. */
  'pveum user token'({ state }, { words: [verb, user, ...rest], options }) {
    const id = nameOf(rest)
    if (verb === 'remove') return removeToken(state, nameOf([user ?? '']), id)
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
  'pvesh set'({ state }, { words, options }) {
    const id = /^\/pools\/([^/]+)$/.exec(nameOf(words))?.[1] ?? die(`no such resource '${nameOf(words)}'`)
    const pool = state.pools[id] ?? die(`pool '${id}' does not exist`)
    for (const vmid of list(options.vms).map(Number)) {
      if (!state.vms[vmid]) die(`update pool failed: VM ${vmid} does not exist`)
      pool.vmids = pool.vmids.filter((one) => one !== vmid)
      if (options.delete !== '1') pool.vmids.push(vmid)
    }
  },
}

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
