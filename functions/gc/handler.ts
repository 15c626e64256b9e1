import type { Context } from 'aws-lambda'
import { createClaims } from '../../lib/claims.ts'
import { createClusters } from '../../lib/clusters.ts'
import { coldStart } from '../../lib/cold-start.ts'
import { connection } from '../../lib/connection.ts'
import { createFlush } from '../../lib/flush-traces.ts'
import { createInventory } from '../../lib/inventory.ts'
import { invocationOf } from '../../lib/invocation.ts'
import { withIds } from '../../lib/log.ts'
import { createProxmox } from '../../lib/proxmox/index.ts'
import { createReports } from '../../lib/reports.ts'
import { createSuspects } from '../../lib/suspects.ts'
import { GC_REPORT, parse, type Report } from './event.ts'
import { createGc } from './run.ts'

const { env, config, log, debug, measure, client, queues, secrets } = coldStart(process.env)
const table = env.EGRESS_CLAIMS_TABLE

/** A node that does not answer is not waited for so long that the rest of the run is lost: nothing that gc asks takes long. */
const timeouts = { readMs: 8000 }

const gc = createGc({
  config,
  clusters: createClusters(config, (cluster) =>
    createProxmox({ ...connection(cluster, secrets), timeouts, onCall: debug }),
  ),
  inventory: createInventory({ client, tables: { proxies: env.EGRESS_PROXIES_TABLE, claims: table } }),
  claims: createClaims({ client, table }),
  suspects: createSuspects({ client, table }),
  queues,
  reports: createReports<Report>({ client, table, partition: GC_REPORT }),
  log: (report) => log.info(report, 'gc'),
  measure,
})

const flush = createFlush()

/** On a schedule, or when it is asked for: finds what the life cycles left behind, and has it mended. */
export const handler = (
  event: unknown,
  context: Pick<Context, 'awsRequestId' | 'getRemainingTimeInMillis'>,
) =>
  withIds({ requestId: context.awsRequestId }, () => gc(parse(event), invocationOf(context)).finally(flush))
