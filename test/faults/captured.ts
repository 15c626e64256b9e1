import { readdirSync, readFileSync } from 'node:fs'

/** A call of ours that Proxmox was recorded to refuse, with what it said. */
export type Refusal = {
  call: string
  method: string
  path: string
  answer: { status: number; reason: string; message?: string; errors?: Record<string, string> }
}

/** The calls of a life in which no VM moves, by name, as patterns over the path below /api2/json. */
const ourCalls: { call: string; method: string; path: string }[] = [
  { call: 'nodes', method: 'GET', path: '^/nodes$' },
  { call: 'nextid', method: 'GET', path: '^/cluster/nextid' },
  { call: 'content', method: 'GET', path: '^/nodes/[^/]+/storage/[^/]+/content($|\\?)' },
  { call: 'upload', method: 'POST', path: '^/nodes/[^/]+/storage/[^/]+/upload' },
  { call: 'delete volume', method: 'DELETE', path: '^/nodes/[^/]+/storage/[^/]+/content/.' },
  { call: 'clone', method: 'POST', path: '^/nodes/[^/]+/qemu/[^/]+/clone' },
  { call: 'config', method: 'GET', path: '^/nodes/[^/]+/qemu/[^/]+/config' },
  { call: 'configure', method: 'PUT', path: '^/nodes/[^/]+/qemu/[^/]+/config' },
  { call: 'resize', method: 'PUT', path: '^/nodes/[^/]+/qemu/[^/]+/resize' },
  { call: 'status', method: 'GET', path: '^/nodes/[^/]+/qemu/[^/]+/status/current' },
  { call: 'start', method: 'POST', path: '^/nodes/[^/]+/qemu/[^/]+/status/start' },
  { call: 'stop', method: 'POST', path: '^/nodes/[^/]+/qemu/[^/]+/status/stop' },
  { call: 'destroy', method: 'DELETE', path: '^/nodes/[^/]+/qemu/[^/]+($|\\?)' },
  { call: 'agent', method: 'GET', path: '^/nodes/[^/]+/qemu/[^/]+/agent/' },
  { call: 'task status', method: 'GET', path: '^/nodes/[^/]+/tasks/[^/]+/status' },
]
export const ourTasks = ['qmclone', 'imgcopy', 'resize', 'qmstart', 'qmstop', 'imgdel', 'qmdestroy']

type Exchange = {
  request?: { method: string; path: string }
  response?: { status?: number; reason: string; body: Body | string | null }
}
type Body = {
  message?: string
  errors?: Record<string, string>
  data?: { type?: string; exitstatus?: string }
}

const folder = new URL('../fixtures/captures/', import.meta.url)

function* exchanges(version: 8 | 9): Iterable<Exchange> {
  const room = new URL(`${version}/`, folder)
  for (const file of readdirSync(room)
    .filter((name) => /^\d/.test(name))
    .sort()) {
    yield* JSON.parse(readFileSync(new URL(file, room), 'utf8')).exchanges
  }
}

/** Every distinct refusal of one of our calls; numbers of VMs do not make a difference. */
export function refusals(version: 8 | 9): Refusal[] {
  const found = new Map<string, Refusal>()
  for (const { request, response } of exchanges(version)) {
    if (!request || !response?.status || response.status < 400) continue
    const path = request.path.replace('/api2/json', '')
    const ours = ourCalls.find((one) => one.method === request.method && new RegExp(one.path).test(path))
    if (!ours) continue
    const { status, reason, body } = response
    const { message, errors } = typeof body === 'object' && body !== null ? body : {}
    const answer = {
      status,
      reason,
      ...(message === undefined ? {} : { message }),
      ...(errors && { errors }),
    }
    found.set(`${ours.call} ${JSON.stringify(answer).replace(/\d+/g, 'N')}`, { ...ours, answer })
  }
  return [...found.values()]
}

/** Every distinct failed end of a task of a kind that we start. */
export function failedEnds(version: 8 | 9): { taskType: string; exitText: string }[] {
  const found = new Map<string, { taskType: string; exitText: string }>()
  for (const { response } of exchanges(version)) {
    const data = typeof response?.body === 'object' ? response.body?.data : undefined
    const { type, exitstatus } = data ?? {}
    if (!type || !exitstatus || !ourTasks.includes(type) || /^(OK|WARNINGS: \d+)$/.test(exitstatus)) continue
    found.set(`${type} ${exitstatus.replace(/\d+/g, 'N')}`, { taskType: type, exitText: exitstatus })
  }
  return [...found.values()]
}
