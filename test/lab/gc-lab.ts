import type { Report } from '../../functions/gc/event.ts'
import { createGc, type Gc, type GcPorts } from '../../functions/gc/run.ts'
import { createClusters } from '../../lib/clusters.ts'
import { createProxmox, type Provider } from '../../lib/proxmox/index.ts'
import { withOptionalRoles } from '../../local/optional-roles.ts'
import { type DefaultWorld, defaultWorld } from '../../sim/index.ts'
import { createMemoryInventory } from '../fakes/inventory.ts'
import { inProcess } from './in-process.ts'
import { type Lab, type LabOptions, openLab } from './lab.ts'

/** A lab with gc, and an administrator who makes disorder. */
export type GcLab = Lab & WithGc

type WithGc = {
  /** One run of gc, on the lab's clock. */
  gc(dryRun?: boolean): Promise<Report>
  /** … begun, and not waited for; by ports of one's own to count what it does, or to die in between. */
  beginGc(options?: { dryRun?: boolean; interpose?: (ports: GcPorts) => GcPorts }): Promise<Report>
  reports: Report[]
  admin: Provider
  /** Settles a promise, moving the clock on. */
  on<T>(promise: Promise<T>): Promise<T>
  /** A task's end. */
  finished(upid: Promise<string | undefined>): Promise<void>
  /** Lets the time of grace go by. */
  grace(): Promise<void>
}

/** Longer than the configuration's default. */
export const GRACE_MS = 901_000

/** The default world, where the token may see and sweep what is left over. */
export const seeingWorld = (options: Parameters<typeof defaultWorld>[0] = {}): DefaultWorld =>
  withOptionalRoles(defaultWorld(options))

export async function openGcLab(options: LabOptions = {}): Promise<GcLab> {
  const { version = 9, nodes = 3 } = options
  const lab = await openLab({ world: seeingWorld({ version, nodes }), ...options })
  return { ...lab, ...withGc(lab) }
}

/** gc for a lab that is open already. */
export function withGc(lab: Lab): WithGc {
  const now = () => lab.clock.now()
  const client = (token: string) =>
    createProxmox({
      endpoints: lab.world.nodes.map(({ name }) => ({ url: `https://${name}:8006`, node: name })),
      token: { get: async () => [token] },
      exchange: inProcess(lab.sim),
      now,
      timeouts: { readMs: 8000 },
      onCall: (entry) => void lab.calls.push(entry),
    })
  const reports: Report[] = []
  const ports: GcPorts = {
    config: lab.config,
    clusters: createClusters(lab.config, () => client(lab.world.tokens.egress)),
    inventory: createMemoryInventory(lab.ledger, lab.claims),
    claims: lab.claims,
    suspects: lab.claims.judged,
    queues: lab.queues,
    reports: { save: async (report) => void reports.push(report) },
    log: () => {},
    measure: (some) => void lab.measurements.push(...some),
    now,
  }
  const admin = client(lab.world.tokens.admin).with({ signal: new AbortController().signal })
  const on = <T>(promise: Promise<T>) => lab.clock.until(promise)

  function run(gc: Gc, dryRun: boolean): Promise<Report> {
    const abort = new AbortController()
    const called = lab.clock.after(55_000, () => abort.abort())
    const invocation = { signal: abort.signal, mutateUntilMs: now() + 53_000 }
    return gc({ dryRun }, invocation).finally(called)
  }

  async function finished(started: Promise<string | undefined>): Promise<void> {
    const upid = await on(started)
    if (upid === undefined) return
    for (;;) {
      const state = await on(admin.task(upid))
      if (!state.running && state.ok) return
      if (!state.running) throw state.error
      await lab.clock.advance(1000)
    }
  }

  return {
    reports,
    admin,
    on,
    finished,
    gc: (dryRun = false) => on(run(createGc(ports), dryRun)),
    beginGc: ({ dryRun = false, interpose = (same: GcPorts) => same } = {}) =>
      run(createGc(interpose(ports)), dryRun),
    grace: () => lab.clock.advance(GRACE_MS),
  }
}
