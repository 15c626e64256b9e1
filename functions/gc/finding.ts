import type { Suspect } from '../../lib/suspects.ts'
import type { Action, Warning } from './event.ts'
import type { Rules } from './rules.ts'
import type { ClusterView, Rows, World } from './world.ts'

/** One thing that does not fit, noted at the first look and acted on at a later one. */
export type Finding = {
  key: string
  /** Suspects that others noted about the same thing; the oldest look counts. */
  also?: readonly string[]
  /** What is noted of it. */
  detail: Readonly<Record<string, unknown>>
  action?: Action
  warning?: Warning
  /** Why nothing is done now, however long it has been known. */
  blocked?: string
  /** Instead of the rules' grace. */
  patienceMs?: number
}

/** What every finder looks at. */
export type Scene = {
  world: World
  rows: Rows
  rules: Rules
  /** Suspects that have not expired, by key. */
  suspects: ReadonlyMap<string, Suspect>
}

export const silentNodes = ({ nodes }: ClusterView): string[] =>
  nodes.filter(({ silent }) => silent).map(({ name }) => name)

/** Blocks what a silent node could still turn out to hold. */
export function silence(cluster: ClusterView): { blocked: string } | undefined {
  const silent = silentNodes(cluster)
  return silent.length === 0 ? undefined : { blocked: `silent: ${silent.join(', ')}` }
}
