import type { Claims } from '../../lib/claims.ts'
import type { Config } from '../../lib/config.ts'
import type { RowOf } from '../../lib/record.ts'

type Reserving = RowOf['reserve']

/** More of one group on a node than anyone will ask for; it bounds the search. */
const MOST_ON_A_NODE = 1000

/** The group whose proxies are to stand apart: the value of the label that the configuration names; undefined for a proxy of none. */
export const groupOf = ({ spec }: Reserving, { spreadBy }: Pick<Config, 'spreadBy'>): string | undefined =>
  spreadBy === undefined ? undefined : spec.labels?.[spreadBy]

/** The places of a group on a node. */
export const groupPartition = (cluster: string, node: string, group: string) =>
  `spread#${cluster}#${node}#${group}`

/**
 * The node with the fewest of the group, by claims: two who come at once do not both find the same node empty. Among
 * equals the first. Repeatable: who has a place on one of the nodes keeps it.
 */
export async function bySpread<T extends { node: string }>(
  owner: string,
  candidates: readonly T[],
  partitionOf: (node: string) => string,
  claims: Pick<Claims, 'takeSlot'>,
): Promise<T | undefined> {
  // With no place to be had, only the place that one has already is kept.
  for (let places = 0; places <= MOST_ON_A_NODE; places++) {
    for (const candidate of candidates)
      if (await claims.takeSlot(partitionOf(candidate.node), places, owner)) return candidate
    if (candidates.length === 0) return undefined
  }
  return candidates[0]
}
