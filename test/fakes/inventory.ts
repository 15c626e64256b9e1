import { Claim } from '../../lib/claims.ts'
import { type Inventory, RowSummary } from '../../lib/inventory.ts'
import type { createMemoryClaims } from './claims.ts'
import type { createMemoryLedger } from './ledger.ts'

/** What the tables in memory hold; held to the real one by test/contract/inventory.test.ts. */
export function createMemoryInventory(
  ledger: ReturnType<typeof createMemoryLedger>,
  claims: ReturnType<typeof createMemoryClaims>,
): Inventory {
  const rows = () =>
    ledger.items().flatMap((item) => (item.phase === undefined ? [] : [RowSummary.parse(item)]))
  const rowsOf = async (uids: Iterable<string>) => {
    const wanted = new Set(uids)
    return rows().filter(({ uid }) => wanted.has(uid))
  }
  return {
    rows: async () =>
      rows().flatMap((row) => {
        if (row.phase === 'Deleted') return []
        if (row.phase !== 'Ready' && row.phase !== 'Failed') return [row]
        const {
          step: _,
          failedStep: __,
          turn: ___,
          dueAt: ____,
          lease: _____,
          address: ______,
          ...rest
        } = row
        return [rest]
      }),
    claims: async () => ({
      claims: claims.all().map((claim) => Claim.parse(claim)),
      suspects: claims.suspected(),
    }),
    rowsOf,
    row: async (uid) => (await rowsOf([uid]))[0],
  }
}
