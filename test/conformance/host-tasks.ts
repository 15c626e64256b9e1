import type { Task } from '../../sim/engine/state.ts'
import type { Recording } from './recording.ts'

/** A task that ended, and when it began after the start of the recording. */
export type HostTask = { atMs: number; task: Task }

type Listed = { upid: string; endtime: number; status: string }

/**
 * Tasks that no recorded request made: from before the recording, or of its script on the host. They stand in its lists, so
 * they belong to the world of the scenario.
 */
export function hostTasks({ exchanges }: Recording, startMs: number): HostTask[] {
  const made = new Map<string, number>()
  const listed = new Map<string, Listed>()
  for (const { response, t = 0 } of exchanges) {
    const data = dataOf(response?.body)
    if (typeof data === 'string' && data.startsWith('UPID:')) made.set(data, t)
    for (const entry of Array.isArray(data) ? data : []) if (isListed(entry)) listed.set(entry.upid, entry)
  }
  const [first] = made
  // Without a task of its own a recording does not tell at what hour it began: then all of these were before it.
  const startSeconds = first
    ? startOf(first[0]) - first[1]
    : Math.max(0, ...[...listed.keys()].map(startOf)) + 1
  return [...listed.values()]
    .filter(({ upid }) => !made.has(upid))
    .map((entry) => hostTask(entry, startSeconds, startMs))
    .sort((a, b) => a.atMs - b.atMs || a.task.pid - b.task.pid)
}

const dataOf = (body: unknown): unknown =>
  typeof body === 'object' && body !== null && 'data' in body ? body.data : body

const isListed = (entry: unknown): entry is Listed =>
  typeof entry === 'object' && entry !== null && 'upid' in entry && 'endtime' in entry && 'status' in entry

const startOf = (upid: string): number => Number.parseInt(upid.split(':')[4] ?? '0', 16)

function hostTask({ upid, endtime, status }: Listed, startSeconds: number, startMs: number): HostTask {
  const [, node = '', pid = '', pstart = '', begun = '', type = '', id = '', user = ''] = upid.split(':')
  const atMs = (Number.parseInt(begun, 16) - startSeconds) * 1000
  const beganMs = startMs + atMs
  const task: Task = {
    upid,
    node,
    pid: Number.parseInt(pid, 16),
    pstart: Number.parseInt(pstart, 16),
    startMs: beganMs,
    endMs: beganMs + (endtime - startOf(upid)) * 1000,
    type,
    id,
    user,
    log: [],
    warnings: 0,
    exitstatus: status,
    stage: 'ended',
    dueMs: beganMs,
    data: null,
    locks: [],
  }
  return { atMs, task }
}
