import { type DynamoDBDocumentClient, GetCommand, paginateScan } from '@aws-sdk/lib-dynamodb'
import * as z from 'zod'
import { Claim } from './claims.ts'
import { Row, readStored } from './record.ts'
import { SUSPECTS, Suspect } from './suspects.ts'

/** What is needed of a row to tell what in the world it accounts for, and whether it stands still. */
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
}).extend({
  problem: z.object({ code: z.string() }).optional(),
  lease: z.object({ until: z.number() }).optional(),
})
export type RowSummary = z.infer<typeof RowSummary>

/** Everything the tables hold, for one who compares it with the world and writes no row. */
export type Inventory = {
  /**
   * Every row, tombstones too, page by page from the table itself: no row that stood there all the while is missed, as
   * it could be in an index that is behind. @throws when any page cannot be read, or a row is not of our making
   */
  rows(): Promise<RowSummary[]>
  /** Every claim and suspect. What else lives in their table is passed over. */
  claims(): Promise<{ claims: Claim[]; suspects: Suspect[] }>
  /** One row as it is now; undefined when there is none, or no event was ever judged on it. */
  row(uid: string): Promise<RowSummary | undefined>
}

const rowPaths = [
  ...Object.keys(RowSummary.shape).filter((name) => name !== 'problem' && name !== 'lease'),
  'problem.code',
  'lease.until',
]
const claimPaths = [
  ...Object.keys(Claim.shape),
  ...Object.keys(Suspect.in.shape).filter((one) => one !== 'sort'),
]

export function createInventory(options: {
  client: DynamoDBDocumentClient
  tables: { proxies: string; claims: string }
}): Inventory {
  const { client, tables } = options

  return {
    async rows() {
      const pages = paginateScan(
        { client },
        {
          TableName: tables.proxies,
          ConsistentRead: true,
          FilterExpression: 'attribute_exists(#phase)',
          ...projection(rowPaths),
        },
      )
      const rows: RowSummary[] = []
      for await (const { Items: items = [] } of pages) {
        for (const item of items) rows.push(readStored(RowSummary, item))
      }
      return rows
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

    async row(uid) {
      const { Item: item } = await client.send(
        new GetCommand({
          TableName: tables.proxies,
          Key: { uid },
          ConsistentRead: true,
          ...projection(rowPaths),
        }),
      )
      return item?.phase === undefined ? undefined : readStored(RowSummary, item)
    },
  }
}

/** Names of our own may be DynamoDB's reserved words, so all of them stand behind a `#`. */
function projection(paths: readonly string[]) {
  const names = [...new Set(paths.flatMap((path) => path.split('.')))]
  return {
    ProjectionExpression: paths.map((path) => path.replace(/[^.]+/g, '#$&')).join(', '),
    ExpressionAttributeNames: Object.fromEntries(names.map((name) => [`#${name}`, name])),
  }
}
