import type { Context } from 'aws-lambda'
import { createClaims } from '../../lib/claims.ts'
import { coldStart } from '../../lib/cold-start.ts'
import { connection } from '../../lib/connection.ts'
import { createFlush } from '../../lib/flush-traces.ts'
import { claimedVmids, rowNow, rowsInPhase } from '../../lib/listing.ts'
import { withIds } from '../../lib/log.ts'
import { probe } from '../../lib/probe.ts'
import { createProxmox } from '../../lib/proxmox/index.ts'
import { createReports } from '../../lib/reports.ts'
import { REPORTS, type Report, reportKey, type Summary } from './event.ts'
import type { Ports } from './ports.ts'
import { checkRound } from './round.ts'

/** Left of the invocation for writing down what was seen. */
const RESERVE_MS = 8000

const { env, config, log, debug, measure, client, queues, secrets } = coldStart(process.env)
const rows = env.EGRESS_PROXIES_TABLE
const table = env.EGRESS_CLAIMS_TABLE
const reports = { client, table, partition: REPORTS }

const ports: Ports = {
  config,
  connect: (cluster, { endpoints, tokens }) => {
    const { token, ...rest } = connection({ ...cluster, endpoints: [...endpoints] }, secrets)
    return createProxmox({ ...rest, token: tokens ? { get: async () => tokens } : token, onCall: debug })
  },
  secrets,
  rows: rowsInPhase(client, rows, ({ uid, message }) => log.error({ uid, reason: message }, 'left out')),
  row: rowNow(client, rows),
  claimedVmids: claimedVmids(client, table),
  agents: createClaims({ client, table }),
  probe,
  queues,
  reports: {
    of: (cluster) => createReports<Report>({ ...reports, sort: reportKey(cluster) }),
    summary: createReports<Summary>(reports),
  },
  log: (line) => log.info(line, 'check'),
  measure,
  now: Date.now,
  expire: (ms) => AbortSignal.timeout(ms),
}

const flush = createFlush()

/** On a schedule, or when it is asked for: one round. What the event says does not matter. */
export const handler = (
  _event: unknown,
  context: Pick<Context, 'awsRequestId' | 'getRemainingTimeInMillis'>,
) =>
  withIds({ requestId: context.awsRequestId }, () =>
    checkRound(ports, Math.max(0, Math.floor(context.getRemainingTimeInMillis()) - RESERVE_MS)).finally(
      flush,
    ),
  )
