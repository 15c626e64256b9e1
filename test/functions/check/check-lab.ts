import type { Finding, FindingCode, Report, Round, Summary } from '../../../functions/check/event.ts'
import type { Ports } from '../../../functions/check/ports.ts'
import { checkRound } from '../../../functions/check/round.ts'
import { createProxmox, type Exchange } from '../../../lib/proxmox/index.ts'
import type { Reports } from '../../../lib/reports.ts'
import type { World } from '../../../sim/index.ts'
import { type Lab, type LabOptions, type Outside, openLab } from '../../lab/lab.ts'

export type CheckOptions = LabOptions & {
  /** Stands between a round and the clusters, for what the simulated one without sockets does not have: TLS. */
  wire?: (exchange: Exchange) => Exchange
  /** Over what a round lives on. */
  ports?: (ports: Ports, lab: Lab) => Partial<Ports>
}

/** The lab with rounds of check in it, on its clock. */
export type CheckLab = Lab & {
  /** One round, as the schedule would start it. */
  round(budgetMs?: number): Promise<Round>
  ports: Ports
  saved: Map<string, Report | Summary>
}

const BUDGET_MS = 51_999

export async function openCheckLab(options: CheckOptions = {}): Promise<CheckLab> {
  let outside: Outside | undefined
  const lab = await openLab({
    ...options,
    interpose: (given) => {
      outside = options.interpose?.(given) ?? given
      return outside
    },
  })
  if (!outside) throw new Error('the lab was opened without an outside')
  const { surroundings } = outside
  const exchange = options.wire?.(outside.exchange) ?? outside.exchange
  const saved: CheckLab['saved'] = new Map()
  const stored: Ports = {
    config: lab.config,
    connect: (_cluster, { endpoints, tokens = [lab.world.tokens.egress] }) =>
      createProxmox({
        endpoints: endpoints.map(({ url, node }) => ({ url, ...(node === undefined ? {} : { node }) })),
        token: { get: async () => tokens },
        exchange,
        now: () => lab.clock.now(),
        onCall: (entry) => void lab.calls.push(entry),
      }),
    secrets: surroundings.secrets,
    rows: async (phase) => lab.ledger.rows().filter((row) => row.phase === phase),
    row: (uid) => lab.ledger.read(uid),
    claimedVmids: async (cluster) =>
      lab.claims
        .all()
        .filter(({ partition }) => partition === `vmid#${cluster}`)
        .map(({ sort }) => Number(sort)),
    agents: lab.claims,
    probe: surroundings.probe,
    queues: lab.queues,
    reports: {
      of: (cluster) => memory<Report>(saved, cluster),
      summary: memory<Summary>(saved, 'latest'),
    },
    log: () => {},
    measure: (some) => void lab.measurements.push(...some),
    now: () => lab.clock.now(),
    expire: (ms) => {
      // As strict as AbortSignal.timeout.
      if (!Number.isInteger(ms)) throw new RangeError(`a delay is a whole number, not ${ms}`)
      const control = new AbortController()
      lab.clock.after(ms, () => control.abort())
      return control.signal
    },
  }
  const ports = { ...stored, ...options.ports?.(stored, lab) }
  return {
    ...lab,
    saved,
    ports,
    round: (budgetMs = BUDGET_MS) => lab.clock.until(checkRound(ports, budgetMs)),
  }
}

function memory<R extends Report | Summary>(saved: Map<string, Report | Summary>, key: string): Reports<R> {
  return {
    save: async (report) => void saved.set(key, structuredClone(report)),
    // Each key is written with one kind of report only.
    latest: async () => saved.get(key) as R | undefined,
  }
}

export const allFindings = ({ reports }: Round): Finding[] => reports.flatMap(({ findings }) => findings)
export const wrong = (round: Round): Finding[] => allFindings(round).filter(({ level }) => level !== 'ok')
export const found = (round: Round, code: FindingCode): Finding[] =>
  allFindings(round).filter((one) => one.code === code)

type Acl = NonNullable<World['acl']>[number]

/** What the optional roles of the setup page grant: with them a round sees everything. */
export function withAuditRoles<W extends World>(world: W): W {
  const extra: [path: string, role: string, privilege: string][] = [
    ['/', 'EgressCheckCluster', 'Sys.Audit'],
    ['/storage/local', 'EgressCheckStorage', 'Datastore.Audit'],
    ['/pool/egress', 'EgressCheckPool', 'Pool.Audit'],
    ...(world.vms ?? [])
      .filter(({ config }) => config.template !== undefined)
      .map(({ vmid }): [string, string, string] => [`/vms/${vmid}`, 'EgressCheckTemplate', 'VM.Audit']),
  ]
  const acl: Acl[] = extra.flatMap(([path, role]) =>
    ['egress@pve', 'egress@pve!ctl'].map((ugid) => ({ path, ugid, role, propagate: true })),
  )
  return {
    ...world,
    roles: { ...world.roles, ...Object.fromEntries(extra.map(([, role, privilege]) => [role, [privilege]])) },
    acl: [...(world.acl ?? []), ...acl],
  }
}
