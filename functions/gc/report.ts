import type { Deed } from './act.ts'
import type { Report, Reported, Skipped } from './event.ts'
import type { Plan } from './plan.ts'
import type { World } from './world.ts'

const instant = (ms: number) => new Date(ms).toISOString()

export function reportOf(
  { world, skipped }: { world: World; skipped: Skipped[] },
  plan: Plan,
  deeds: readonly Deed[] | undefined,
  { startedAtMs, endedAtMs }: { startedAtMs: number; endedAtMs: number },
): Report {
  const actions = plan.actions.map(({ action, since }, index): Reported => {
    const { state, why } = deeds?.[index] ?? { state: 'planned' as const, why: undefined }
    return { ...action, since: instant(since), state, ...(why === undefined ? {} : { why }) }
  })
  const shelves = (kind: 'seeds' | 'disks') =>
    world.clusters.flatMap((cluster) => cluster[kind]).reduce((sum, { volumes }) => sum + volumes.length, 0)
  return {
    startedAt: instant(startedAtMs),
    ms: endedAtMs - startedAtMs,
    dryRun: deeds === undefined,
    looked: {
      clusters: world.clusters.length,
      silentNodes: world.clusters.flatMap(({ nodes }) => nodes).filter(({ silent }) => silent).length,
      vms: world.clusters.reduce((sum, { vms }) => sum + vms.length, 0),
      configs: world.clusters.reduce((sum, { sights }) => sum + sights.size, 0),
      seeds: shelves('seeds'),
      disks: shelves('disks'),
      rows: world.rows.length,
      claims: world.claims.length,
      suspects: world.suspects.length,
    },
    counts: countBy(actions.map(({ kind, state }) => `${kind}: ${state}`)),
    actions,
    noted: plan.notes.map(({ key }) => key),
    waiting: plan.waiting.map(({ key, since, why }) => ({ key, since: instant(since), why })),
    cleared: plan.clears.map(({ key }) => key),
    warnings: [...plan.warnings, ...(deeds ?? []).flatMap(({ warning }) => warning ?? [])],
    heldBack: countBy(plan.heldBack.map(({ kind }) => kind)),
    skipped,
  }
}

const countBy = (keys: readonly string[]) =>
  Object.fromEntries([...Map.groupBy(keys, (key) => key)].map(([key, list]) => [key, list.length]))

/** An item of the table holds 400 KB, and a line of a log should not be longer. */
const MOST_LISTED = 50
const lists = ['actions', 'noted', 'waiting', 'cleared', 'warnings', 'skipped'] as const

/** The report with long lists cut short: fits a line of the log and an item of the table. */
export function shortened(report: Report): Report {
  const leftOff = lists.flatMap((name) =>
    report[name].length > MOST_LISTED ? [[name, report[name].length - MOST_LISTED] as const] : [],
  )
  if (leftOff.length === 0) return report
  const cut = Object.fromEntries(lists.map((name) => [name, report[name].slice(0, MOST_LISTED)]))
  return { ...report, ...cut, leftOff: Object.fromEntries(leftOff) }
}
