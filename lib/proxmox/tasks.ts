import { problem, tidy } from './answer.ts'
import type { Api } from './api.ts'
import { calls } from './calls.ts'
import { isProxmoxError, ProxmoxError } from './errors.ts'
import type { Provider } from './provider.ts'
import { parseUpid, type UpidParts } from './upid.ts'
import { readWords } from './words.ts'

type Tasks = Pick<Provider, 'task' | 'cancel' | 'runningTasks'>

/** Background tasks, always asked after at the node that runs them: another would not know them. */
export function createTasks(api: Api): Tasks {
  return {
    task: async (upid) => {
      const parts = parse(upid)
      const { status, exitstatus } = await api.taskStatus({ node: parts.node, upid })
      if (status === 'running') return { running: true }
      // The success test of Proxmox itself. Source: pve-common Tools.pm upid_status_is_error.
      const warnings = exitstatus === 'OK' ? '0' : /^WARNINGS: (\d+)$/.exec(exitstatus ?? '')?.[1]
      if (warnings !== undefined) return { running: false, ok: true, warnings: Number(warnings) }
      return { running: false, ok: false, error: failed(parts, exitstatus ?? 'unexpected status') }
    },

    cancel: async (upid) => {
      try {
        await api.cancel({ node: parse(upid).node, upid })
      } catch (error) {
        // One's own task takes no privilege: whoever may not stop it has another token than the one that began it.
        if (!isProxmoxError(error, 'NoSuchTask', 'Forbidden')) throw error
      }
    },

    runningTasks: async ({ node, vmid, type }) => {
      const form = { source: 'active', limit: 500, vmid, typefilter: type }
      const tasks = await api.tasks({ node }, form)
      // The list of active tasks keeps those that ended until it is rotated.
      return tasks.flatMap(({ upid, node, type, id, starttime, status, endtime }) =>
        endtime === undefined && (status === undefined || status === 'RUNNING')
          ? [{ upid, node, type, id, startedAtMs: starttime * 1000 }]
          : [],
      )
    },
  }
}

function parse(upid: string): UpidParts {
  const parts = parseUpid(upid)
  if (parts) return parts
  throw problem({ spec: calls.taskStatus }, { code: 'Rejected', sent: 'no' }, `${upid} is no UPID`)
}

// A task's id is a VM's number or a storage's name; of a clone it is the source's number.
function failed({ type, id, node, user }: UpidParts, exitStatus: string): ProxmoxError {
  const vmid = /^\d+$/.test(id) ? Number(id) : undefined
  const reading = readWords(exitStatus, type === 'qmclone' && vmid !== undefined ? { cloneOf: vmid } : {})
  return new ProxmoxError(
    tidy(`task ${type} (${[node, id].filter((part) => part !== '').join('/')}): ${exitStatus}`),
    {
      ...reading,
      call: `task ${type}`,
      node,
      sent: 'yes',
      ambiguous: false,
      ...(vmid === undefined ? {} : { vmid }),
      ...(reading.code === 'Forbidden' && user.includes('!') ? { tokenId: user } : {}),
    },
  )
}
