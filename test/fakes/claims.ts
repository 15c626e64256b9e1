import { addressPartition, type Claim, type Claims, vmidPartition } from '../../lib/claims.ts'
import type { Item } from '../../lib/conditional.ts'
import { Suspect, type Suspects } from '../../lib/suspects.ts'

type Kept = Claim & { since?: number; until?: number }

const SUSPECT_SECONDS = 14 * 86_400

/** Claims in memory; held to the real ones by test/contract/claims.test.ts. */
export function createMemoryClaims(now: () => number): Claims & {
  all(): Claim[]
  /** Writes a claim as it is, as another version does. */
  put(claim: Claim): void
  /** As they were noted. */
  suspects(): Item[]
  /** As gc reads them. */
  suspected(): Suspect[]
  judged: Suspects
} {
  const kept = new Map<string, Kept>()
  const suspects = new Map<string, Item>()
  const key = ({ partition, sort }: Pick<Claim, 'partition' | 'sort'>) => `${partition}\n${sort}`

  let stamps = 0
  const asSeen = (seen: Claim) => {
    const held = kept.get(key(seen))
    return held?.owner === seen.owner && held.stamp === seen.stamp ? held : undefined
  }
  function take(claim: Kept): boolean {
    const held = kept.get(key(claim))
    const lapsed = held?.until !== undefined && held.until < now()
    if (held && held.owner !== claim.owner && !lapsed) return false
    kept.set(key(claim), claim.until === undefined ? { ...claim, stamp: `s${++stamps}` } : claim)
    return true
  }
  function free(seen: Claim): boolean {
    if (asSeen(seen)) return kept.delete(key(seen))
    return kept.get(key(seen))?.owner !== seen.owner
  }
  function keep(seen: Claim): Claim | undefined {
    const held = asSeen(seen)
    if (held) kept.set(key(seen), { ...held, stamp: `s${++stamps}` })
    return held && kept.get(key(seen))
  }
  const vmidClaim = (cluster: string, vmid: number, owner: string) => ({
    partition: vmidPartition(cluster),
    sort: String(vmid),
    owner,
  })
  const agentClaim = (cluster: string, node: string, owner: string) => ({
    partition: `agent#${cluster}#${node}`,
    sort: '0',
    owner,
  })
  const addressClaim = (cluster: string, address: string, owner: string) => ({
    partition: addressPartition(cluster, address),
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
      own: where(
        (claim) => claim.partition === partition && claim.owner === owner && claim.sort !== 'eldest',
      )[0],
      open: live && now() - since < (now() - Number(live.since)) / 2 ? open.slice(1) : open,
      eldest: live,
    }
  }
  const where = (test: (claim: Kept) => boolean) => [...kept.values()].filter(test)

  return {
    async takeVmid(cluster, vmid, owner) {
      const claim = { ...vmidClaim(cluster, vmid, owner), stamp: `s${++stamps}` }
      const holder = kept.get(key(claim))?.owner
      if (holder !== undefined) return holder === owner ? 'its own' : 'another’s'
      kept.set(key(claim), claim)
      return claim
    },
    vmidClaim: async (cluster, vmid) => kept.get(key(vmidClaim(cluster, vmid, ''))),
    async leaveVmid({ cluster, vmid }, owner, keeper, seen) {
      const claim = { ...vmidClaim(cluster, vmid, owner), leaving: keeper, stamp: `s${++stamps}` }
      const isSo = seen
        ? [owner, keeper].includes(seen.owner) && asSeen(seen) !== undefined
        : !kept.has(key(claim))
      if (isSo) kept.set(key(claim), claim)
      return isSo
    },
    claimsOf: async (owner) => where((claim) => claim.owner === owner),
    free: async (seen) => free(seen),
    keep: async (seen) => keep(seen),
    async takeSlot(partition, limit, owner, since) {
      const { own, open } = queue(partition, limit, owner, since)
      if (own) return keep(own) !== undefined
      const [slot] = open
      if (slot === undefined) return false
      free({ partition, sort: 'eldest', owner })
      return take({ partition, sort: slot, owner })
    },
    async queueForSlot(partition, limit, owner, since) {
      const { own, open, eldest } = queue(partition, limit, owner, since)
      if (own || open.length > 0) return 'open'
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
    async freeAgentTurn(cluster, node, owner) {
      free(agentClaim(cluster, node, owner))
    },
    async takeAddress(cluster, address, owner) {
      const claim = addressClaim(cluster, address, owner)
      return take(claim) ? owner : kept.get(key(claim))?.owner
    },
    suspect: note,
    all: () => [...kept.values()],
    put: (claim) => void kept.set(key(claim), claim),
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
