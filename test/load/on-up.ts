import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DynamoDBClient, ScanCommand } from '@aws-sdk/client-dynamodb'
import { SQSClient } from '@aws-sdk/client-sqs'
import { stringify } from 'yaml'
import { BOOT_MS, durations } from '../../bench/conditions.ts'
import { sendEvents } from '../../bench/send-events.ts'
import { countQueue } from '../../cli/queue-counts.ts'
import type { Row } from '../../lib/record.ts'
import { credentials } from '../../local/account.ts'
import { createOpened } from '../../local/opened.ts'
import { createSim, defaultWorld, loopbackGuests, realClock, type Sim } from '../../sim/index.ts'
import { createInstallation } from '../e2e/installation.ts'

/**
 * So many proxies at once on a running `egress up`, as a person has it: processes, emulators and a simulated cluster of eight
 * nodes, each on its wire and on the clock of this machine. All are ready, each once; then all are deleted, and nothing is left.
 *
 *   npm run load:up -- 1000
 */
const count = Number(process.argv[2] ?? 1000)
const lookEveryMs = 2000
/** Nothing is ready or gone, however long one waits. */
const patienceMs = 300_000

const folder = mkdtempSync(join(tmpdir(), 'egress-load-'))
const opened = createOpened()
opened.add({ close: () => rmSync(folder, { recursive: true, force: true }) })
const clock = realClock()
const world = defaultWorld({ version: 9, nodes: 8 })
const sim = opened.add(
  createSim({ world, clock, durations, guests: loopbackGuests({ clock, bootMs: BOOT_MS, cluster: folder }) }),
)
const here = opened.add(createInstallation())
try {
  await here.start('--config', await configuration())
  const sqs = new SQSClient(at('sqs'))
  const uids = Array.from({ length: count }, (_, index) => `proxy-${index}`)
  const traffic = watch(sim)

  const startedMs = Date.now()
  const asked = uids.map((uid) => ({
    type: 'ProxyRequested',
    uid,
    name: uid,
    spec: { zone: 'lab-1', image: 'debian-12' },
  }))
  await sendEvents(sqs, here.run().queues.create.url, asked)
  const ready = await untilAll(
    'Ready',
    (rows) => rows.length === count && rows.every(({ phase }) => phase === 'Ready'),
  )
  say(`${count} ready after ${since(startedMs)} s; at most ${traffic.peak()} requests in a second at a node`)
  const machines = sim.vms().filter(({ template }) => !template)
  demand(
    'one VM for each',
    machines.length === count && new Set(machines.map(({ name }) => name)).size === count,
  )
  demand(
    'each VM that of its row',
    ready.every(({ place }) => machines.some(({ vmid }) => vmid === place?.vmid)),
  )
  demand('an endpoint each', new Set(ready.map(({ endpoint }) => endpoint)).size === count)

  const removedMs = Date.now()
  await sendEvents(
    sqs,
    here.run().queues.delete.url,
    uids.map((uid) => ({ type: 'ProxyDeletionRequested', uid })),
  )
  await untilAll('Deleted', (rows) => rows.every(({ phase }) => phase === 'Deleted'))
  say(`${count} gone after ${since(removedMs)} s; at most ${traffic.peak()} requests in a second at a node`)
  demand(
    'no VM left',
    sim.vms().every(({ template }) => template),
  )
  demand(
    'no seed or disk left',
    sim.volumes().every(({ volid }) => /\/base-[^/]*$/.test(volid)),
  )
  demand('no claim left', (await claims()) === 0)
  demand('no dead letter', (await deadLetters(sqs)) === 0)
  traffic.stop()
  sqs.destroy()
} finally {
  await opened.close()
}

async function configuration(): Promise<string> {
  const { endpoints } = await sim.listen()
  const nodes = endpoints.map(({ node }) => node)
  const [token, file] = [join(folder, 'token'), join(folder, 'load.yml')]
  writeFileSync(token, world.tokens.egress, { mode: 0o600 })
  const cluster = {
    endpoints,
    token: { file: token },
    pool: 'egress',
    storage: 'vmdata',
    isoStorage: 'local',
    bridge: 'vmbr0',
    clone: 'full',
    addressRanges: ['127.0.0.0/8'],
    vmids: { from: 10_000, to: 10_000 + 2 * count },
    images: { 'debian-12': Object.fromEntries(nodes.map((node, index) => [node, 9000 + index])) },
  }
  const config = {
    deployment: 'load',
    clusters: { lab: cluster },
    zones: { 'lab-1': { cluster: 'lab', nodes } },
    defaults: {
      size: { cores: 1, memoryMiB: 512, diskGiB: 4 },
      proxy: { protocol: 'http', port: 8080, allow: ['127.0.0.0/8'] },
    },
    verify: { probe: 'tcp', probeFrom: ['127.0.0.0/8'] },
    timings: { maxClockSkewSeconds: 0 },
    parameters: { file: 'parameters.yml' },
  }
  writeFileSync(file, stringify(config))
  return file
}

function at(service: 'sqs' | 'dynamodb') {
  const { endpoints, region } = here.run()
  return { endpoint: endpoints[service], region, credentials }
}

/** Looks at all rows until that holds; they may be slow, but not stand still. */
async function untilAll(phase: Row['phase'], holds: (rows: Row[]) => boolean): Promise<Row[]> {
  let [told, toldMs] = ['', Date.now()]
  for (;;) {
    const rows = await here.rows()
    if (holds(rows)) return rows
    const failed = rows.filter((row) => row.phase === 'Failed')
    if (failed.length > 0) throw new Error(`failed: ${JSON.stringify(failed[0]?.problem)} (${failed.length})`)
    const line = `${rows.filter((row) => row.phase === phase).length} of ${count} ${phase}`
    if (line !== told) {
      ;[told, toldMs] = [line, Date.now()]
      say(line)
    }
    if (Date.now() - toldMs > patienceMs) throw new Error(`stands still: ${line}`)
    await clock.sleep(lookEveryMs)
  }
}

/** The simulator remembers its last requests only, so they are looked at as they come. */
function watch({ calls }: Sim) {
  const inSecond = new Map<string, number>()
  let seenMs = Date.now()
  const look = () => {
    // The second that is not over is left to the next look.
    const until = Math.floor(Date.now() / 1000) * 1000
    for (const { atMs, node, path } of calls()) {
      if (atMs < seenMs || atMs >= until) continue
      const second = `${/\/nodes\/([^/]+)\//.exec(path)?.[1] ?? node} ${Math.floor(atMs / 1000)}`
      inSecond.set(second, (inSecond.get(second) ?? 0) + 1)
    }
    seenMs = until
  }
  const timer = setInterval(look, lookEveryMs)
  return {
    /** The most in one second since the last time it was asked. */
    peak() {
      look()
      const most = Math.max(0, ...inSecond.values())
      inSecond.clear()
      return most
    },
    stop: () => clearInterval(timer),
  }
}

async function claims(): Promise<number> {
  const dynamodb = new DynamoDBClient(at('dynamodb'))
  const { Count = 0, LastEvaluatedKey } = await dynamodb.send(
    new ScanCommand({ TableName: here.run().tables.claims, Select: 'COUNT', ConsistentRead: true }),
  )
  dynamodb.destroy()
  return LastEvaluatedKey ? Number.POSITIVE_INFINITY : Count
}

async function deadLetters(sqs: SQSClient): Promise<number> {
  const { create, delete: others } = here.run().queues
  const counts = await Promise.all(
    [create, others].map(({ deadLetters }) => countQueue(sqs, deadLetters.url)),
  )
  return counts.reduce((sum, { visible, inFlight }) => sum + visible + inFlight, 0)
}

function demand(what: string, holds: boolean): void {
  say(`${what}: ${holds ? 'yes' : 'NO'}`)
  if (!holds) process.exitCode = 1
}

function since(ms: number): number {
  return Math.round((Date.now() - ms) / 1000)
}

function say(line: string): void {
  process.stdout.write(`${new Date().toISOString().slice(11, 19)} ${line}\n`)
}
