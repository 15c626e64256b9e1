import { randomUUID } from 'node:crypto'
import {
  type Demand,
  type Ledger,
  LostRace,
  type NotTaken,
  rowOf,
  type Taken,
  takenAs,
  type Unreadable,
} from '../../lib/ledger.ts'
import type { Row } from '../../lib/record.ts'

type Item = Record<string, unknown> & { lease?: { token: string; until: number } }

/** The ledger in memory, for lives by the thousand; held to the real one by test/contract/ledger.test.ts. */
export function createMemoryLedger({
  leaseMs,
  settleMs,
  now,
}: {
  leaseMs: number
  settleMs: number
  now: () => number
}): Ledger & {
  rows(): Row[]
  /** As they are stored, lease and all. */
  items(): Item[]
  /** Writes an item as it is, as another version does, or a person. */
  put(item: Record<string, unknown> & { uid: string }): void
  /** Takes a row away, as nobody but a person does. */
  drop(uid: string): void
} {
  const items = new Map<string, Item>()

  function take(uid: string, demand: Demand): Taken | Unreadable | NotTaken {
    const item = items.get(uid)
    const token = randomUUID()
    if (demand.kind === 'turn' && !item) return { kind: 'no-row' }
    if (demand.kind === 'turn' && Number(item?.turn) > demand.turn) return { kind: 'stale' }
    const held = item?.lease
    if (held && held.until >= now()) return { kind: 'held', until: held.until, turn: Number(item.turn) }
    const overtaken = held
      ? { deliveries: Number(item?.deliveries ?? 0) + 1, unsettledUntil: now() + settleMs }
      : {}
    const taken: Item = { turn: 0, ...item, ...overtaken, uid, lease: { token, until: now() + leaseMs } }
    items.set(uid, taken)
    return takenAs(structuredClone(taken), token)
  }

  return {
    take: async (uid, demand) => take(uid, demand),
    async save(row, token) {
      const item = items.get(row.uid)
      if (item?.lease?.token !== token) {
        if (item?.savedBy === token) return
        throw new LostRace(row.uid, item)
      }
      items.set(row.uid, { ...structuredClone(row), deliveries: 0, savedBy: token })
    },
    async release(uid, token) {
      const item = items.get(uid)
      if (item?.lease?.token === token) delete item.lease
    },
    async read(uid) {
      const item = items.get(uid)
      const row = item && rowOf(structuredClone(item))
      return row?.phase === undefined ? undefined : row
    },
    items: () => structuredClone([...items.values()]),
    put: (item) => void items.set(item.uid, structuredClone(item)),
    drop: (uid) => void items.delete(uid),
    rows: () =>
      [...items.values()].flatMap((item) => {
        const row = rowOf(structuredClone(item))
        return row.phase === undefined ? [] : [row]
      }),
  }
}
