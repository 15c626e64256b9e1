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
  return {
    rows: async () => rows(),
    claims: async () => ({
      claims: claims.all().map(({ partition, sort, owner }) => ({ partition, sort, owner })),
      suspects: claims.suspected(),
    }),
    row: async (uid) => rows().find((row) => row.uid === uid),
  }
}
