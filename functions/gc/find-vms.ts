import { vmidPartition } from '../../lib/claims.ts'
import { HOLD_TAG, tagsOf } from '../../lib/names.ts'
import type { ListedVm } from '../../lib/proxmox/index.ts'
import type { Warning } from './event.ts'
import type { Finding, Scene } from './finding.ts'
import { type ClusterView, isLive, type Sight } from './world.ts'

type Ours = Sight & { kind: 'ours' }
export type FoundVms = { findings: Finding[]; warnings: Warning[] }

/** Locks of a VM in the making or unmaking: no API token can remove one that its task left behind. */
export const HALF_MADE: ReadonlySet<string> = new Set(['clone', 'create', 'destroyed'])
/** Any other lock is somebody's work until it has lasted longer than the life cycles would wait for it. */
const LOCK_PATIENCE_MS = 6 * 3600_000

/** Orphans, and VMs that a person must look at. A VM that stands where a row says is that row's own business. */
export function findVms(cluster: ClusterView, scene: Scene): FoundVms {
  const found = cluster.vms.map((vm) => {
    const row = scene.rows.byPlace.get(`${cluster.name}/${vm.vmid}`)
    const sight = cluster.sights.get(vm.vmid)
    if (row) return atItsPlace(vm, row, sight, cluster, scene)
    if (sight?.kind === 'ours') return unaccounted(vm, sight, cluster, scene)
    return { findings: [], warnings: sight?.kind === 'doubtful' ? [noMark(vm, cluster.name)] : [] }
  })
  return {
    findings: found.flatMap(({ findings }) => findings),
    warnings: found.flatMap(({ warnings }) => warnings),
  }
}

/** It bears our mark, and no row says that it stands here. */
function unaccounted(vm: ListedVm, { mark, lock }: Ours, cluster: ClusterView, scene: Scene): FoundVms {
  const owner = scene.rows.byUid.get(mark.uid)
  const untagged = lacksTags(vm, scene) ? [noTags(vm, cluster.name, mark.uid, scene)] : []
  if (isLive(owner) && !isLeft(vm.vmid, cluster, scene)) {
    // On its way between two places a row's VMs are nobody else's business.
    const atRest = owner.phase === 'Ready' || owner.phase === 'Failed'
    return { findings: [], warnings: atRest ? [...untagged, twoVms(vm, cluster.name, owner)] : [] }
  }
  const { vmid, node } = vm
  const findings: Finding[] = []
  const warnings = [...untagged]
  const key = `vm#${cluster.name}#${vmid}#${mark.uid}`
  const detail = { kind: 'vm', cluster: cluster.name, node, vmid, uid: mark.uid }
  const action = { kind: 'delete orphan', cluster: cluster.name, vmid, node, uid: mark.uid } as const
  const held = vm.tags.has(HOLD_TAG)
  if (held) warnings.push(heldBack(vm, cluster.name, mark.uid))
  const halfMade = lock !== undefined && HALF_MADE.has(lock)
  const blocked = held ? `tagged ${HOLD_TAG}` : halfMade ? `locked (${lock})` : undefined
  findings.push({ key, detail, action, ...(blocked === undefined ? {} : { blocked }) })
  return { findings: [...findings, ...stuckLock(vm, lock, cluster, mark.uid)], warnings }
}

/** Its uid was asked for again, and waits: a run that died, or a message that was lost, left the number to a row that never came. */
const isLeft = (vmid: number, { name }: ClusterView, { world }: Scene) =>
  world.claims.some(
    ({ partition, sort, leaving }) =>
      leaving !== undefined && partition === vmidPartition(name) && sort === String(vmid),
  )

function atItsPlace(
  vm: ListedVm,
  row: { uid: string; phase: string },
  sight: Sight | undefined,
  cluster: ClusterView,
  scene: Scene,
): FoundVms {
  const atRest = row.phase === 'Ready' || row.phase === 'Failed'
  // Before `configure` it has no tags yet.
  const isUntagged = row.phase === 'Ready' && sight?.kind === 'ours' && lacksTags(vm, scene)
  return {
    findings: atRest ? stuckLock(vm, vm.lock, cluster, row.uid) : [],
    warnings: isUntagged ? [noTags(vm, cluster.name, row.uid, scene)] : [],
  }
}

/** Whether the list shows it without the tags that a VM of ours bears. */
export const lacksTags = ({ tags }: ListedVm, { rules }: Pick<Scene, 'rules'>) =>
  !tagsOf(rules.deployment).isSubsetOf(tags)

function stuckLock(vm: ListedVm, lock: string | undefined, cluster: ClusterView, uid: string): Finding[] {
  if (lock === undefined || lock === 'suspended') return []
  const { vmid, node } = vm
  const halfMade = HALF_MADE.has(lock)
  const remedy = halfMade
    ? `qm unlock ${vmid} && qm destroy ${vmid} --purge --destroy-unreferenced-disks 1`
    : `qm unlock ${vmid}`
  const busy = halfMade && cluster.clones.length > 0
  return [
    {
      key: `lock#${cluster.name}#${vmid}#${lock}`,
      detail: { kind: 'lock', cluster: cluster.name, node, vmid, uid },
      warning: {
        code: 'StuckLock',
        cluster: cluster.name,
        vmid,
        uid,
        text: `VM ${vmid} of ${uid} on ${node} has been locked (${lock}) since it was first seen so`,
        hint: `if nothing is at work on it: on node ${node}, \`qm config ${vmid}\` to look, then \`${remedy}\``,
      },
      ...(busy ? { blocked: 'a clone of ours is running' } : {}),
      ...(halfMade ? {} : { patienceMs: LOCK_PATIENCE_MS }),
    },
  ]
}

function twoVms(
  { vmid, node }: ListedVm,
  cluster: string,
  {
    uid,
    place,
    phase,
  }: { uid: string; phase: string; place?: { cluster: string; vmid: number; node: string } | undefined },
): Warning {
  const own = place ? `VM ${place.vmid} of cluster ${place.cluster}` : 'none'
  return {
    code: 'TwoVms',
    cluster,
    vmid,
    uid,
    text: `VM ${vmid} on ${node} bears the mark of ${uid}, whose row (${phase}) names another: ${own}`,
    hint:
      `the row’s is ${own}. If the other is not needed: on node ${node}, \`qm stop ${vmid} && qm destroy ${vmid} --purge ` +
      '--destroy-unreferenced-disks 1`; its seed stays, since both may boot from it',
  }
}

const noTags = ({ vmid, node, tags }: ListedVm, cluster: string, uid: string, { rules }: Scene): Warning => ({
  code: 'NoTags',
  cluster,
  vmid,
  uid,
  text: `VM ${vmid} of ${uid} on ${node} lacks the tags of this deployment`,
  hint: `on node ${node}, \`qm set ${vmid} --tags '${[...tags.union(tagsOf(rules.deployment))].join(';')}'\``,
})

const noMark = ({ vmid, node }: ListedVm, cluster: string): Warning => ({
  code: 'NoMark',
  cluster,
  vmid,
  text: `VM ${vmid} on ${node} looks like ours, bears no mark and belongs to no row, so it is not touched`,
  hint: `on node ${node}, \`qm config ${vmid}\` to look; if it is nobody’s, \`qm stop ${vmid} && qm destroy ${vmid} --purge\``,
})

const heldBack = ({ vmid, node }: ListedVm, cluster: string, uid: string): Warning => ({
  code: 'Held',
  cluster,
  vmid,
  uid,
  text: `VM ${vmid} on ${node} belongs to no row (its mark names ${uid}) and is tagged ${HOLD_TAG}, so it stays`,
  hint: `take the tag ${HOLD_TAG} away when it is not needed any more`,
})
