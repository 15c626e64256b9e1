import { type DynamoDBDocumentClient, GetCommand } from '@aws-sdk/lib-dynamodb'
import * as z from 'zod'
import { itemsOf, projection } from '../lib/batch-get.ts'
import { Claim } from '../lib/claims.ts'
import { rowNow, rowsInPhase } from '../lib/listing.ts'
import { pagesWhere } from '../lib/pages-where.ts'
import { Phase, Row, readStored, UnreadableRow } from '../lib/record.ts'
import { Standing } from '../lib/redrive.ts'

export type Phases = readonly (typeof Phase.options)[number][]
export const allPhases: Phases = Phase.options

/** A proxy's row for one who shows something else as well; undefined also when it cannot be read. */
export async function readableRow(
  client: DynamoDBDocumentClient,
  table: string,
  uid: string,
): Promise<Row | undefined> {
  try {
    return await rowNow(client, table)(uid)
  } catch (error) {
    if (error instanceof UnreadableRow) return undefined
    throw error
  }
}

/**
 * All rows in these phases, oldest first. Which they are tells an index: a change of the last second may be missing.
 * @throws {UnreadableRow} unless somebody is told of such rows, who then gets the others
 */
export async function listRows(
  client: DynamoDBDocumentClient,
  table: string,
  phases: Phases,
  onUnreadable: (error: UnreadableRow) => void = rethrow,
): Promise<Row[]> {
  const lists = await Promise.all(phases.map(rowsInPhase(client, table, onUnreadable)))
  return lists.flat().sort((a, b) => a.createdAt - b.createdAt)
}

function rethrow(error: UnreadableRow): never {
  throw error
}

/** How the rows of these uids stand now, read consistently; uids without a row are left out, rows of another shape named. */
export async function readStandings(
  client: DynamoDBDocumentClient,
  table: string,
  uids: readonly string[],
): Promise<Map<string, Standing | UnreadableRow>> {
  const standings = new Map<string, Standing | UnreadableRow>()
  const now = { ConsistentRead: true, ...projection(Object.keys(Standing.shape)) }
  for await (const item of itemsOf(client, table, uids.filter(isKey), now)) {
    // An item without a phase is a key that no event was ever judged on.
    if (item.phase !== undefined) standings.set(String(item.uid), standingOf(item))
  }
  return standings
}

function standingOf(item: Record<string, unknown>): Standing | UnreadableRow {
  try {
    return readStored(Standing, item)
  } catch (error) {
    if (error instanceof UnreadableRow) return error
    throw error
  }
}

/** A row with the lease that somebody may have on it. */
export type LeasedRow = { row: Row; lease?: { until: number } }

/** One as it stands now; undefined when no event about it was ever judged. */
export async function readLeased(
  client: DynamoDBDocumentClient,
  table: string,
  uid: string,
): Promise<LeasedRow | undefined> {
  if (!isKey(uid)) return undefined
  const { Item } = await client.send(new GetCommand({ TableName: table, Key: { uid }, ConsistentRead: true }))
  if (Item?.phase === undefined) return undefined
  const { lease } = Leased.parse(Item)
  return { row: readStored(Row, Item), ...(lease && { lease }) }
}

/** Of any other key a table knows no item, and says so in words of its own. Source: Amazon DynamoDB, naming rules and data types. */
const isKey = (uid: string) => uid !== '' && Buffer.byteLength(uid) <= 2048

const Leased = z.object({ lease: z.object({ until: z.number() }).optional() })

/** What an owner has claimed. By index: a claim of the last second may be missing. */
export async function claimsOf(
  client: DynamoDBDocumentClient,
  table: string,
  owner: string,
): Promise<Claim[]> {
  const pages = pagesWhere(client, { table, index: 'byOwner' }, ['owner', owner])
  const claims: Claim[] = []
  for await (const { Items = [] } of pages) claims.push(...Items.map((item) => Claim.parse(item)))
  return claims
}
