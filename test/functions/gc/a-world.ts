import { type Plan, plan } from '../../../functions/gc/plan.ts'
import { type Rules, rulesOf } from '../../../functions/gc/rules.ts'
import type { ClusterView, Shelf, Sight, World } from '../../../functions/gc/world.ts'
import type { RowSummary } from '../../../lib/inventory.ts'
import type { Mark } from '../../../lib/mark.ts'
import type { ListedVm } from '../../../lib/proxmox/index.ts'
import type { Suspect } from '../../../lib/suspects.ts'
import { aConfig } from '../../lib/a-config.ts'
import { NOW } from '../../lib/a-row.ts'

export const rules: Rules = rulesOf(aConfig())
export const LONG_AGO = NOW - rules.graceMs
export const JUST_NOW = NOW - rules.graceMs + 1

export const aSummary = (changes: Partial<RowSummary> = {}): RowSummary => ({
  uid: 'a',
  wish: 'present',
  phase: 'Ready',
  turn: 7,
  dueAt: NOW,
  place: { cluster: 'lab', node: 'pve1', vmid: 5001, template: 9000, storage: 'vmdata' },
  seed: 'local:iso/egress-test-a-g1.iso',
  seededOn: ['pve1'],
  ...changes,
})

export const aVm = (changes: Partial<Omit<ListedVm, 'tags'>> & { tags?: string[] } = {}): ListedVm => ({
  vmid: 5001,
  node: 'pve1',
  type: 'qemu',
  ...changes,
  tags: new Set(changes.tags ?? ['egress', 'egress-test']),
})

export const aMark = (changes: Partial<Mark> = {}): Mark => ({
  deployment: 'test',
  uid: 'a',
  generation: 1,
  vmid: 5001,
  specHash: 'hash',
  seed: 'local:iso/egress-test-a-g1.iso',
  ...changes,
})

export const ours = (changes: Partial<Mark> = {}, lock?: string): Sight => ({
  kind: 'ours',
  mark: aMark(changes),
  ...(lock === undefined ? {} : { lock }),
})

export const aShelf = (volumes: (string | [string, number])[], changes: Partial<Shelf> = {}): Shelf => ({
  node: 'pve1',
  storage: 'local',
  shared: false,
  ...changes,
  volumes: volumes.map((one) => (typeof one === 'string' ? { volid: one } : { volid: one[0], vmid: one[1] })),
})

export const aCluster = (changes: Partial<ClusterView> = {}): ClusterView => ({
  name: 'lab',
  nodes: [
    { name: 'pve1', silent: false },
    { name: 'pve2', silent: false },
  ],
  vms: [],
  sights: new Map(),
  unread: new Set(),
  hidden: new Set(),
  seeds: [],
  disks: [],
  clones: [],
  ...changes,
})

export const aSuspect = (key: string, changes: Partial<Suspect> = {}): Suspect => ({
  key,
  kind: key.split('#')[0] ?? '',
  cluster: 'lab',
  firstSeen: LONG_AGO,
  purgeAt: NOW / 1000 + 86_400 * 10,
  ...changes,
})

export type Parts = Partial<Omit<World, 'clusters'>> & {
  cluster?: Partial<ClusterView>
  clusters?: ClusterView[]
  rules?: Partial<Rules>
}

export function planOf({ cluster, clusters, rules: over, ...parts }: Parts): Plan {
  const world: World = {
    now: NOW,
    rows: [],
    claims: [],
    suspects: [],
    clusters: clusters ?? [aCluster(cluster)],
    ...parts,
  }
  return plan(world, { ...rules, ...over })
}

export const kinds = ({ actions }: Plan) => actions.map(({ action }) => action.kind)
export const notedKeys = ({ notes }: Plan) => notes.map(({ key }) => key)
export const codes = ({ warnings }: Plan) => warnings.map(({ code }) => code)
