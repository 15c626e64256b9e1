import type { Api } from './api.ts'
import { isProxmoxError, type ProxmoxError } from './errors.ts'
import type { ClusterStatus } from './provider.ts'

/** Who holds a VMID, as far as it can be proven. */
export type Holding = 'free' | 'taken' | 'no quorum'

/** Asks who holds a VMID, at one endpoint after the other. */
export type ProveHolding = (vmid: number, doors: readonly Api[]) => Promise<Holding>

/**
 * Asks until an endpoint is known to belong to the quorate part of the cluster: a node cut off from it would still call a
 * number free that was given away meanwhile. For one token: that it may not ask the cluster itself is learnt once.
 */
export function createProveHolding(): ProveHolding {
  let mayAskCluster = true

  return async (vmid, doors) => {
    let failure: ProxmoxError | undefined
    let cutOff = false
    for (const door of doors) {
      try {
        if (await isQuorate(door)) return await holding(vmid, door)
        cutOff = true
      } catch (error) {
        if (!isProxmoxError(error, 'Unreachable', 'Untrusted')) throw error
        failure = error
      }
    }
    if (cutOff || !failure) return 'no quorum'
    throw failure
  }

  // Without Sys.Audit the cluster's own word is not to be had; more than half of its nodes being online will do.
  async function isQuorate(door: Api): Promise<boolean> {
    if (mayAskCluster) {
      try {
        return readClusterStatus(await door.clusterStatus()).quorate
      } catch (error) {
        if (!isProxmoxError(error, 'Forbidden')) throw error
        mayAskCluster = false
      }
    }
    const nodes = await door.nodes()
    return nodes.filter(({ status }) => status === 'online').length * 2 > nodes.length
  }
}

// The one call that sees every guest of the cluster, whatever the token may see. Source: pve-manager Cluster.pm nextid.
async function holding(vmid: number, door: Api): Promise<Holding> {
  try {
    await door.nextId({ vmid })
    return 'free'
  } catch (error) {
    if (isProxmoxError(error, 'AlreadyExists')) return 'taken'
    throw error
  }
}

/** A node that stands alone lists no cluster, and is its own quorum. */
export function readClusterStatus(entries: Awaited<ReturnType<Api['clusterStatus']>>): ClusterStatus {
  const cluster = entries.find(({ type }) => type === 'cluster')
  const nodes = entries.filter(({ type }) => type === 'node').map(({ name, online }) => ({ name, online }))
  return { clustered: cluster !== undefined, quorate: cluster?.quorate ?? true, nodes }
}
