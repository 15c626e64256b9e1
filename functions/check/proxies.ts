import { atMost } from '../../lib/at-most.ts'
import type { Cluster } from '../../lib/config.ts'
import type { Provider } from '../../lib/proxmox/index.ts'
import { type Place, type Row, sideOf } from '../../lib/record.ts'
import { type Drift, judgeDrift, type Reaction } from './drift.ts'
import type { Finding, ProxyCounts } from './event.ts'
import { about } from './finding.ts'
import type { Ports } from './ports.ts'
import { type AgentLine, type Looking, look } from './sight.ts'

export type ReadyRow = Row & { place: Place }

/** Looks at once on one node: enough that one proxy which does not answer holds up few others. */
const AT_ONCE = 4
/** Guest agents that may keep silent on one node in one round: each costs it a worker for seconds. */
const SILENT_AGENTS = 3

/** What the last round left for this one. */
type Before = { silent: Readonly<Record<string, number>>; cursor?: string | undefined }

/** What a round may still start; one account for all nodes. */
export type Allowance = { resumes: number }

export type ProxiesOfNode = {
  node: string
  findings: Finding[]
  counts: ProxyCounts
  silent: Record<string, number>
  /** The last one looked at, when time was over before all were. */
  cursor?: string
}

/** Ready proxies of one node, looked at in the order of their names from where the last round had to stop. */
export async function checkProxies(
  node: string,
  rows: readonly ReadyRow[],
  how: {
    vms: Provider
    cluster: Cluster
    signal: AbortSignal
    doubled: ReadonlySet<string>
    before: Before
    allowance: Allowance
  },
  ports: Ports,
): Promise<ProxiesOfNode> {
  const { before, signal } = how
  const ordered = inOrder(rows, before.cursor)
  const agents: AgentLine = { silenceLeft: SILENT_AGENTS, last: Promise.resolve() }
  const looking: Looking = { ...how, node, agents }
  const looks = await atMost(AT_ONCE, ordered, async (row) => {
    if (signal.aborted) return undefined
    const silentBefore = before.silent[row.uid] ?? 0
    const sight = await look(row, looking, ports)
    const drift = judgeDrift(row, sight, { config: ports.config, silentBefore })
    // What was cut off by the round's end was not seen.
    if (drift.state === 'unknown' && signal.aborted) return undefined
    return carryOut(row, drift, how.allowance, ports)
  })
  return summed(node, ordered, looks, { before, tired: agents.silenceLeft <= 0 })
}

/** Nothing is asked of a node that does not answer: its proxies are unknown, and left alone. */
export function unknownProxies(
  node: string,
  rows: readonly ReadyRow[],
  before: Record<string, number>,
): ProxiesOfNode {
  const counts = { ...none, ready: rows.length, unknown: rows.length }
  const text = `${rows.length} ready on it: unknown, and left alone`
  const findings =
    rows.length === 0 ? [] : [about({ target: 'proxies', where: node, node }).warn('Unknown', text)]
  return { node, findings, counts, silent: kept(rows, before) }
}

const none: ProxyCounts = { ready: 0, fine: 0, drifted: 0, unknown: 0, unseen: 0, resumed: 0 }

function inOrder(rows: readonly ReadyRow[], cursor: string | undefined): ReadyRow[] {
  const sorted = [...rows].sort((a, b) => (a.uid < b.uid ? -1 : 1))
  const first = cursor === undefined ? 0 : sorted.findIndex(({ uid }) => uid > cursor)
  return first <= 0 ? sorted : [...sorted.slice(first), ...sorted.slice(0, first)]
}

/** Sends what the drift asks for, if the row still stands as it was read: an index is a moment behind. */
async function carryOut(row: ReadyRow, drift: Drift, allowance: Allowance, ports: Ports): Promise<Drift> {
  const { finding, reaction } = drift
  if (!finding || finding.level === 'ok') return drift
  const now = await ports.row(row.uid)
  if (now?.phase !== 'Ready' || now.turn !== row.turn) return { state: 'unknown' }
  if (!reaction) return drift
  if (allowance.resumes <= 0) {
    const done = `not now: a round takes up at most ${ports.config.check.maxResumes} (check.maxResumes)`
    const { reaction: _, ...rest } = drift
    return { ...rest, finding: { ...finding, level: 'failure', done } }
  }
  allowance.resumes -= 1
  const message = { type: 'Resume', uid: row.uid, turn: row.turn, to: reaction }
  // To the queue of the function that its step belongs to, which the life cycle's own messages go to as well.
  await ports.queues.send(sideOf(reaction), message, { delaySeconds: 0 })
  return { ...drift, finding: { ...finding, done: DONE[reaction] } }
}

const DONE: Record<Reaction, string> = { start: 'taken up again at start', stop: 'being replaced' }

/** `looks` are in the order of the rows; undefined for one that time was over for. */
function summed(
  node: string,
  rows: readonly ReadyRow[],
  looks: readonly (Drift | undefined)[],
  { before, tired }: { before: Before; tired: boolean },
): ProxiesOfNode {
  const seen = looks.filter((one) => one !== undefined)
  const count = (state: Drift['state']) => seen.filter((drift) => drift.state === state).length
  const counts = {
    ready: rows.length,
    fine: count('fine'),
    drifted: count('drifted'),
    unknown: count('unknown'),
    unseen: rows.length - seen.length,
    resumed: seen.filter(({ reaction }) => reaction !== undefined).length,
  }
  const silent = rows.flatMap(({ uid }, index) => {
    const rounds = looks[index]?.silentRounds ?? before.silent[uid] ?? 0
    return rounds > 0 ? [[uid, rounds] as const] : []
  })
  const unseen = looks.indexOf(undefined)
  const cursor = unseen > 0 ? rows[unseen - 1]?.uid : unseen === 0 ? before.cursor : undefined
  return {
    node,
    findings: findingsOf(node, seen, counts, tired),
    counts,
    silent: Object.fromEntries(silent),
    ...(cursor === undefined ? {} : { cursor }),
  }
}

function findingsOf(node: string, seen: readonly Drift[], counts: ProxyCounts, tired: boolean): Finding[] {
  if (counts.ready === 0) return []
  const say = about({ target: 'proxies', where: node, node })
  const parts = Object.entries(counts).filter(([name, number]) => name !== 'ready' && number > 0)
  const text = `${counts.ready} ready: ${parts.map(([name, number]) => `${number} ${name}`).join(', ')}`
  const silence = 'guest agents do not answer, so no more of them were asked in this round'
  return [
    say.fine(text),
    ...(tired ? [say.warn('SilentAgent', silence)] : []),
    ...seen.flatMap(({ finding }) => finding ?? []),
  ]
}

const kept = (rows: readonly ReadyRow[], before: Record<string, number>) =>
  Object.fromEntries(rows.flatMap(({ uid }) => (before[uid] ? [[uid, before[uid]] as const] : [])))
