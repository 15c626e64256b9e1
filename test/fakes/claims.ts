import type { Claim, Claims } from '../../lib/claims.ts'
import type { Item } from '../../lib/conditional.ts'
import { Suspect, type Suspects } from '../../lib/suspects.ts'

type Kept = Claim & { since?: number; until?: number }

const SUSPECT_SECONDS = 14 * 86_400

/** Claims in memory; held to the real ones by test/contract/claims.test.ts. */
export function createMemoryClaims(now: () => number): Claims & {
  all(): Claim[]
  /** As they were noted. */
  suspects(): Item[]
  /** As gc reads them. */
  suspected(): Suspect[]
  judged: Suspects
} {
  const kept = new Map<string, Kept>()
  const suspects = new Map<string, Item>()
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
  const addressClaim = (cluster: string, address: string, owner: string) => ({
    partition: `address#${cluster}#${address}`,
    sort: '0',
    owner,
  })
  const purgeAt = () => Math.floor(now() / 1000) + SUSPECT_SECONDS
  async function note(key: string, detail: Item): Promise<void> {
    const known = suspects.get(key)
    if (known && Number(known.purgeAt) >= Math.floor(now() / 1000)) return
    suspects.set(key, { ...detail, partition: 'suspect', sort: key, firstSeen: now(), purgeAt: purgeAt() })
  }
  const sameLook = ({ key, firstSeen }: Pick<Suspect, 'key' | 'firstSeen'>) => {
    const item = suspects.get(key)
    return item?.firstSeen === firstSeen ? item : undefined
  }
  function queue(partition: string, limit: number, owner: string, since = now()) {
    const eldest = kept.get(key({ partition, sort: 'eldest' }))
    const live = eldest && Number(eldest.until) >= now() ? eldest : undefined
    const open = [...Array(limit).keys()].map(String).filter((sort) => !kept.has(key({ partition, sort })))
    return {
      isIn:
        where((claim) => claim.partition === partition && claim.owner === owner && claim.sort !== 'eldest')
          .length > 0,
      open: live && now() - since < (now() - Number(live.since)) / 2 ? open.slice(1) : open,
      eldest: live,
    }
  }
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
    async freeAllButVmids(owner, partition) {
      where(
        (claim) =>
          claim.owner === owner && !claim.partition.startsWith('vmid#') && claim.partition !== partition,
      ).forEach(free)
    },
    async takeSlot(partition, limit, owner, since) {
      const { isIn, open } = queue(partition, limit, owner, since)
      if (isIn) return true
      const [slot] = open
      if (slot === undefined) return false
      free({ partition, sort: 'eldest', owner })
      return take({ partition, sort: slot, owner })
    },
    async queueForSlot(partition, limit, owner, since) {
      const { isIn, open, eldest } = queue(partition, limit, owner, since)
      if (isIn || open.length > 0) return 'open'
      if (since === undefined || (eldest && eldest.owner !== owner && Number(eldest.since) <= since))
        return 'full'
      kept.set(key({ partition, sort: 'eldest' }), {
        partition,
        sort: 'eldest',
        owner,
        since,
        until: now() + 15_000,
      })
      return 'eldest'
    },
    async freeSlots(partition, owner) {
      where((claim) => claim.partition === partition && claim.owner === owner).forEach(free)
    },
    takeAgentTurn: async (cluster, node, owner) =>
      take({ ...agentClaim(cluster, node, owner), until: now() + 30_000 }),
    freeAgentTurn: async (cluster, node, owner) => free(agentClaim(cluster, node, owner)),
    async takeAddress(cluster, address, owner) {
      const claim = addressClaim(cluster, address, owner)
      return take(claim) ? owner : kept.get(key(claim))?.owner
    },
    freeAddress: async (cluster, address, owner) => free(addressClaim(cluster, address, owner)),
    suspect: note,
    all: () => [...kept.values()],
    suspects: () => [...suspects.values()],
    suspected: () => [...suspects.values()].map((item) => Suspect.parse(item)),
    judged: {
      note,
      async keep(suspect) {
        const item = sameLook(suspect)
        if (item) item.purgeAt = purgeAt()
      },
      async clear(suspect) {
        if (sameLook(suspect)) suspects.delete(suspect.key)
      },
    },
  }
}
