import { join, resolve } from 'node:path'
import { SQSClient } from '@aws-sdk/client-sqs'
import { type Config, ConfigError, loadConfig } from '../lib/config.ts'
import { ACCOUNT, credentials, REGION } from './account.ts'
import { type Emulators, startEmulators } from './emulators.ts'
import { type Lab, type LabOptions, startLab } from './lab.ts'
import { lockFolder } from './lock.ts'
import { openLogFile } from './log-file.ts'
import { mapQueue } from './mapping.ts'
import { servePage } from './page-server.ts'
import { onItsPort, openPorts } from './ports.ts'
import type { SourceId } from './resources.ts'
import { queueFunctions, scheduledFunctions } from './roster.ts'
import { type Run, removeRun, writeRun } from './run-file.ts'
import { createSandbox } from './sandbox.ts'
import { createSandboxPool } from './sandbox-pool.ts'
import { runSchedule } from './schedule.ts'

export type UpOptions = {
  /** Where all data lives. */
  folder: string
  /** A configuration of real clusters, or how to simulate one. */
  clusters: { config: string } | { lab: LabOptions }
  logLevel?: string
}

export type Up = {
  run: Run
  config: Config
  /** Lets batches in flight finish, then closes everything in the order opposite to its start. */
  stop(): Promise<void>
}

/**
 * Runs the whole installation in this process: emulated queues, topic and tables, the real handlers in threads, and, unless
 * a configuration names real clusters, a simulated one.
 * @throws {FolderInUse} {ConfigError}
 */
export async function startUp(options: UpOptions): Promise<Up> {
  const folder = resolve(options.folder)
  const opened: (() => unknown)[] = []
  const stop = async () => {
    for (const close of opened.reverse()) await close()
    opened.length = 0
  }
  try {
    const lock = lockFolder(folder)
    opened.push(() => lock.release())
    const log = openLogFile(join(folder, 'up.log'))
    opened.push(() => log.close())
    const ports = openPorts(folder)

    const page = await onItsPort(ports, 'page', (port) => servePage({ port }))
    opened.push(() => page.close())
    const pageUrl = `http://127.0.0.1:${page.port}/`
    let lab: Lab | undefined
    if ('lab' in options.clusters) {
      const onConsole = (line: object) => log.note({ level: 20, console: true, ...line })
      lab = await startLab({ ...options.clusters.lab, folder, ports, pageUrl, onConsole })
      opened.push(lab.close)
    }
    const configPath = 'config' in options.clusters ? resolve(options.clusters.config) : lab?.config
    if (configPath === undefined) throw new Error('neither a configuration nor a lab')
    const config = loadConfig(configPath)
    refuseSecretsOutOfReach(config, configPath)

    const { functionTimeoutSeconds } = config.timings
    const emulators = await startEmulators({ folder, ports, functionTimeoutSeconds })
    opened.push(() => emulators.close())
    const env = environment(configPath, emulators, options.logLevel)
    const poolOf = (name: string, handler: URL) =>
      createSandboxPool(() =>
        createSandbox({
          handler: handler.href,
          functionName: `egress-${name}`,
          functionArn: `arn:aws:lambda:${REGION}:${ACCOUNT}:function:egress-${name}`,
          env: { ...env, AWS_LAMBDA_FUNCTION_NAME: `egress-${name}` },
          timeoutMs: functionTimeoutSeconds * 1000,
          onLine: log.line,
        }),
      )
    const reporter = (name: string) => (problem: { what: string; error: unknown }) =>
      log.note({ level: 40, function: name, msg: problem.what, error: String(problem.error) })

    const client = new SQSClient({ endpoint: emulators.endpoints.sqs, region: REGION, credentials })
    opened.push(() => client.destroy())
    const feeds: { stop(): Promise<void> }[] = []
    for (const [name, { handler, maximumConcurrency }] of Object.entries(queueFunctions)) {
      const pool = poolOf(name, handler)
      opened.push(() => pool.close())
      // Object.entries forgets that the keys are the table's.
      const queue = emulators.queues[name as SourceId]
      const { invoke } = pool
      feeds.push(mapQueue({ client, queue, maximumConcurrency, invoke, onProblem: reporter(name) }))
    }
    for (const { name, handler, rateSeconds } of scheduledFunctions()) {
      const pool = poolOf(name, handler)
      opened.push(() => pool.close())
      feeds.push(runSchedule({ name, rateSeconds, invoke: pool.invoke, onProblem: reporter(name) }))
    }
    opened.push(() => Promise.all(feeds.map((feed) => feed.stop())))

    const { close: _, ...where } = emulators
    const run: Run = {
      pid: process.pid,
      region: REGION,
      config: configPath,
      ...where,
      page: pageUrl,
      ...(lab ? { sim: { admin: lab.admin, endpoints: lab.endpoints } } : {}),
    }
    writeRun(folder, run)
    opened.push(() => removeRun(folder))
    return { run, config, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

/** Everything a function sees; nothing of the surrounding shell. */
function environment(config: string, emulators: Emulators, logLevel = 'info'): Record<string, string> {
  const { endpoints, tables, queues, topicArn } = emulators
  return {
    EGRESS_CONFIG: config,
    EGRESS_PROXIES_TABLE: tables.proxies,
    EGRESS_CLAIMS_TABLE: tables.claims,
    EGRESS_CREATE_QUEUE_URL: queues.create.url,
    EGRESS_DELETE_QUEUE_URL: queues.delete.url,
    EGRESS_CREATE_DLQ_URL: queues.create.deadLetters.url,
    EGRESS_DELETE_DLQ_URL: queues.delete.deadLetters.url,
    EGRESS_TOPIC_ARN: topicArn,
    EGRESS_LOG_LEVEL: logLevel,
    AWS_REGION: REGION,
    AWS_ACCESS_KEY_ID: credentials.accessKeyId,
    AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey,
    AWS_ENDPOINT_URL_DYNAMODB: endpoints.dynamodb,
    AWS_ENDPOINT_URL_SQS: endpoints.sqs,
    AWS_ENDPOINT_URL_SNS: endpoints.sns,
  }
}

/** One machine has no parameter store, and no function finds out half-way. @throws {ConfigError} */
function refuseSecretsOutOfReach(config: Config, path: string): void {
  const complaints = Object.entries(config.clusters)
    .filter(([, { token }]) => [token].flat().some((source) => 'ssm' in source))
    .map(([name]) => ({
      path: `clusters.${name}.token`,
      got: 'a parameter of AWS Systems Manager',
      wanted: '{ file: <path> }: egress up works without an account',
    }))
  if (complaints.length > 0) throw new ConfigError(path, complaints)
}
