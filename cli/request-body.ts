import { randomBytes } from 'node:crypto'
import { ProxyRequested } from '../functions/create/event.ts'
import type { Config } from '../lib/config.ts'
import { readText } from '../lib/read-text.ts'
import { readYaml } from '../lib/read-yaml.ts'
import { parseWith } from '../lib/wanted.ts'
import { checkRequest } from '../lib/wish.ts'
import { refused, UsageError } from './usage.ts'

/** The flags of `egress request` as they came: text, so that a complaint shows what was typed. */
export type RequestFlags = {
  file?: string | undefined
  uid?: string | undefined
  generation?: string | undefined
  name?: string | undefined
  zone?: string | undefined
  image?: string | undefined
  cores?: string | undefined
  memoryMib?: string | undefined
  diskGib?: string | undefined
  port?: string | undefined
  allow?: string[] | undefined
  username?: string | undefined
  passwordParameter?: string | undefined
  userData?: string | undefined
  ttl?: string | undefined
  label?: string[] | undefined
}

/**
 * The event that a file and flags ask for: flags win over the file, a missing uid is made up from the name.
 * @throws {UsageError} with every complaint: field, what came, what was wanted
 */
export function requestBody(flags: RequestFlags, config: Config | undefined): ProxyRequested {
  const document = merge(flags.file === undefined ? {} : readDocument(flags.file), fromFlags(flags))
  document.type ??= 'ProxyRequested'
  document.uid ??= freshUid(document.name)
  const parsed = parseWith(ProxyRequested, document)
  if ('complaints' in parsed) throw refused('this request cannot be sent', parsed.complaints)
  const unmet = config ? checkRequest(parsed.value, config) : []
  if (unmet.length > 0) throw refused('this request cannot be met', unmet)
  return parsed.value
}

type Document = Record<string, unknown>

function fromFlags(flags: RequestFlags): Document {
  const { username, passwordParameter, label } = flags
  const auth =
    username === undefined && passwordParameter === undefined ? undefined : { username, passwordParameter }
  return defined({
    uid: flags.uid,
    generation: number(flags.generation),
    name: flags.name,
    spec: defined({
      zone: flags.zone,
      image: flags.image,
      size: defined({
        cores: number(flags.cores),
        memoryMiB: number(flags.memoryMib),
        diskGiB: number(flags.diskGib),
      }),
      proxy: defined({
        port: number(flags.port),
        // `--allow ''` is how an empty list is typed.
        allow: flags.allow?.filter((range) => range !== ''),
        auth: auth && defined(auth),
      }),
      userData: flags.userData === undefined ? undefined : readInput(flags.userData),
      ttlSeconds: number(flags.ttl),
      labels: label && Object.fromEntries(label.map(pair)),
    }),
  })
}

function readDocument(path: string): Document {
  // YAML's parser reads JSON as well.
  const read = readYaml(readInput(path))
  if ('fault' in read) throw new UsageError(`${path} is neither JSON nor YAML: ${read.fault}`)
  const { document } = read
  if (!isObject(document)) throw new UsageError(`${path}: wanted an object with name and spec`)
  return document
}

/** A file that a flag names, - for standard input. @throws {UnreadableFile} */
export const readInput = (path: string): string => (path === '-' ? readText(0, path) : readText(path))

/** What is no number stays as it was typed, for the complaint to show. */
function number(text: string | undefined): number | string | undefined {
  return text === undefined || text.trim() === '' || Number.isNaN(Number(text)) ? text : Number(text)
}

function pair(text: string): [string, string] {
  const at = text.indexOf('=')
  if (at < 1) throw new UsageError(`--label: got ${JSON.stringify(text)}, wanted key=value`)
  return [text.slice(0, at), text.slice(at + 1)]
}

function freshUid(name: unknown): string {
  const stem = typeof name === 'string' ? name.toLowerCase().replace(/[^a-z0-9-]/g, '') : ''
  return `${(stem || 'proxy').slice(0, 54)}-${randomBytes(4).toString('hex')}`
}

function merge(base: Document, over: Document): Document {
  const result: Document = { ...base }
  for (const [key, value] of Object.entries(over)) {
    const below = result[key]
    result[key] = isObject(below) && isObject(value) ? merge(below, value) : value
  }
  return result
}

/** Without the fields that were not given, and undefined when none was: an empty object would be a wish of its own. */
function defined(fields: Document): Document {
  const entries = Object.entries(fields).filter(
    ([, value]) => value !== undefined && !(isObject(value) && Object.keys(value).length === 0),
  )
  return Object.fromEntries(entries)
}

const isObject = (value: unknown): value is Document =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
