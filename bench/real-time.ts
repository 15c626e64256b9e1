import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DynamoDBClient } from '@aws-sdk/client-dynamodb'
import { SendMessageCommand, SQSClient } from '@aws-sdk/client-sqs'
import { DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb'
import { stringify } from 'yaml'
import { rowNow } from '../lib/listing.ts'
import { credentials, REGION } from '../local/account.ts'
import { type Emulators, startEmulators } from '../local/emulators.ts'
import { openLogFile } from '../local/log-file.ts'
import { createOpened } from '../local/opened.ts'
import { servePage } from '../local/page-server.ts'
import { openPorts } from '../local/ports.ts'
import { runFunctions } from '../local/run-functions.ts'
import { createSim, defaultWorld, loopbackGuests, realClock } from '../sim/index.ts'
import { BOOT_MS, durations } from './conditions.ts'
import { openWire, type Tally } from './wire.ts'

/** A whole installation in real time: the real handlers, unmodified clients of AWS, a counter between them and the emulators. */
export type RealTime = {
  publish(side: 'create' | 'delete', event: object): Promise<void>
  /** Waits until every proxy is in the phase. @throws {Error} when one fails, or it takes too long */
  reached(uids: readonly string[], phase: 'Ready' | 'Deleted'): Promise<void>
  take(): Tally
  close(): Promise<void>
}

const LIMIT_MS = 240_000

export async function openRealTime(): Promise<RealTime> {
  const folder = mkdtempSync(join(tmpdir(), 'egress-bench-'))
  const opened = createOpened()
  opened.add({ close: () => rmSync(folder, { recursive: true, force: true }) })
  try {
    const world = defaultWorld()
    const guests = loopbackGuests({ clock: realClock(), bootMs: BOOT_MS, cluster: folder })
    const sim = opened.add(createSim({ world, guests, durations }))
    const { endpoints } = await sim.listen()
    const page = opened.add(await servePage({ port: 0 }))
    writeFileSync(join(folder, 'token'), world.tokens.egress, { mode: 0o600 })
    const config = join(folder, 'bench.yml')
    writeFileSync(config, stringify(configuration(endpoints, `http://127.0.0.1:${page.port}/`)))
    const emulators = opened.add(
      await startEmulators({ folder, ports: openPorts(folder), functionTimeoutSeconds: 60 }),
    )
    const wire = opened.add(await openWire(emulators))
    const log = opened.add(openLogFile(join(folder, 'functions.log')))
    opened.add(
      runFunctions({
        emulators: wire.emulators,
        config,
        timeoutMs: 60_000,
        telemetry: {},
        logLevel: 'info',
        log,
      }),
    )
    return { ...watch(emulators), take: wire.take, close: opened.close }
  } catch (error) {
    await opened.close()
    throw error
  }
}

/** Asks and looks past the counter. */
function watch({ endpoints, queues, tables }: Emulators): Pick<RealTime, 'publish' | 'reached'> {
  const sqs = new SQSClient({ endpoint: endpoints.sqs, region: REGION, credentials })
  const dynamodb = new DynamoDBClient({ endpoint: endpoints.dynamodb, region: REGION, credentials })
  const client = DynamoDBDocumentClient.from(dynamodb)
  return {
    async publish(side, event) {
      await sqs.send(
        new SendMessageCommand({ QueueUrl: queues[side].url, MessageBody: JSON.stringify(event) }),
      )
    },
    async reached(uids, phase) {
      const untilMs = Date.now() + LIMIT_MS
      const missing = new Set(uids)
      while (missing.size > 0) {
        for (const uid of missing) {
          const row = await rowNow(client, tables.proxies)(uid)
          if (row?.phase === 'Failed') throw new Error(`${uid} failed: ${JSON.stringify(row.problem)}`)
          if (row?.phase === phase) missing.delete(uid)
        }
        if (Date.now() > untilMs) throw new Error(`not ${phase} in time: ${[...missing].join(', ')}`)
        await new Promise((resolve) => setTimeout(resolve, 200))
      }
      // The message that brought it there is acknowledged after the save.
      await new Promise((resolve) => setTimeout(resolve, 500))
    },
  }
}

function configuration(
  endpoints: { node: string; url: string; fingerprint: string }[],
  probeUrl: string,
): object {
  const nodes = endpoints.map(({ node }) => node)
  return {
    deployment: 'bench',
    clusters: {
      lab: {
        endpoints,
        token: { file: 'token' },
        pool: 'egress',
        storage: 'vmdata',
        isoStorage: 'local',
        clone: 'full',
        bridge: 'vmbr0',
        vmids: { from: 5000, to: 5999 },
        addressRanges: ['127.0.0.0/8'],
        images: { 'debian-12': Object.fromEntries(nodes.map((node, index) => [node, 9000 + index])) },
      },
    },
    zones: { 'lab-1': { cluster: 'lab', nodes } },
    defaults: {
      size: { cores: 1, memoryMiB: 512, diskGiB: 4 },
      proxy: { protocol: 'http', port: 3128, allow: ['127.0.0.0/8'] },
    },
    verify: { probe: 'http', probeUrl, probeFrom: ['127.0.0.0/8'] },
    timings: { maxClockSkewSeconds: 0 },
    parameters: { file: 'parameters.yml' },
  }
}
