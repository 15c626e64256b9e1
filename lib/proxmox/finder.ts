import { problem } from './answer.ts'
import type { Api } from './api.ts'
import { calls } from './calls.ts'
import { isProxmoxError, type ProxmoxError } from './errors.ts'
import type { Provider } from './provider.ts'
import type { ProveHolding } from './quorum.ts'
import type { ListedVm, Look, Vm, VmConfig } from './vm.ts'
import { readConfig } from './vm-config.ts'

type Finder = Pick<Provider, 'locate' | 'listVms' | 'look' | 'isFree' | 'templateAt'>

/** Finds VMs, and proves that there is none. `doors` are the same calls, each bound to one endpoint. */
export function createFinder(api: Api, doors: () => readonly Api[], proveHolding: ProveHolding): Finder {
  async function listVms(): Promise<ListedVm[]> {
    return (await api.resources()).flatMap(({ type, vmid, node, lock, tags, pool }) =>
      (type === 'qemu' || type === 'lxc') && vmid !== undefined && node !== undefined
        ? [
            {
              type,
              vmid,
              node,
              tags,
              ...(lock === undefined ? {} : { lock }),
              ...(pool === undefined ? {} : { pool }),
            },
          ]
        : [],
    )
  }

  async function locate(vmid: number): Promise<ListedVm | undefined> {
    return (await listVms()).find((vm) => vm.vmid === vmid)
  }

  async function look(at: Vm, expecting?: 'nothing'): Promise<Look> {
    const { vmid } = at
    if (expecting === 'nothing' && (await proveHolding(vmid, doors())) === 'free') return { kind: 'absent' }
    const first = await readAt(api.vmConfig, at)
    if (first.kind === 'vm') return first
    if (first.kind === 'forbidden') return lookAtHidden(vmid)

    // It may have moved, or its node may be down and the cluster may have started it elsewhere.
    const listed = await locate(vmid)
    if (listed?.type === 'lxc') return { kind: 'container', node: listed.node }
    if (listed && listed.node !== at.node) {
      const second = await readAt(api.vmConfig, { vmid, node: listed.node })
      if (second.kind === 'vm') return second
      if (second.kind === 'away') throw second.error
      if (second.kind === 'forbidden') return lookAtHidden(vmid)
    }
    const holding = await proveHolding(vmid, doors())
    if (holding === 'free') return { kind: 'absent' }
    if (first.kind === 'away') throw first.error
    return {
      kind: 'unknown',
      reason: holding === 'taken' ? `${vmid} is taken, but not to be found` : holding,
    }
  }

  // A token that is scoped to a pool may not see a VM before it joined the pool, nor after it left it, nor when it is gone.
  async function lookAtHidden(vmid: number): Promise<Look> {
    const holding = await proveHolding(vmid, doors())
    if (holding === 'no quorum') return { kind: 'unknown', reason: holding }
    return { kind: holding === 'free' ? 'absent' : 'hidden' }
  }

  async function isFree(vmid: number): Promise<boolean> {
    const holding = await proveHolding(vmid, doors())
    if (holding !== 'no quorum') return holding === 'free'
    const subject = { spec: calls.nextId, path: { vmid } }
    throw problem(
      subject,
      { code: 'NoQuorum', sent: 'yes' },
      'no endpoint belongs to a quorate part of the cluster',
    )
  }

  return {
    listVms,
    locate,
    look,
    isFree,
    templateAt: async (node, vmid) => {
      const read = await readAt(api.templateConfig, { node, vmid })
      if (read.kind === 'away') throw read.error
      if (read.kind === 'vm') return { kind: read.config.template ? 'template' : 'vm', config: read.config }
      return { kind: read.kind === 'missing' ? 'missing' : 'hidden' }
    },
  }
}

type Read =
  | { kind: 'vm'; node: string; config: VmConfig }
  | { kind: 'missing' }
  | { kind: 'forbidden' }
  | { kind: 'away'; error: ProxmoxError }

async function readAt(ask: Api['vmConfig'], { node, vmid }: Vm): Promise<Read> {
  try {
    return { kind: 'vm', node, config: readConfig(await ask({ node, vmid })) }
  } catch (error) {
    if (isProxmoxError(error, 'VmMissing')) return { kind: 'missing' }
    if (isProxmoxError(error, 'Forbidden')) return { kind: 'forbidden' }
    if (isProxmoxError(error, 'Unreachable', 'NodeUnknown')) return { kind: 'away', error }
    throw error
  }
}
