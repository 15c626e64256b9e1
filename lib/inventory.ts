import { type DynamoDBDocumentClient, paginateScan } from '@aws-sdk/lib-dynamodb'
import * as z from 'zod'
import { itemsOf, projection } from './batch-get.ts'
import { Claim } from './claims.ts'
import { type Phase, Row, readStored } from './record.ts'
import { pagesInPhase } from './rows-in-phase.ts'
import { SUSPECTS, Suspect } from './suspects.ts'

/**
 * What is needed of a row to tell what in the world it accounts for, and whether it stands still. How far a row is that is
 * at rest is left out: nobody asks, and it stands in no index. Nor does its address, which is known of rows read by key.
 */
export const RowSummary = Row.pick({
  uid: true,
  wish: true,
  phase: true,
  step: true,
  failedStep: true,
  turn: true,
  dueAt: true,
  place: true,
  seed: true,
  seededOn: true,
  orphanOf: true,
  expiresAt: true,
  address: true,
})
  .partial({ turn: true, dueAt: true })
  .extend({ lease: z.object({ until: z.number() }).optional() })
export type RowSummary = z.infer<typeof RowSummary>

/** Everything the tables hold, for one who compares it with the world and writes no row. */
export type Inventory = {
  /**
   * The rows that are not deleted, by index, and those that are on their way once more as they are now. One that changes its
   * phase just then may be missing: before something is called nobody's, its owner is asked for with `rowsOf`.
   * @throws when any page cannot be read, or a row is not of our making
   */
  rows(): Promise<RowSummary[]>
  /** Every claim and suspect. What else lives in their table is passed over. */
  claims(): Promise<{ claims: Claim[]; suspects: Suspect[] }>
  /** These rows as they are now, tombstones too; without those of whom there is none, or no event was ever judged. @throws as `rows` */
  rowsOf(uids: Iterable<string>): Promise<RowSummary[]>
  /** One row as it is now; undefined when there is none, or no event was ever judged on it. */
  row(uid: string): Promise<RowSummary | undefined>
}

/** In the order in which most rows go through them, so that one that moves on is met once more rather than missed. */
const STANDING: readonly Phase[] = ['Pending', 'Provisioning', 'Ready', 'Failed', 'Deleting']
const isMoving = ({ phase }: RowSummary) => phase !== 'Ready' && phase !== 'Failed'

const rowPaths = [...Object.keys(RowSummary.shape).filter((name) => name !== 'lease'), 'lease.until']
const claimPaths = [
  ...Object.keys(Claim.shape),
  ...Object.keys(Suspect.in.shape).filter((one) => one !== 'sort'),
]

export function createInventory(options: {
  client: DynamoDBDocumentClient
  tables: { proxies: string; claims: string }
}): Inventory {
  const { client, tables } = options

  async function rowsOf(uids: Iterable<string>): Promise<RowSummary[]> {
    const rows: RowSummary[] = []
    const now = { ConsistentRead: true, ...projection(rowPaths) }
    for await (const item of itemsOf(client, tables.proxies, uids, now)) {
      if (item.phase !== undefined) rows.push(readStored(RowSummary, item))
    }
    return rows
  }

  return {
    async rows() {
      const rows = new Map<string, RowSummary>()
      for (const phase of STANDING) {
        for await (const { Items: items = [] } of pagesInPhase(client, tables.proxies, phase)) {
          for (const item of items) rows.set(String(item.uid), readStored(RowSummary, item))
        }
      }
      const moving = [...rows.values()].filter(isMoving).map(({ uid }) => uid)
      for (const uid of moving) rows.delete(uid)
      for (const row of await rowsOf(moving)) rows.set(row.uid, row)
      return [...rows.values()]
    },

    async claims() {
      const pages = paginateScan(
        { client },
        { TableName: tables.claims, ConsistentRead: true, ...projection(claimPaths) },
      )
      const claims: Claim[] = []
      const suspects: Suspect[] = []
      for await (const { Items: items = [] } of pages) {
        for (const item of items) {
          if (item.partition === SUSPECTS) suspects.push(Suspect.parse(item))
          else if (item.owner !== undefined) claims.push(Claim.parse(item))
        }
      }
      return { claims, suspects }
    },

    rowsOf,
    row: async (uid) => (await rowsOf([uid]))[0],
  }
}
