import type { Claim, Claims } from '../../lib/claims.ts'

type Kept = Claim & { until?: number }

/** Claims in memory; held to the real ones by test/contract/claims.test.ts. */
export function createMemoryClaims(
  now: () => number,
): Claims & { all(): Claim[]; suspects(): Record<string, unknown>[] } {
  const kept = new Map<string, Kept>()
  const suspects = new Map<string, Record<string, unknown>>()
  const key = ({ partition, sort }: Pick<Claim, 'partition' | 'sort'>) => `${partition}\n${sort}`

  function take(claim: Kept): boolean {
    const held = kept.get(key(claim))
    const lapsed = held?.until !== undefined && held.until < now()
    if (held && held.owner !== claim.owner && !lapsed) return false
    kept.set(key(claim), claim)
    return true
  }
  function free(claim: Claim): void {
    if (kept.get(key(claim))?.owner === claim.owner) kept.delete(key(claim))
  }
  const vmidClaim = (cluster: string, vmid: number, owner: string) => ({
    partition: `vmid#${cluster}`,
    sort: String(vmid),
    owner,
  })
  const agentClaim = (cluster: string, node: string, owner: string) => ({
    partition: `agent#${cluster}#${node}`,
    sort: '0',
    owner,
  })
  const where = (test: (claim: Kept) => boolean) => [...kept.values()].filter(test)

  return {
    takeVmid: async (cluster, vmid, owner) => take(vmidClaim(cluster, vmid, owner)),
    freeVmid: async (cluster, vmid, owner) => free(vmidClaim(cluster, vmid, owner)),
    vmidsOf: async (owner) =>
      where((claim) => claim.owner === owner && claim.partition.startsWith('vmid#')).map(
        ({ partition, sort }) => ({
          cluster: partition.slice('vmid#'.length),
          vmid: Number(sort),
        }),
      ),
    async freeAllButVmids(owner) {
      where((claim) => claim.owner === owner && !claim.partition.startsWith('vmid#')).forEach(free)
    },
    async takeSlot(partition, limit, owner) {
      if (where((claim) => claim.partition === partition && claim.owner === owner).length > 0) return true
      for (let slot = 0; slot < limit; slot++) if (take({ partition, sort: String(slot), owner })) return true
      return false
    },
    async freeSlots(partition, owner) {
      where((claim) => claim.partition === partition && claim.owner === owner).forEach(free)
    },
    takeAgentTurn: async (cluster, node, owner) =>
      take({ ...agentClaim(cluster, node, owner), until: now() + 30_000 }),
    freeAgentTurn: async (cluster, node, owner) => free(agentClaim(cluster, node, owner)),
    async suspect(what, detail) {
      suspects.set(what, detail)
    },
    all: () => [...kept.values()],
    suspects: () => [...suspects.values()],
  }
}
