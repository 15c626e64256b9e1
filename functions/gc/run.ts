import { atMost } from '../../lib/at-most.ts'
import type { Clusters } from '../../lib/clusters.ts'
import type { Config } from '../../lib/config.ts'
import type { Inventory } from '../../lib/inventory.ts'
import type { Invocation } from '../../lib/life-cycle.ts'
import type { Measure } from '../../lib/metrics.ts'
import type { Provider } from '../../lib/proxmox/index.ts'
import type { Queues } from '../../lib/queue.ts'
import type { Reports } from '../../lib/reports.ts'
import type { Suspects } from '../../lib/suspects.ts'
import { tracedQueues } from '../../lib/traced-queues.ts'
import { traceRun } from '../../lib/tracing.ts'
import { act, type Hands } from './act.ts'
import type { GcRequest, Report } from './event.ts'
import { gather } from './gather.ts'
import { measurementsOf } from './measurements.ts'
import { type Plan, plan } from './plan.ts'
import { reportOf, shortened } from './report.ts'
import { rulesOf } from './rules.ts'
import type { World } from './world.ts'

export type GcPorts = {
  config: Config
  clusters: Clusters<Provider>
  inventory: Inventory
  claims: Hands['claims']
  suspects: Suspects
  queues: Pick<Queues, 'send'>
  reports: Pick<Reports<Report>, 'save'>
  log(report: Report): void
  measure: Measure
  now?: () => number
}

export type Gc = (request: GcRequest, invocation: Invocation) => Promise<Report>

const WRITES_AT_ONCE = 8

/**
 * One run: look, compare, act. Any number may run at once, and one may die anywhere: what it notes is written on a condition,
 * what it does is proven once more right before and may be repeated.
 */
export function createGc(outside: GcPorts): Gc {
  // What it sends is about other proxies each time.
  const ports = { ...outside, queues: tracedQueues(outside.queues, { apart: true }) }
  const { config, clusters, inventory, now = Date.now } = ports
  const rules = rulesOf(config)

  return (request, invocation) => traceRun('gc', () => run(request, invocation))

  async function run({ dryRun }: GcRequest, invocation: Invocation): Promise<Report> {
    const startedAtMs = now()
    const gathered = await gather({ config, rules, clusters, inventory, now }, invocation)
    const planned = plan(gathered.world, rules)
    const deeds = dryRun ? undefined : await carryOut(planned, gathered.world, invocation)
    const report = reportOf(gathered, planned, deeds, { startedAtMs, endedAtMs: now() })
    ports.log(shortened(report))
    if (dryRun) return report
    await ports.reports.save(shortened(report))
    ports.measure(measurementsOf(report))
    return report
  }

  /** First the notes, so that a run that dies while it acts has still looked. */
  async function carryOut({ notes, actions, clears, keeps }: Plan, world: World, invocation: Invocation) {
    const { suspects } = ports
    await atMost(WRITES_AT_ONCE, notes, ({ key, detail }) => suspects.note(key, detail))
    const deeds = await act(actions, handsFor(world, invocation))
    await atMost(WRITES_AT_ONCE, clears, (suspect) => suspects.clear(suspect))
    await atMost(WRITES_AT_ONCE, keeps, (suspect) => suspects.keep(suspect))
    return deeds
  }

  function handsFor(world: World, invocation: Invocation): Hands {
    const lists = new Map(
      world.clusters.map(({ name, vms }) => [name, new Map(vms.map((vm) => [vm.vmid, vm]))]),
    )
    const claims = new Map(world.claims.map((claim) => [`${claim.partition}#${claim.sort}`, claim]))
    return {
      ...ports,
      claimed: (partition, sort) => claims.get(`${partition}#${sort}`),
      deployment: rules.deployment,
      vmsOf: (cluster) => clusters.named(cluster, invocation),
      listed: (cluster, vmid) => lists.get(cluster)?.get(vmid),
      now,
      untilMs: invocation.mutateUntilMs,
    }
  }
}
