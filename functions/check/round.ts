import { counted } from '../../lib/counted.ts'
import { asFailing } from '../../lib/failure.ts'
import { measured } from '../../lib/metrics.ts'
import { tracedQueues } from '../../lib/traced-queues.ts'
import { traceRun } from '../../lib/tracing.ts'
import { type Bounds, checkCluster } from './cluster.ts'
import { createConnections } from './connections.ts'
import type { Round } from './event.ts'
import { about } from './finding.ts'
import type { Ports } from './ports.ts'
import { type ReadyRow, unknownProxies } from './proxies.ts'
import { type Found, lineOf, reportOf, summaryOf } from './report.ts'
import { doubledAddresses } from './sight.ts'

/**
 * One look at everything: each cluster, its endpoints, tokens and nodes, and the ready proxies on them. Whatever does not
 * answer holds up nobody but itself. Writes no row: a proxy that is not as it should be is taken up again by a message. Two
 * rounds at once, or one that ends in the middle, do no harm: of two messages for one turn the life cycle acts on one.
 */
export function checkRound(outside: Ports, budgetMs: number): Promise<Round> {
  // What it sends is about other proxies each time.
  const ports = { ...outside, queues: tracedQueues(outside.queues, { apart: true }) }
  return traceRun('check', () => round(ports, budgetMs))
}

async function round(ports: Ports, budgetMs: number): Promise<Round> {
  const { config, now, expire } = ports
  const startedAt = now()
  const end = expire(budgetMs)
  const rows = (await ports.rows('Ready')).filter((row): row is ReadyRow => row.place !== undefined)
  // One that cannot become ready since its address is a ready one's has it in its row too.
  const doubled = doubledAddresses([...rows, ...(await ports.rows('Provisioning'))])
  const allowance = { resumes: config.check.maxResumes }
  const names = new Set([...Object.keys(config.clusters), ...rows.map(({ place }) => place.cluster)])
  const reports = await Promise.all(
    [...names].map(async (name) => {
      const ready = rows.filter(({ place }) => place.cluster === name)
      const found = await findings(name, ready, { ports, allowance, doubled, end, budgetMs })
      const report = reportOf(name, { startedAt, endedAt: now() }, found)
      await ports.reports.of(name).save(report)
      ports.log(lineOf(report))
      const { failure, warning } = report.counts
      ports.measure([measured('CheckFailures', failure, {}), measured('CheckWarnings', warning, {})])
      return report
    }),
  )
  const summary = summaryOf({ startedAt, endedAt: now() }, reports)
  await ports.reports.summary.save(summary)
  ports.measure([measured('ReadyProxies', summary.proxies.ready, {})])
  return { summary, reports }
}

/** Whatever goes wrong with one cluster is a finding of that cluster, and no other's. */
async function findings(
  name: string,
  ready: readonly ReadyRow[],
  bounds: Omit<Bounds, 'connections'>,
): Promise<Found> {
  const say = about({ target: 'cluster', where: name })
  const cluster = bounds.ports.config.clusters[name]
  if (!cluster) {
    const text = `${counted(ready.length, 'ready proxy lives', 'ready proxies live')} there, and it is not configured any more`
    const line = 'put it back into the configuration for as long as proxies live there'
    return { findings: [say.fail('Misconfigured', text, line)], proxies: [unknownProxies(name, ready, {})] }
  }
  const connections = createConnections(bounds.ports)
  try {
    return await checkCluster({ name, cluster }, ready, { ...bounds, connections })
  } catch (error) {
    const proxies = [unknownProxies(name, ready, {})]
    return { findings: [say.fail('Unexpected', asFailing(error).message)], proxies }
  } finally {
    await connections.close()
  }
}
