import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DynamoDBClient } from '@aws-sdk/client-dynamodb'
import { BatchWriteCommand, DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb'
import { parse, stringify } from 'yaml'
import { vmidPartition } from '../lib/claims.ts'
import type { Row } from '../lib/record.ts'
import { credentials, REGION } from '../local/account.ts'
import { type Emulators, startEmulators } from '../local/emulators.ts'
import { createOpened } from '../local/opened.ts'
import { openPorts } from '../local/ports.ts'
import { createSim } from '../sim/index.ts'
import { instantConfig } from './instant-config.ts'
import { type Part, TIMED } from './report.ts'
import { crowd } from './scale-world.ts'

const COUNTS = [100, 1000, 10_000]
const WORKS = ['nothing', 'list', 'egress list', 'gc', 'check'] as const
/** How many requests the simulator remembers. */
const REMEMBERED = 5000
type Looked = { seconds: number; peakMiB: number; calls: number; said: unknown }

/** What looks at everything, as everything grows: seconds, memory and requests. */
export const scale: Part = {
  name: 'scale',
  about:
    '100 to 10,000 rows and VMs: listing, `egress list`, gc and check: seconds, peak memory and requests to Proxmox',
  async run(say) {
    const found = new Map<string, Looked>()
    for (const count of COUNTS) {
      say(`${count} rows and VMs`)
      for (const [work, looked] of await lookAt(count)) found.set(`${work} ${count}`, looked)
    }
    const of = (work: string, count: number) => {
      const looked = found.get(`${work} ${count}`)
      if (!looked) throw new Error(`${work} was not measured at ${count}`)
      return looked
    }
    const works = WORKS.filter((work) => work !== 'nothing')
    const rows = works.flatMap((work) =>
      COUNTS.map((count) => {
        const { seconds, peakMiB, calls } = of(work, count)
        return [work, count, seconds, peakMiB, peakMiB - of('nothing', count).peakMiB, calls]
      }),
    )
    return {
      sheets: [
        {
          title: 'Rows (one in ten Ready) and VMs (one in ten ours)',
          head: ['', 'of each', 'seconds', 'peak MiB', 'less an empty process', 'requests to Proxmox'],
          rows,
        },
      ],
      figures: works.flatMap((work) => {
        const [few, many] = [of(work, 1000), of(work, 10_000)]
        return [
          {
            name: `${work} of 10,000`,
            value: many.seconds,
            unit: 's',
            noise: TIMED,
            // A round of check waits for whom it asks; its bound is its time-out.
            aim: work === 'check' ? 240 : 10,
          },
          {
            name: `${work} of 10,000, memory`,
            value: many.peakMiB,
            unit: 'MiB',
            noise: 0.15,
            // Of gc alone something was demanded.
            ...(work === 'gc' && { aim: 256 }),
          },
          // Ten times as many; a part of it is the same for any number.
          {
            name: `${work}, 10,000 / 1,000`,
            value: many.seconds / few.seconds,
            unit: '',
            noise: TIMED,
            aim: 13,
          },
        ]
      }),
      notes: [
        'From source, so TypeScript is taken off at the start: that is in the memory, not in the seconds.',
      ],
    }
  },
}

async function lookAt(count: number): Promise<[string, Looked][]> {
  const folder = mkdtempSync(join(tmpdir(), 'egress-bench-'))
  const opened = createOpened()
  opened.add({ close: () => rmSync(folder, { recursive: true, force: true }) })
  try {
    const { world, rows } = crowd(count)
    const sim = opened.add(createSim({ world }))
    const { endpoints } = await sim.listen()
    writeFileSync(join(folder, 'token'), world.tokens.egress, { mode: 0o600 })
    const config = join(folder, 'bench.yml')
    const document = parse(instantConfig())
    Object.assign(document.clusters.lab, { endpoints, pool: 'egress' })
    writeFileSync(config, stringify(document))
    const emulators = opened.add(
      await startEmulators({ folder, ports: openPorts(folder), functionTimeoutSeconds: 60 }),
    )
    await store(emulators, rows)
    const looked: [string, Looked][] = []
    for (const work of WORKS) {
      const before = sim.calls().length
      const child = fork(new URL('./scale-process.ts', import.meta.url), [work], {
        env: environment(emulators, config),
        // A table of 10,000 rows is to be drawn, not to be read.
        stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
      })
      const ended = once(child, 'exit').then(([code]) => {
        throw new Error(`${work} ended with ${code} and said nothing`)
      })
      const [result] = await Promise.race([once(child, 'message'), ended])
      ended.catch(() => {}) // It has said what it had to say.
      if (sim.calls().length >= REMEMBERED) throw new Error(`${work}: more requests than can be counted`)
      looked.push([work, { ...(result as Omit<Looked, 'calls'>), calls: sim.calls().length - before }])
    }
    return looked
  } finally {
    await opened.close()
  }
}

async function store({ endpoints, tables }: Emulators, rows: readonly Row[]): Promise<void> {
  const dynamodb = new DynamoDBClient({ endpoint: endpoints.dynamodb, region: REGION, credentials })
  const client = DynamoDBDocumentClient.from(dynamodb, { marshallOptions: { removeUndefinedValues: true } })
  const claims = rows.flatMap(({ uid, place }) =>
    place
      ? [{ partition: vmidPartition(place.cluster), sort: String(place.vmid), owner: uid, claimedAt: 0 }]
      : [],
  )
  for (const [table, items] of [
    [tables.proxies, rows],
    [tables.claims, claims],
  ] as const) {
    for (let first = 0; first < items.length; first += 25) {
      const requests = items.slice(first, first + 25).map((Item) => ({ PutRequest: { Item } }))
      await client.send(new BatchWriteCommand({ RequestItems: { [table]: requests } }))
    }
  }
  dynamodb.destroy()
}

function environment({ endpoints, tables, queues, topicArn }: Emulators, config: string) {
  return {
    EGRESS_CONFIG: config,
    EGRESS_PROXIES_TABLE: tables.proxies,
    EGRESS_CLAIMS_TABLE: tables.claims,
    EGRESS_CREATE_QUEUE_URL: queues.create.url,
    EGRESS_DELETE_QUEUE_URL: queues.delete.url,
    EGRESS_CREATE_DLQ_URL: queues.create.deadLetters.url,
    EGRESS_DELETE_DLQ_URL: queues.delete.deadLetters.url,
    EGRESS_TOPIC_ARN: topicArn,
    EGRESS_LOG_LEVEL: 'silent',
    AWS_REGION: REGION,
    AWS_ACCESS_KEY_ID: credentials.accessKeyId,
    AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey,
    AWS_ENDPOINT_URL_DYNAMODB: endpoints.dynamodb,
    AWS_ENDPOINT_URL_SQS: endpoints.sqs,
    AWS_ENDPOINT_URL_SNS: endpoints.sns,
  }
}
