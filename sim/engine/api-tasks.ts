import { isToken, userOf } from './access.ts'
import {
  type Ctx,
  type Endpoint,
  flag,
  may,
  maybeNumber,
  maybeText,
  mustHave,
  reply,
  text,
} from './endpoint.ts'
import { refuseParams } from './errors.ts'
import type { Task } from './state.ts'

const upidPattern =
  /^UPID:([a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?):([0-9A-Fa-f]{8}):([0-9A-Fa-f]{8,9}):([0-9A-Fa-f]{8}):([^:\s/]+):([^:\s/]*):([^:\s/]+):$/

export const taskEndpoints: Endpoint[] = [
  { method: 'GET', path: '/nodes/{node}/tasks', handler: list },
  {
    method: 'GET',
    path: '/nodes/{node}/tasks/{upid}',
    proxied: true,
    parameters: { node: { type: 'string', format: 'pve-node' }, upid: { type: 'string' } },
    handler: () => reply([{ name: 'log' }, { name: 'status' }]),
  },
  {
    method: 'GET',
    path: '/nodes/{node}/tasks/{upid}/status',
    handler: (ctx) => {
      const task = knownTask(ctx, 'Sys.Audit')
      return reply(shownTask(task))
    },
  },
  {
    method: 'GET',
    path: '/nodes/{node}/tasks/{upid}/log',
    handler: (ctx) => {
      const upid = ownUpid(ctx, 'Sys.Audit')
      const task = findTask(ctx, upid)
      if (!task) return reply(noLog(ctx.cluster.state.version), 1)
      const lines = task.log
      const start = maybeNumber(ctx, 'start') ?? 0
      const limit = maybeNumber(ctx, 'limit') ?? 50
      const numbered = (lines.length > 0 ? lines : ['no content']).map((t, index) => ({ n: index + 1, t }))
      return reply(
        limit === 0 ? numbered.slice(start) : numbered.slice(start, start + limit),
        numbered.length,
      )
    },
  },
  {
    method: 'DELETE',
    path: '/nodes/{node}/tasks/{upid}',
    handler: (ctx) => {
      const task = knownTask(ctx, 'Sys.Modify')
      if (task.endMs === undefined) ctx.cluster.tasks.kill(task.upid, 'TERM')
      return reply(null)
    },
  },
]

const findTask = (ctx: Ctx, upid: string): Task | undefined => {
  const task = ctx.cluster.state.tasks[upid]
  return task?.node === ctx.node ? task : undefined
}

/** In 8 one line by itself, not a list of one. */
function noLog(version: 8 | 9) {
  const line = { n: 1, t: 'unable to open file - No such file or directory' }
  return version === 8 ? line : [line]
}

/** Whether there is such a task is told to everybody, before the question whose it is. */
function knownTask(ctx: Ctx, otherwise: string): Task {
  const task = findTask(ctx, text(ctx, 'upid'))
  if (!task && upidPattern.test(text(ctx, 'upid'))) refuseParams({ upid: 'no such task' })
  ownUpid(ctx, otherwise)
  return task ?? refuseParams({ upid: 'no such task' })
}

/** @throws {PveError} for a text that is no UPID, and for the task of somebody else without the privilege. */
function ownUpid(ctx: Ctx, otherwise: string): string {
  const upid = text(ctx, 'upid')
  const user = upidPattern.exec(upid)?.[7] ?? refuseParams({ upid: 'unable to parse worker upid' })
  if (!isOwn(ctx, user)) mustHave(ctx, `/nodes/${ctx.node}`, otherwise)
  return upid
}

/** The same token, or the user whose token it was. */
const isOwn = (ctx: Ctx, user: string): boolean =>
  user === ctx.caller || (!isToken(ctx.caller) && userOf(user) === ctx.caller)

function common(task: Task) {
  const [, tokenid] = task.user.split('!')
  return {
    upid: task.upid,
    node: task.node,
    pid: task.pid,
    pstart: task.pstart,
    starttime: Math.floor(task.startMs / 1000),
    type: task.type,
    id: task.id,
    user: userOf(task.user),
    ...(tokenid === undefined ? {} : { tokenid }),
  }
}

function shownTask(task: Task) {
  if (task.endMs === undefined) return { ...common(task), status: 'running' }
  return { ...common(task), status: 'stopped', exitstatus: task.exitstatus ?? 'unexpected status' }
}

/** As in the list of a node, where the status is the exit text. A running one stands there by its bare record. */
function listedTask(task: Task) {
  if (task.endMs === undefined) {
    const { tokenid: _, ...shown } = common(task)
    return { ...shown, user: task.user, status: 'RUNNING', saved: '0' }
  }
  return {
    ...common(task),
    endtime: Math.floor(task.endMs / 1000),
    status: task.exitstatus ?? 'unexpected status',
  }
}

/** As in the list of the cluster, which its nodes broadcast. */
export function broadcastTask(task: Task) {
  const { pid, pstart: _, ...shown } = common(task)
  if (task.endMs === undefined) return { ...shown, pid, saved: '0' }
  const status = task.exitstatus ?? 'unexpected status'
  return { ...shown, endtime: Math.floor(task.endMs / 1000), status, saved: '1' }
}

export function list(ctx: Ctx) {
  const source = maybeText(ctx, 'source') ?? 'archive'
  const vmid = maybeText(ctx, 'vmid')
  const type = maybeText(ctx, 'typefilter')
  const user = maybeText(ctx, 'userfilter')
  const since = maybeNumber(ctx, 'since') ?? 0
  const until = maybeNumber(ctx, 'until') ?? Number.POSITIVE_INFINITY
  const statuses = maybeText(ctx, 'statusfilter')?.split(/[,;\s]+/)
  const all = may(ctx, `/nodes/${ctx.node}`, 'Sys.Audit')

  const chosen = Object.values(ctx.cluster.state.tasks)
    .reverse()
    .filter((task) => {
      const running = task.endMs === undefined
      if (task.node !== ctx.node || (!all && !isOwn(ctx, task.user))) return false
      if (running ? source === 'archive' : source === 'active') return false
      if (vmid !== undefined && task.id !== vmid) return false
      if (type !== undefined && !task.type.includes(type)) return false
      if (user !== undefined && !task.user.includes(user)) return false
      if (task.startMs / 1000 < since || task.startMs / 1000 > until) return false
      if (statuses && !statuses.includes(kindOf(task))) return false
      return !(flag(ctx, 'errors') && kindOf(task) === 'ok')
    })
    .map(listedTask)
  const start = maybeNumber(ctx, 'start') ?? 0
  const page = chosen.slice(start, start + (maybeNumber(ctx, 'limit') ?? 50))
  return chosen.length > 0 ? reply(page, chosen.length) : reply(page)
}

function kindOf(task: Task): string {
  const status = task.exitstatus ?? 'unexpected status'
  if (status === 'OK') return 'ok'
  if (status.startsWith('WARNINGS: ')) return 'warning'
  return status === 'unexpected status' ? 'unknown' : 'error'
}
