import type { Side, StepName } from '../../lib/record.ts'
import type { Suspect } from '../../lib/suspects.ts'
import type { Rules } from './rules.ts'
import type { ClusterView, Rows, World } from './world.ts'

/** Something to be done. Whatever it is, it is proven once more right before. */
export type Action =
  /** A VM that belongs to no row, given to the delete life cycle. */
  | { kind: 'delete orphan'; cluster: string; vmid: number; node: string; uid: string }
  /** Its time is up. */
  | { kind: 'expire'; uid: string; expiresAt: number }
  /** Its message was lost. */
  | { kind: 'kick'; uid: string; turn: number; side: Side; step: StepName; dueAt: number }
  | {
      kind: 'sweep seed'
      cluster: string
      node: string
      storage: string
      /** All nodes see it. */
      shared: boolean
      volume: string
      uid: string
    }
  | {
      kind: 'sweep disk'
      cluster: string
      node: string
      storage: string
      volume: string
      vmid: number
      uid: string
    }
  /** Nobody known to us owned it: shown to a person where nothing holds its number. */
  | { kind: 'show disk'; cluster: string; node: string; volume: string; vmid: number }
  /** A reservation whose owner is gone, or is not where such a one is needed. */
  | { kind: 'free claim'; cluster: string; partition: string; sort: string; owner: string; vmid?: number }

/** What an operator should know, and what to type. Nothing is done about it. */
export type Warning = {
  code: 'TwoVms' | 'StuckLock' | 'NoTags' | 'NoMark' | 'StrayDisk' | 'Held' | 'HiddenVm'
  cluster: string
  vmid?: number
  uid?: string
  text: string
  hint: string
}

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
