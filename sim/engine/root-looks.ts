import { resources } from './api-resources.ts'
import { content, statuses } from './api-storages.ts'
import { list } from './api-tasks.ts'
import { type Cluster, isQuorate, nodeOf, visibleFrom } from './cluster.ts'
import type { Ctx } from './endpoint.ts'
import { die } from './errors.ts'
import { textTable } from './print.ts'
import type { Args } from './qm.ts'

/** What a command of root's prints. */
type Look = (cluster: Cluster, args: Args, node: string) => string

type Fields = Readonly<Record<string, unknown>>

/** What root looks with at a host; nothing of it changes anything. */
export const looks: Record<string, Look> = {
  // Source: pve-manager CLI/pvenode.pm.
  'pvenode task list'(cluster, { options }, node) {
    const tasks = fieldsOf(list(asRoot(cluster, node, options)).data).map((task) => ({
      ...task,
      starttime: isoOf(task.starttime),
      endtime: isoOf(task.endtime),
      status: task.status === 'RUNNING' || task.status === 'OK' || isWarning(task) ? task.status : 'ERROR',
    }))
    return textTable(['UPID', 'Type', 'ID', 'User', 'Starttime', 'Endtime', 'Status'], tasks.map(titled))
  },
  'pvenode task log'({ state }, { words: [upid = ''] }) {
    const task = state.tasks[upid] ?? die('no such task')
    return task.log.map((line) => `${line}\n`).join('')
  },
  // Source: pve-storage CLI/pvesm.pm.
  'pvesm status'(cluster, { options }, node) {
    const rows = statuses(asRoot(cluster, node, options))
    const width = 1 + Math.max(0, ...rows.map(({ storage }) => storage.length))
    const line = (name: string, ...[type, status, total, used, avail, share]: string[]) =>
      `${name.padEnd(width)} ${type?.padStart(10)} ${status?.padStart(10)} ${total?.padStart(15)} ${used?.padStart(15)} ${avail?.padStart(15)} ${share?.padStart(8)}\n`
    const kib = (bytes: number) => String(Math.floor(bytes / 1024))
    return (
      line('Name', 'Type', 'Status', 'Total', 'Used', 'Available', '%') +
      rows
        .map(({ storage, type, enabled, active, total, used, avail }) => {
          const status = enabled === 0 ? 'disabled' : active === 1 ? 'active' : 'inactive'
          const share = enabled === 0 ? 'N/A' : `${(total > 0 ? (used * 100) / total : 0).toFixed(2)}%`
          return line(storage, type, status, kib(total), kib(used), kib(avail), share)
        })
        .join('')
    )
  },
  'pvesm list'(cluster, { words: [storage = ''], options }, node) {
    const rows = fieldsOf(content(asRoot(cluster, node, { ...options, storage })))
    const width = Math.max(5, ...rows.map(({ volid }) => String(volid).length))
    const line = (...[volid = '', format = '', type = '', size = '', vmid = '']: string[]) =>
      `${volid.padEnd(width)} ${format.padEnd(7)} ${type.padEnd(9)} ${size.padStart(15)} ${vmid}\n`
    return (
      line('Volid', 'Format', 'Type', 'Size', 'VMID') +
      rows
        .map(({ volid, format, content: kind, size, vmid }) =>
          line(
            String(volid),
            String(format),
            String(kind),
            String(size),
            vmid === undefined ? '' : String(vmid),
          ),
        )
        .join('')
    )
  },
  // Source: pve-cluster CLI/pvecm.pm, of corosync-quorumtool's output the lines that one looks for.
  'pvecm status'(cluster, _, node) {
    const { nodes, expectedVotes = nodes.length, cluster: name = 'simulated' } = cluster.state
    const seen = visibleFrom(cluster, node).length
    return [
      'Cluster information',
      '-------------------',
      `Name:             ${name}`,
      '',
      'Quorum information',
      '------------------',
      `Nodes:            ${seen}`,
      `Quorate:          ${isQuorate(cluster, node) ? 'Yes' : 'No'}`,
      '',
      'Votequorum information',
      '----------------------',
      `Expected votes:   ${expectedVotes}`,
      `Total votes:      ${seen}`,
      `Quorum:           ${Math.floor(expectedVotes / 2) + 1}${isQuorate(cluster, node) ? '' : ' Activity blocked'}`,
      '',
    ].join('\n')
  },
  'pvecm nodes'(cluster, _, node) {
    const all = cluster.state.nodes
    const members = visibleFrom(cluster, node).filter(({ state }) => state !== 'down')
    const rows = members.map(({ name }) => {
      const id = all.indexOf(nodeOf(cluster, name)) + 1
      return `${String(id).padStart(10)}${'1'.padStart(11)} ${name}${name === node ? ' (local)' : ''}`
    })
    return [
      '',
      'Membership information',
      '----------------------',
      '    Nodeid      Votes Name',
      ...rows,
      '',
    ].join('\n')
  },
  'pveum user list'({ state }) {
    return textTable(
      ['userid', 'enable', 'expire'],
      state.users.map(({ userid, enabled = true, expireSeconds = 0 }) => ({
        userid,
        enable: enabled ? 1 : 0,
        expire: expireSeconds,
      })),
    )
  },
  'pvesh get'(cluster, { words: [path], options }, node) {
    if (path !== '/cluster/resources') return die(`No '${path}' handler defined for 'get' in the simulator`)
    const rows = fieldsOf(resources(asRoot(cluster, node, options)))
    return textTable(['id', 'type', 'name', 'node', 'status', 'pool', 'lock'], rows)
  },
}

/** A call of root's own. */
const asRoot = (cluster: Cluster, node: string, params: Ctx['params']): Ctx => ({
  cluster,
  node,
  received: node,
  caller: 'root@pam',
  params,
  call: { node, method: 'GET', path: '', params },
})

// The API answers with objects.
const fieldsOf = (data: unknown) => data as Fields[]
const isoOf = (seconds: unknown) =>
  seconds === undefined
    ? undefined
    : new Date(Number(seconds) * 1000).toISOString().slice(0, 19).replace('T', ' ')
const isWarning = ({ status }: { status?: unknown }) => String(status).startsWith('WARNINGS')
const titled = ({ upid, type, id, user, starttime, endtime, status }: Fields) => ({
  UPID: upid,
  Type: type,
  ID: id,
  User: user,
  Starttime: starttime,
  Endtime: endtime,
  Status: status,
})
