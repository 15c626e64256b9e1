import { stringify } from 'yaml'
import { type Cluster, type Config, parseConfig } from '../../lib/config.ts'
import { connection } from '../../lib/connection.ts'
import type { OutcomeEvent } from '../../lib/events.ts'
import { leaseMs, type Surroundings, settleMs } from '../../lib/function.ts'
import type { Measurement } from '../../lib/metrics.ts'
import type { Probe } from '../../lib/probe.ts'
import { type CallLog, createProxmox, type Endpoint, type Exchange } from '../../lib/proxmox/index.ts'
import type { Row, Side } from '../../lib/record.ts'
import { createSecrets } from '../../lib/secrets.ts'
import type { Decision, Worker } from '../../lib/worker.ts'
import {
  createSim,
  createVirtualClock,
  type Durations,
  defaultWorld,
  type GuestFactory,
  inProcessGuests,
  type Sim,
  type VirtualClock,
} from '../../sim/index.ts'
import type { MemoryParameters } from '../fakes/parameters.ts'
import { createMemoryQueues, type MemoryQueues } from '../fakes/queues.ts'
import { cyclesOf, workersOf } from '../fakes/workers.ts'
import { inProcess } from './in-process.ts'
import { onTables } from './on-tables.ts'

/** Names of the parameters that a lab with `parameters` keeps its tokens in, first and second. */
export const TOKENS = ['/lab/token', '/lab/next-token'] as const

export type LabOptions = {
  version?: 8 | 9
  nodes?: number
  world?: ReturnType<typeof defaultWorld>
  /** Names of clusters besides `lab`, each a default world with the same nodes and numbers, and a zone `<name>-1`. */
  besides?: readonly string[]
  /** Over the configuration's top level. */
  config?: Record<string, unknown>
  /** Over each cluster of the configuration. */
  cluster?: Record<string, unknown>
  passwords?: Record<string, string>
  /** How long Proxmox takes for things; the simulator's own where nothing is said. */
  durations?: Partial<Durations>
  /** Whether machines can fetch packages at that moment. */
  hasMirror?: () => boolean
  /** Other guests than those in process. */
  guests?: GuestFactory
  /** Stands between the functions and the world, so that a test can kill, repeat or delay whatever they do. */
  interpose?: (outside: Outside) => Outside
  /** Where tokens are kept, instead of in the functions' hands: the cluster's configuration then names its parameters. */
  parameters?: MemoryParameters
  /** How many processes of the functions are warm, each with its own memory of secrets; messages go to them in turn. */
  processes?: number
  /** By how much the clock of whoever asks is wrong; the queue's and Proxmox's never are. */
  skewMs?: () => number
  /** How often the SDK sends a write of whoever asks, who hears the last answer only. */
  timesSent?: () => number
}

/** All that the functions reach of the world. */
export type Outside = { surroundings: Surroundings; exchange: Exchange }

/** A whole installation on a virtual clock: the real functions on tables and queues in memory, a simulated cluster without sockets. */
export type Lab = {
  sim: Sim
  /** Each cluster by its name; `lab` is `sim`. */
  sims: ReadonlyMap<string, Sim>
  clock: VirtualClock
  queues: MemoryQueues
  ledger: ReturnType<typeof onTables>['ledger']
  claims: ReturnType<typeof onTables>['claims']
  outcomes: OutcomeEvent[]
  decisions: (Decision & { ms: number })[]
  calls: CallLog[]
  measurements: Measurement[]
  world: ReturnType<typeof defaultWorld>
  config: Config
  workers: Record<Side, Worker>
  request(uid: string, over?: Record<string, unknown>): void
  remove(uid: string): void
  /** Hands out what is visible, advancing the clock, until `done` holds or nothing moves any more. */
  run(done?: () => boolean | Promise<boolean>, limitMs?: number): Promise<void>
  row(uid: string): Row | undefined
  /** What is left in the simulated cluster that is not a template. */
  leftOvers(): { vms: number[]; volumes: string[] }
  close(): Promise<void>
}

export async function openLab(options: LabOptions = {}): Promise<Lab> {
  const { version = 9, nodes = 3 } = options
  const clock = createVirtualClock()
  const now = () => clock.now() + (options.skewMs?.() ?? 0)
  const world = options.world ?? defaultWorld({ version, nodes })
  const { hasMirror, durations = {}, besides = [] } = options
  const clusters = ['lab', ...besides].map((name, index) => {
    const guests = inProcessGuests({ clock, bootMs: 20_000, cluster: name, ...(hasMirror && { hasMirror }) })
    const own = index === 0 ? world : defaultWorld({ version, nodes })
    const factory = options.guests ?? guests
    const sim = createSim({ world: own, clock, guests: factory, durations, random: seeded(7 + index) })
    return { name, world: own, guests, sim, exchange: inProcess(sim) }
  })
  const [{ sim }] = clusters as [(typeof clusters)[number]]
  const sims = new Map(clusters.map((cluster) => [cluster.name, cluster.sim]))
  const clusterAt = (endpoint: Pick<Endpoint, 'url'>) => {
    const found = clusters.find(({ name }) => name === clusterOf(endpoint))
    if (!found) throw new Error(`no cluster is at ${endpoint.url}`)
    return found
  }
  const config = configOf(configuration(world, options))
  const { ledger, claims, userData } = onTables({
    leaseMs: leaseMs(config),
    settleMs: settleMs(config),
    now,
    ...(options.timesSent && { timesSent: options.timesSent }),
  })
  const queues = createMemoryQueues(() => clock.now(), 6 * config.timings.functionTimeoutSeconds * 1000)
  const outcomes: OutcomeEvent[] = []
  const decisions: (Decision & { ms: number })[] = []
  const calls: CallLog[] = []
  const measurements: Measurement[] = []
  const inside: Surroundings = {
    config,
    ledger,
    claims,
    queues,
    userData,
    secrets: { read: async () => world.tokens.egress, parameter: async (name) => options.passwords?.[name] },
    publish: async (event) => void outcomes.push(event),
    probe: probeOf(clusters.map(({ guests }) => guests)),
    countOn: async (cluster, node) =>
      ledger.rows().filter(({ placedOn }) => placedOn === `${cluster}/${node}`).length,
    log: (decision) => void decisions.push(decision),
    measure: (some) => void measurements.push(...some),
    now,
    random: seeded(11),
    sleep: (ms) => clock.sleep(ms),
  }
  const routed: Exchange = (endpoint, request) => clusterAt(endpoint).exchange(endpoint, request)
  const outside = { surroundings: inside, exchange: routed }
  const { surroundings, exchange } = options.interpose?.(outside) ?? outside
  const { parameters, processes = 1 } = options
  const pool = Array.from({ length: processes }, warm)
  const [workers] = pool as [Record<Side, Worker>]
  let inTurn = 0

  /** A process of the functions, with a memory of its own. */
  function warm(): Record<Side, Worker> {
    const ssm = () => (parameters as MemoryParameters).client
    const { parameter } = surroundings.secrets
    const secrets = parameters
      ? { ...createSecrets({ ssm, parameters: { ssm: true }, now }), parameter }
      : surroundings.secrets
    const own = { ...surroundings, secrets }
    const connect = (cluster: Cluster) =>
      createProxmox({
        endpoints: cluster.endpoints.map(({ url, node = '' }) => ({ url, node })),
        token: parameters ? connection(cluster, secrets).token : { get: async () => [tokenOf(cluster)] },
        exchange,
        now,
        onCall: (entry) => void calls.push(entry),
      })
    return workersOf(own, cyclesOf(own, connect))
  }

  const tokenOf = ({ endpoints: [first] }: Cluster) => clusterAt(first ?? { url: '' }).world.tokens.egress

  async function deliver(side: Side): Promise<boolean> {
    const deliveries = queues.receive(side)
    const abort = new AbortController()
    const called = clock.after(config.timings.functionTimeoutSeconds * 1000 - 5000, () => abort.abort())
    const invocation = {
      signal: abort.signal,
      mutateUntilMs: clock.now() + config.timings.functionTimeoutSeconds * 1000 - 7000,
    }
    await Promise.all(
      deliveries.map(async (delivery) => {
        const { [side]: worker } = pool[inTurn++ % processes] ?? workers
        const verdict = await worker(delivery, invocation)
        if (verdict.kind === 'acknowledge') queues.acknowledge(side, delivery)
        else await queues.showAgainIn(side, delivery, verdict.seconds)
      }),
    )
    called()
    return deliveries.length > 0
  }

  return {
    sim,
    sims,
    clock,
    queues,
    ledger,
    claims,
    outcomes,
    decisions,
    calls,
    measurements,
    world,
    config,
    workers,
    request(uid, over = {}) {
      const { spec, ...rest } = over
      const event = {
        type: 'ProxyRequested',
        uid,
        name: uid,
        ...rest,
        spec: { zone: 'lab-1', image: 'debian-12', ...(spec as object | undefined) },
      }
      queues.publish('create', JSON.stringify(event))
    },
    remove: (uid) => queues.publish('delete', JSON.stringify({ type: 'ProxyDeletionRequested', uid })),
    async run(done = () => false, limitMs = 48 * 3600_000) {
      const until = clock.now() + limitMs
      while (!(await done())) {
        const busy = await clock.until(Promise.all([deliver('create'), deliver('delete')]))
        if (busy.includes(true)) continue
        const next = queues.nextAt()
        if (next === undefined) return
        if (next > until)
          throw new Error(`not done by ${limitMs} ms: ${JSON.stringify(ledger.rows(), null, 1)}`)
        await clock.advance(Math.max(0, next - clock.now()))
      }
    },
    row: (uid) => ledger.rows().find((row) => row.uid === uid),
    leftOvers: () => ({
      vms: [...sims.values()]
        .flatMap((one) => one.vms())
        .filter(({ template }) => !template)
        .map(({ vmid }) => vmid),
      volumes: [...sims.values()]
        .flatMap((one) => one.volumes())
        .map(({ volid }) => volid)
        .filter((volid) => !/\/base-[^/]*$/.test(volid)),
    }),
    async close() {
      for (const one of sims.values()) await one.close()
    },
  }
}

/** Most labs have the same, and to read it takes as long as a part of a life. */
const configs = new Map<string, Config>()
function configOf(settings: object): Config {
  const key = JSON.stringify(settings)
  const config = configs.get(key) ?? parseConfig(stringify(settings), 'lab.yml')
  configs.set(key, config)
  return structuredClone(config)
}

function configuration(world: ReturnType<typeof defaultWorld>, options: LabOptions) {
  const nodes = world.nodes.map(({ name }) => name)
  const images = Object.fromEntries(nodes.map((node, index) => [node, 9000 + index]))
  const names = ['lab', ...(options.besides ?? [])]
  const cluster = (name: string) => ({
    endpoints: nodes.map((node) => ({
      url: `https://${node}${name === 'lab' ? '' : `.${name}`}:8006`,
      node,
      fingerprint: Array(32).fill('AA').join(':'),
    })),
    token: options.parameters ? [{ ssm: TOKENS[0] }, { ssm: TOKENS[1] }] : { file: 'token' },
    pool: 'egress',
    storage: 'vmdata',
    isoStorage: 'local',
    bridge: 'vmbr0',
    vmids: { from: 5000, to: 5999 },
    addressRanges: ['127.0.0.0/8'],
    images: { 'debian-12': images },
    ...options.cluster,
  })
  return {
    deployment: 'test',
    clusters: Object.fromEntries(names.map((name) => [name, cluster(name)])),
    zones: Object.fromEntries(names.map((name) => [`${name}-1`, { cluster: name, nodes }])),
    defaults: {
      size: { cores: 1, memoryMiB: 512, diskGiB: 4 },
      proxy: { protocol: 'http', port: 3128, allow: ['10.0.0.0/8'] },
    },
    verify: { probe: 'http', probeUrl: 'http://page.test/', probeFrom: ['127.0.0.1/32'] },
    timings: { maxClockSkewSeconds: 0 },
    parameters: { file: 'parameters.yml' },
    ...options.config,
  }
}

/** The cluster that an endpoint is of: `https://pve1.west:8006` is of `west`, `https://pve1:8006` of `lab`. */
export const clusterOf = ({ url }: Pick<Endpoint, 'url'>): string =>
  /^https:\/\/[^.:]+\.(\w+):/.exec(url)?.[1] ?? 'lab'

function probeOf(clusters: ReturnType<typeof inProcessGuests>[]): Probe {
  const probe: Probe['http'] = async ({ host, port, credentials }) => {
    const request = { client: '127.0.0.1', ...(credentials && { credentials }) }
    const verdicts = clusters.map((guests) => guests.probe(host, port, request))
    const verdict = verdicts.find((one) => one !== 'ECONNREFUSED')
    if (verdict === undefined) return { kind: 'silent', detail: 'ECONNREFUSED' }
    return { kind: verdict.status === 200 ? 'answers' : 'refuses', detail: `status ${verdict.status}` }
  }
  return { http: probe, tcp: probe }
}

/** A small deterministic generator (mulberry32), so that a run can be repeated. */
export function seeded(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

const AT_REST = new Set(['Ready', 'Failed', 'Deleted'])

/** Runs until the row is at rest, and returns it. What waits in the queue already is handed out before that counts. */
export async function settled(lab: Lab, uid: string): Promise<Row> {
  let handedOut = lab.queues.size() === 0
  await lab.run(() => {
    if (handedOut) return AT_REST.has(lab.row(uid)?.phase ?? '')
    handedOut = true
    return false
  })
  return existing(lab, uid)
}

/** Runs until the row is about to run the step, and returns it. */
export async function atStep(lab: Lab, uid: string, step: Row['step']): Promise<Row> {
  await lab.run(() => lab.row(uid)?.step === step)
  return existing(lab, uid)
}

function existing(lab: Lab, uid: string): Row {
  const row = lab.row(uid)
  if (!row) throw new Error(`there is no row ${uid}`)
  return row
}
