import type { Suspect } from '../../lib/suspects.ts'
import type { Action, Warning } from './event.ts'
import { findClaims } from './find-claims.ts'
import { findDisks } from './find-disks.ts'
import { type FoundRows, findRows } from './find-rows.ts'
import { findSeeds } from './find-seeds.ts'
import { findVms } from './find-vms.ts'
import type { Finding, Scene } from './finding.ts'
import type { Rules } from './rules.ts'
import { indexRows, type World } from './world.ts'

/** An action, with what it is about and since when that is known. */
export type Planned = { action: Action; since: number }

export type Plan = {
  actions: Planned[]
  /** Seen for the first time: noted, to be judged again by a later run. */
  notes: { key: string; detail: Finding['detail'] }[]
  /** Known, and nothing is done about it yet or at all. */
  waiting: { key: string; since: number; why: string }[]
  /** Suspects that look well again, or are gone. */
  clears: Suspect[]
  /** Suspects whose expiry is put off: they still count, and could not be dealt with. */
  keeps: Suspect[]
  warnings: Warning[]
  /** Left for a later run: more is due than one run may start. */
  heldBack: Action[]
}

/** A queue that is far behind looks like lost messages: then gc must not fill it further. */
const MOST_KICKS = 100
/** What deletes nothing costs calls of Proxmox all the same; what is left over waits for the next run. */
const MOST_PROOFS = 200
const KEEP_FROM_SECONDS = 7 * 86_400

/** Compares what the tables say with what there is; touches nothing, and the same world gives the same plan. */
export function plan(world: World, rules: Rules): Plan {
  const alive = world.suspects.filter(({ purgeAt }) => purgeAt * 1000 >= world.now)
  const suspects = new Map(alive.map((suspect) => [suspect.key, suspect]))
  const scene: Scene = { world, rules, rows: indexRows(world.rows), suspects }
  const found = world.clusters.map((cluster) => findVms(cluster, scene))
  const late = findRows(scene)
  const findings = [
    ...found.flatMap((one) => one.findings),
    ...world.clusters.flatMap((cluster) => [...findSeeds(cluster, scene), ...findDisks(cluster, scene)]),
    ...findClaims(scene),
  ]
  const judged = findings.map((finding) => judge(finding, scene))
  const due = judged.flatMap(({ verdict, finding, since }) =>
    verdict === 'due' && finding.action && since !== undefined ? [{ action: finding.action, since }] : [],
  )
  const { actions, heldBack } = braked(due, late, rules)
  const accounted = new Set(findings.flatMap(({ key, also = [] }) => [key, ...also]))
  const clears = alive.filter((suspect) => !accounted.has(suspect.key) && couldBeSeen(suspect, scene))
  return {
    actions,
    heldBack,
    notes: judged.flatMap(({ verdict, finding: { key, detail } }) =>
      verdict === 'new' ? [{ key, detail }] : [],
    ),
    waiting: judged.flatMap(({ verdict, finding, since, why }) =>
      verdict === 'waits' && since !== undefined ? [{ key: finding.key, since, why }] : [],
    ),
    clears,
    keeps: alive.filter(
      (suspect) => isEvidence(suspect) && wearsOff(suspect, world.now) && !clears.includes(suspect),
    ),
    warnings: [
      ...found.flatMap((one) => one.warnings),
      ...late.warnings,
      ...judged.flatMap(({ verdict, finding }) =>
        verdict === 'due' && finding.warning ? [finding.warning] : [],
      ),
    ],
  }
}

type Judged = { finding: Finding; verdict: 'new' | 'waits' | 'due'; since?: number; why: string }

/** Two looks: what is seen for the first time is noted, and only what has been suspect for long enough is acted on. */
function judge(finding: Finding, { suspects, rules, world }: Scene): Judged {
  const looks = [finding.key, ...(finding.also ?? [])].flatMap((key) => suspects.get(key)?.firstSeen ?? [])
  if (!suspects.has(finding.key) && looks.length === 0) return { finding, verdict: 'new', why: '' }
  const since = Math.min(...looks)
  if (finding.blocked !== undefined) return { finding, verdict: 'waits', since, why: finding.blocked }
  const dueAt = since + (finding.patienceMs ?? rules.graceMs)
  if (dueAt > world.now)
    return { finding, verdict: 'waits', since, why: `until ${new Date(dueAt).toISOString()}` }
  return { finding, verdict: 'due', since, why: '' }
}

const isGentle = ({ action }: Planned) => action.kind === 'free claim' || action.kind === 'show disk'
const oldestFirst = (a: Planned, b: Planned) => a.since - b.since

/** No more deletions than one run may start, those that are due the longest first. */
function braked(due: readonly Planned[], late: FoundRows, { maxDeletions }: Rules) {
  const expiries = late.expiries.map((action) => ({ action, since: action.expiresAt }))
  const deletions = [...due.filter((one) => !isGentle(one)), ...expiries].sort(oldestFirst)
  const kicks = late.kicks.map((action) => ({ action, since: action.dueAt }))
  const gentle = due.filter(isGentle).sort(oldestFirst)
  return {
    actions: [
      ...kicks.slice(0, MOST_KICKS),
      ...deletions.slice(0, maxDeletions),
      ...gentle.slice(0, MOST_PROOFS),
    ],
    heldBack: [
      ...kicks.slice(MOST_KICKS),
      ...deletions.slice(maxDeletions),
      ...gentle.slice(MOST_PROOFS),
    ].map(({ action }) => action),
  }
}

/** Whether this run looked where the suspect was seen: only then does not seeing it say anything. */
function couldBeSeen(suspect: Suspect, { world }: Scene): boolean {
  const { kind, node, vmid, volume = '' } = suspect
  if (kind === 'claim') return true
  const cluster = world.clusters.find(({ name }) => name === suspect.cluster)
  if (!cluster) return false
  if (kind === 'vm' || kind === 'lock') return vmid === undefined || !cluster.unread.has(vmid)
  const [storage] = volume.split(':')
  const shelves = (kind === 'seed' ? cluster.seeds : cluster.disks).filter((one) => one.storage === storage)
  if (shelves.some((shelf) => shelf.shared || shelf.node === node)) return true
  // What lay on a node that left the cluster went with it.
  return node !== undefined && !cluster.nodes.some(({ name }) => name === node)
}

/** A disk is deleted only where it is known whose it was, and this is how that is known. */
const isEvidence = ({ kind, uid }: Suspect) => kind === 'disk' && uid !== undefined

const wearsOff = ({ purgeAt }: Suspect, now: number) => purgeAt - now / 1000 < KEEP_FROM_SECONDS
