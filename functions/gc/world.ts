import type { Claim } from '../../lib/claims.ts'
import type { RowSummary } from '../../lib/inventory.ts'
import type { Mark } from '../../lib/mark.ts'
import type { ListedVm } from '../../lib/proxmox/index.ts'
import type { Suspect } from '../../lib/suspects.ts'

/** One storage as it was listed from one node; all that a shared one holds is seen from any. */
export type Shelf = {
  node: string
  storage: string
  shared: boolean
  volumes: readonly { volid: string; vmid?: number }[]
}

/** Whose VM stands at a number that no row accounts for, by its configuration. */
export type Sight =
  | { kind: 'ours'; mark: Mark; lock?: string }
  /** It bears our tag or carries a seed of ours, and no mark. */
  | { kind: 'doubtful' }
  | { kind: 'foreign' }

/** A cluster that answered, as it was found. What could not be looked at is not in it. */
export type ClusterView = Surroundings & {
  /** Configurations that were read, by VMID. */
  sights: ReadonlyMap<number, Sight>
  /** VMIDs whose configuration should have been read and could not be. */
  unread: ReadonlySet<number>
  /** Numbers on disks that no listed VM has and no row: those that something holds all the same, which our token may not see. */
  hidden: ReadonlySet<number>
}

/** … before any configuration was read. */
export type Surroundings = {
  name: string
  /** A silent node may hold anything. */
  nodes: readonly { name: string; silent: boolean }[]
  vms: readonly ListedVm[]
  seeds: readonly Shelf[]
  disks: readonly Shelf[]
  /** Clones of ours that run: nobody can see from outside where they lead. */
  clones: readonly { startedAtMs: number }[]
}

/** Everything that is compared: what the tables say, and what there is. */
export type World = {
  now: number
  rows: readonly RowSummary[]
  claims: readonly Claim[]
  suspects: readonly Suspect[]
  clusters: readonly ClusterView[]
}

/** Where a shelf is, in the key of a suspect: a shared one is on no node. */
export const placeOf = ({ node, shared }: Shelf) => (shared ? '*' : node)

export const onNode = ({ node, shared }: Shelf) => ({ node: shared ? undefined : node })

export const isLive = (row: RowSummary | undefined): row is RowSummary =>
  row !== undefined && row.phase !== 'Deleted'

/** Rows by what they account for. */
export type Rows = {
  byUid: ReadonlyMap<string, RowSummary>
  /** Of those that are not deleted, by `cluster/vmid`. */
  byPlace: ReadonlyMap<string, RowSummary>
  /** Of those that are not deleted, by the seed they name. */
  bySeed: ReadonlyMap<string, readonly RowSummary[]>
  /** Uids whose orphan is being deleted by a row that has yet to learn of its seed. */
  leaving: ReadonlySet<string>
}

export function indexRows(rows: readonly RowSummary[]): Rows {
  const byUid = new Map<string, RowSummary>()
  const byPlace = new Map<string, RowSummary>()
  const bySeed = new Map<string, RowSummary[]>()
  const leaving = new Set<string>()
  for (const row of rows) {
    byUid.set(row.uid, row)
    if (!isLive(row)) continue
    if (row.place) byPlace.set(`${row.place.cluster}/${row.place.vmid}`, row)
    if (row.seed === undefined && row.orphanOf !== undefined && row.place) leaving.add(row.orphanOf)
    if (row.seed !== undefined) bySeed.set(row.seed, [...(bySeed.get(row.seed) ?? []), row])
  }
  return { byUid, byPlace, bySeed, leaving }
}
