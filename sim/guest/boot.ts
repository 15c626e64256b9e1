import { gunzipSync } from 'node:zlib'
import { type Instance, readInstance } from './instance.ts'
import { bootSystem, type Machine, type Running } from './machine.ts'
import { isMap, type Yaml } from './merge.ts'
import { type Card, configureCard } from './network.ts'
import { findSeed } from './seed.ts'
import { type Inside, runScript } from './shell.ts'

/** A machine that has come up: its name, its card, and what runs on it. */
export type Booted = { hostname: string; card: Card; running: Running }

/**
 * Boots a machine with these discs in its drives, all at once: cloud-init's stages in their order, on a machine whose files
 * and packages stay from boot to boot. What belongs to an instance is done once for each instance-id.
 */
export function boot(
  machine: Machine,
  options: {
    discs: Uint8Array[]
    mac: string
    hasAgentPort: boolean
    /** Packages can be fetched. */
    hasMirror?: boolean
    log: (line: string) => void
  },
): Booted {
  const { log } = options
  const system = bootSystem(machine, options)
  const inside: Inside = { machine, system, log }
  system.startEnabled()
  const seed = findSeed(options.discs, log)
  if (!seed) return { hostname: 'localhost', card: { name: 'eth0', isUp: true }, running: system.running }

  const instance = readInstance(seed, log)
  const isNew = machine.instanceId !== instance.id
  log(`cloud-init: instance-id ${instance.id}${isNew ? '' : ', not new: nothing to set up'}`)
  machine.instanceId = instance.id
  const card = configureCard(options.mac, instance.network, log)
  for (const { name, text } of instance.boothooks) runScript(withoutFirstLine(text), name, inside)
  runCommands(instance.config.bootcmd, 'bootcmd', inside)
  if (isNew) setUp(instance, inside)
  else runFolder(perBoot, inside)
  return { hostname: instance.hostname, card, running: system.running }
}

/** Where cloud-init puts the scripts of vendor-data, and where it looks for some to run at each boot. */
const vendorFolder = '/var/lib/cloud/instance/scripts/vendor/'
const perBoot = '/var/lib/cloud/scripts/per-boot/'

/** Runs what lies in a folder, by name. Source: cloud-init 22.4, cc_scripts_per_boot.py, subp.py runparts. */
function runFolder(folder: string, inside: Inside): void {
  const paths = [...inside.machine.files.keys()].filter((path) => path.startsWith(folder)).sort()
  for (const path of paths)
    report(path, runScript(inside.machine.files.get(path)?.text ?? '', path, inside), inside)
}

function setUp({ config, vendorScripts, userScripts }: Instance, inside: Inside): void {
  const { log, system } = inside
  const files = Array.isArray(config.write_files) ? config.write_files : []
  const isDeferred = (file: Yaml) => isMap(file) && /^(?:true|yes|on|1)$/i.test(String(file.defer ?? false))
  for (const file of files) if (!isDeferred(file)) writeFile(file, inside)
  for (const entry of Array.isArray(config.packages) ? config.packages : []) {
    // A package may be asked for with its version.
    const name = Array.isArray(entry) ? entry[0] : entry
    if (typeof name === 'string') system.install(name)
    else log('cloud-init: packages: an entry is no name')
  }
  for (const file of files) if (isDeferred(file)) writeFile(file, inside)
  for (const { name, text } of vendorScripts) {
    inside.machine.files.set(`${vendorFolder}${name}`, { text, mode: 0o700 })
    report(name, runScript(text, `${vendorFolder}${name}`, inside), inside)
  }
  runFolder(perBoot, inside)
  for (const { name, text } of userScripts) report(name, runScript(text, name, inside), inside)
  runCommands(config.runcmd, 'runcmd', inside)
  log('cloud-init: finished')
}

/** A list of command lines, or of lists of arguments. It runs as one script: without `set -e`, a failure stops nothing. */
function runCommands(value: Yaml | undefined, name: string, inside: Inside): void {
  if (value === undefined || value === null) return
  if (!Array.isArray(value)) {
    inside.log(`cloud-init: ${name} is not a list, nothing of it is run`)
    return
  }
  const lines = value
    .filter((line) => line !== null)
    .map((line) => (Array.isArray(line) ? line.map(quoted).join(' ') : String(line)))
  report(name, runScript(`#!/bin/sh\n${lines.join('\n')}\n`, name, inside), inside)
}

function quoted(word: Yaml): string {
  return `'${String(word).replaceAll("'", `'\\''`)}'`
}

function report(name: string, status: number, { log }: Inside): void {
  if (status !== 0) log(`cloud-init: ${name} failed with status ${status}`)
}

function withoutFirstLine(text: string): string {
  return text.slice(text.indexOf('\n') + 1)
}

function writeFile(file: Yaml, { machine, log }: Inside): void {
  if (!isMap(file) || typeof file.path !== 'string') {
    log('cloud-init: write_files: an entry has no path, skipped')
    return
  }
  const content = decodeContent(String(file.content ?? ''), String(file.encoding ?? 'text/plain'))
  if (content === undefined) {
    log(`cloud-init: write_files: the content of ${file.path} is not ${file.encoding}`)
    return
  }
  const before = file.append === true ? (machine.files.get(file.path)?.text ?? '') : ''
  machine.files.set(file.path, { text: before + content, mode: readMode(file.permissions) })
}

/** Permissions are octal when written as text; a number is taken as it is. */
function readMode(value: Yaml | undefined): number {
  if (typeof value === 'number') return value
  const mode = Number.parseInt(String(value ?? '0644'), 8)
  return Number.isNaN(mode) ? 0o644 : mode
}

/** Source: cloud-init 22.4, cc_write_files.py, with its spellings. */
function decodeContent(content: string, encoding: string): string | undefined {
  const steps = encoding.toLowerCase().trim()
  const isBase64 = /(?:^|\+)(?:b64|base64)$/.test(steps)
  const isPacked = /^(?:gz|gzip)(?:\+|$)/.test(steps)
  const bytes = Buffer.from(content, isBase64 ? 'base64' : 'utf8')
  if (!isPacked) return bytes.toString('utf8')
  try {
    return gunzipSync(bytes).toString('utf8')
  } catch {
    return undefined
  }
}
