import type { Config } from '../../lib/config.ts'
import { settleMs } from '../../lib/function.ts'
import { HOLD_TAG } from '../../lib/names.ts'
import type { ListedVm } from '../../lib/proxmox/index.ts'

/** The part of the configuration that judges what was found, times in milliseconds. */
export type Rules = {
  deployment: string
  /** How long something must have been suspect before anything is done about it. */
  graceMs: number
  settleMs: number
  stallMs: number
  maxDeletions: number
  /** Of each cluster: the VMIDs that proxies may get. */
  ranges: Readonly<Record<string, readonly { from: number; to: number }[]>>
  /** Of each zone: its cluster. */
  zones: Readonly<Record<string, string>>
}

export function rulesOf(config: Config): Rules {
  const { deployment, clusters, zones, timings, limits } = config
  const ranges = Object.entries(clusters).map(([name, { vmids }]) => {
    const own = Object.values(zones).flatMap((zone) =>
      zone.cluster === name && zone.vmids ? [zone.vmids] : [],
    )
    return [name, [vmids, ...own]]
  })
  return {
    deployment,
    // What was started before the first look must have ended by the second.
    graceMs: Math.max(timings.graceSeconds * 1000, settleMs(config)),
    settleMs: settleMs(config),
    stallMs: timings.stallSeconds * 1000,
    maxDeletions: limits.maxDeletions,
    ranges: Object.fromEntries(ranges),
    zones: Object.fromEntries(Object.entries(zones).map(([name, { cluster }]) => [name, cluster])),
  }
}

export const inRange = ({ ranges }: Rules, cluster: string, vmid: number): boolean =>
  (ranges[cluster] ?? []).some(({ from, to }) => from <= vmid && vmid <= to)

/** Whether a VM may be ours, so that its configuration is worth a call: by its number or its tags. */
export function mayBeOurs(rules: Rules, cluster: string, { vmid, type, tags }: ListedVm): boolean {
  if (type !== 'qemu') return false
  if (inRange(rules, cluster, vmid) || tags.has(`egress-${rules.deployment}`)) return true
  // One that names another deployment is that one's.
  return tags.has('egress') && ![...tags].some((tag) => tag.startsWith('egress-') && tag !== HOLD_TAG)
}
