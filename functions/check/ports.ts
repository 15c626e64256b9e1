import type { Claims } from '../../lib/claims.ts'
import type { Cluster, Config } from '../../lib/config.ts'
import type { Measure } from '../../lib/metrics.ts'
import type { Probe } from '../../lib/probe.ts'
import type { Proxmox } from '../../lib/proxmox/index.ts'
import type { Queues } from '../../lib/queue.ts'
import type { Phase, Row } from '../../lib/record.ts'
import type { Reports } from '../../lib/reports.ts'
import type { Secrets } from '../../lib/secrets.ts'
import type { Report, Summary } from './event.ts'

export type Endpoint = Cluster['endpoints'][number]

/** How a cluster is reached: through these of its endpoints, with these tokens, or those that are stored. */
export type Connect = (
  cluster: Cluster,
  use: { endpoints: readonly Endpoint[]; tokens?: readonly string[] },
) => Proxmox

/** Everything outside that a round lives on. It writes no row: what it decides it sends. */
export type Ports = {
  config: Config
  connect: Connect
  secrets: Secrets
  rows(phase: Phase): Promise<Row[]>
  /** One row as it stands now. */
  row(uid: string): Promise<Row | undefined>
  claimedVmids(cluster: string): Promise<number[]>
  agents: Pick<Claims, 'takeAgentTurn' | 'freeAgentTurn'>
  probe: Probe
  queues: Pick<Queues, 'send'>
  reports: { of(cluster: string): Reports<Report>; summary: Pick<Reports<Summary>, 'save'> }
  log(line: object): void
  measure: Measure
  now: () => number
  /** A signal that fires so long from now. */
  expire(ms: number): AbortSignal
}
