import { join, resolve } from 'node:path'
import { type Config, ConfigError, loadConfig } from '../lib/config.ts'
import { REGION } from './account.ts'
import { startEmulators } from './emulators.ts'
import { HOST_SEEN_BY_GUESTS } from './host-seen-by-guests.ts'
import { type LabOptions, startLab } from './lab.ts'
import { lockFolder } from './lock.ts'
import { openLogFile } from './log-file.ts'
import { createOpened } from './opened.ts'
import { servePage } from './page-server.ts'
import { onItsPort, openPorts } from './ports.ts'
import { type Run, removeRun, writeRun } from './run-file.ts'
import { runFunctions } from './run-functions.ts'

export type UpOptions = {
  /** Where all data lives. */
  folder: string
  /** A configuration of real clusters, or how to simulate one. */
  clusters: { config: string } | { lab: LabOptions }
  logLevel?: string
  /** Of the shell's environment, what the functions are given as well. */
  telemetry?: Readonly<Record<string, string>>
}

export type Up = {
  run: Run
  config: Config
  /** Lets batches in flight finish, then closes everything in the order opposite to its start. */
  close(): Promise<void>
}

/**
 * Runs the whole installation in this process: emulated queues, topic and tables, the real handlers in threads, and, unless
 * a configuration names real clusters, a simulated one.
 * @throws {FolderInUse} {ConfigError}
 */
export async function startUp({ folder: given, clusters, logLevel, telemetry = {} }: UpOptions): Promise<Up> {
  const folder = resolve(given)
  const opened = createOpened()
  try {
    opened.add(lockFolder(folder))
    const log = opened.add(openLogFile(join(folder, 'up.log')))
    const ports = openPorts(folder)
    const page = opened.add(await onItsPort(ports, 'page', (port) => servePage({ port })))
    const hasRealGuests = 'lab' in clusters && clusters.lab.guests === 'qemu'
    const pageUrl = `http://${hasRealGuests ? HOST_SEEN_BY_GUESTS : '127.0.0.1'}:${page.port}/`
    const onConsole = (line: object) => log.note({ level: 'debug', console: true, ...line })
    const lab =
      'lab' in clusters
        ? opened.add(await startLab({ ...clusters.lab, folder, ports, pageUrl, onConsole }))
        : undefined

    const configPath = lab?.config ?? resolve('config' in clusters ? clusters.config : '')
    const config = loadConfig(configPath)
    refuseSecretsOutOfReach(config, configPath)
    const { functionTimeoutSeconds } = config.timings
    const emulators = opened.add(await startEmulators({ folder, ports, functionTimeoutSeconds }))
    const timeoutMs = functionTimeoutSeconds * 1000
    opened.add(runFunctions({ emulators, config: configPath, timeoutMs, logLevel, log, telemetry }))

    const { close: _, ...where } = emulators
    const sim = lab && { sim: { admin: lab.admin, endpoints: lab.endpoints } }
    const run: Run = {
      pid: process.pid,
      region: REGION,
      config: configPath,
      ...where,
      page: pageUrl,
      ...sim,
    }
    writeRun(folder, run)
    opened.add({ close: () => removeRun(folder) })
    return { run, config, close: opened.close }
  } catch (error) {
    await opened.close()
    throw error
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
