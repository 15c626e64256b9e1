import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Bundle, createBundler, handlers, shares } from './bundles.ts'
import { importTimes } from './fresh-process.ts'
import { instantConfig } from './instant-config.ts'
import { type Part, TIMED } from './report.ts'
import { median } from './statistics.ts'

const ROUNDS = 20
/** Whole packages, which is more than our bundles take of some. */
const PACKAGES = [
  '@aws-sdk/client-dynamodb',
  '@aws-sdk/lib-dynamodb',
  '@aws-sdk/client-sqs',
  '@aws-sdk/client-sns',
  '@aws-sdk/client-ssm',
  'undici',
  'zod',
  'pino',
  'yaml',
  'ipaddr.js',
  '@middy/core',
]
const PACKAGE_ROUNDS = 7

/** What a function costs before its first record: its bundle, and importing it in a fresh process. */
export const coldStart: Part = {
  name: 'cold-start',
  about: 'KB of the bundles and milliseconds to import them, against an empty handler',
  async run(say) {
    const folder = mkdtempSync(join(tmpdir(), 'egress-bench-'))
    try {
      const bundler = createBundler(folder)
      say('bundles')
      const empty = await bundler.source('empty', 'export const handler = async () => ({})')
      const functions = await Promise.all(handlers().map(bundler.handler))
      const packages = await Promise.all(
        PACKAGES.map((name) =>
          bundler.source(name, `import * as all from '${name}'\nglobalThis.kept = all\n`),
        ),
      )
      const config = join(folder, 'bench.yml')
      writeFileSync(config, instantConfig())
      const env = environment(config)
      const cached = { ...env, NODE_COMPILE_CACHE: join(folder, 'cache') }
      say(`${ROUNDS} fresh processes a bundle`)
      const bundles = [empty, ...functions]
      const times = await inRounds(bundles, ROUNDS, env)
      const cachedTimes = await inRounds(bundles, ROUNDS, cached)
      say(`${PACKAGE_ROUNDS} fresh processes a package`)
      const packageTimes = await inRounds(packages, PACKAGE_ROUNDS, env)
      const emptyMs = msOf(times, empty)
      const [first] = functions
      return {
        sheets: [
          {
            title: 'Bundles, as serverless.yml has them made',
            head: ['', 'KB', 'gzip KB', 'import ms', '/ empty', 'CPU ms', 'CPU with a compile cache'],
            rows: bundles.map((bundle) => [
              bundle.name,
              bundle.bytes / 1024,
              bundle.gzipBytes / 1024,
              msOf(times, bundle),
              msOf(times, bundle) / emptyMs,
              cpuOf(times, bundle),
              cpuOf(cachedTimes, bundle),
            ]),
          },
          {
            title: `What ${first?.name} is made of`,
            head: ['', 'KB'],
            rows: first ? largest(first) : [],
          },
          {
            title: 'Packages, whole and alone',
            head: ['', 'KB', 'import ms, less an empty module'],
            rows: packages.map((bundle) => [
              bundle.name,
              bundle.bytes / 1024,
              msOf(packageTimes, bundle) - emptyMs,
            ]),
          },
        ],
        figures: functions.flatMap((bundle) => [
          { name: `${bundle.name}, bundle`, value: bundle.bytes / 1024, unit: 'KB', noise: 0.005 },
          {
            name: `${bundle.name}, import`,
            value: msOf(times, bundle),
            unit: 'ms',
            noise: TIMED,
          },
          {
            name: `${bundle.name}, import / empty`,
            value: msOf(times, bundle) / emptyMs,
            unit: '',
            noise: TIMED,
          },
          { name: `${bundle.name}, import, CPU`, value: cpuOf(times, bundle), unit: 'ms', noise: TIMED },
        ]),
        notes: [
          `Bundles: median of ${ROUNDS} processes each, in turns, so that what disturbs one disturbs all.`,
          `Packages: median of ${PACKAGE_ROUNDS}; on a busy machine differences of some 20 ms mean nothing.`,
        ],
      }
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  },
}

type Times = ReadonlyMap<Bundle, { ms: number; cpuMs: number }[]>

/** One process for each bundle, then again. */
async function inRounds(
  bundles: readonly Bundle[],
  rounds: number,
  env: Readonly<Record<string, string>>,
): Promise<Times> {
  const times = new Map<Bundle, { ms: number; cpuMs: number }[]>(bundles.map((bundle) => [bundle, []]))
  for (let round = 0; round < rounds; round++) {
    for (const [bundle, list] of times) list.push(await importTimes(bundle.url, env))
  }
  return times
}

const msOf = (times: Times, bundle: Bundle) => median((times.get(bundle) ?? []).map(({ ms }) => ms))
const cpuOf = (times: Times, bundle: Bundle) => median((times.get(bundle) ?? []).map(({ cpuMs }) => cpuMs))

/** The shares above 1 %, packages of one family together. */
function largest(bundle: Bundle): [string, number][] {
  const families = new Map<string, number>()
  for (const [name, bytes] of shares(bundle)) {
    const family = name.startsWith('@smithy/') ? '@smithy/*' : name
    families.set(family, (families.get(family) ?? 0) + bytes)
  }
  return [...families]
    .filter(([, bytes]) => bytes > bundle.bytes / 100)
    .sort(([, a], [, b]) => b - a)
    .map(([name, bytes]) => [name, bytes / 1024])
}

const environment = (config: string) => ({
  EGRESS_CONFIG: config,
  EGRESS_PROXIES_TABLE: 'proxies',
  EGRESS_CLAIMS_TABLE: 'claims',
  EGRESS_CREATE_QUEUE_URL: 'http://127.0.0.1:9/000000000000/create',
  EGRESS_DELETE_QUEUE_URL: 'http://127.0.0.1:9/000000000000/delete',
  EGRESS_CREATE_DLQ_URL: 'http://127.0.0.1:9/000000000000/create-dlq',
  EGRESS_DELETE_DLQ_URL: 'http://127.0.0.1:9/000000000000/delete-dlq',
  EGRESS_TOPIC_ARN: 'arn:aws:sns:us-east-1:000000000000:outcomes',
  AWS_REGION: 'us-east-1',
  // As serverless.yml sets it.
  NODE_OPTIONS: '--enable-source-maps',
})
