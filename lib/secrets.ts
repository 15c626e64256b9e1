import { GetParameterCommand, ParameterNotFound, type SSMClient } from '@aws-sdk/client-ssm'
import { Failure } from './failure.ts'
import { readText, UnreadableFile } from './read-text.ts'
import { readYaml } from './read-yaml.ts'

/** How long a value is believed without asking again. A refused one is asked for anew at once. */
export const CACHE_MS = 60_000

export type Source = { ssm: string } | { file: string }

export type Secrets = {
  /** The value, trimmed; undefined when there is none, or nothing but white space. `fresh` skips the cache. */
  read(source: Source, options?: { fresh?: boolean }): Promise<string | undefined>
  /** A named parameter of the configured store. */
  parameter(name: string): Promise<string | undefined>
}

/**
 * Secrets from AWS Systems Manager (SecureString) or files, cached briefly. Their values appear in no error.
 * @throws {Failure} Unauthorized, transient, when the store itself cannot be read
 */
export function createSecrets(options: {
  /** Made at the first use: an installation on files never loads it. */
  ssm: () => SSMClient
  parameters: { ssm: true } | { file: string }
  now?: () => number
}): Secrets {
  const { ssm, parameters, now = Date.now } = options
  const cache = new Map<string, { value: string | undefined; readAt: number }>()

  async function read(source: Source, { fresh = false } = {}): Promise<string | undefined> {
    const key = JSON.stringify(source)
    const known = cache.get(key)
    if (known && !fresh && now() - known.readAt < CACHE_MS) return known.value
    const value = ('file' in source ? fromFile(source.file) : await fromSsm(source.ssm)) || undefined
    cache.set(key, { value, readAt: now() })
    return value
  }

  async function fromSsm(name: string): Promise<string | undefined> {
    try {
      const { Parameter: parameter } = await ssm().send(
        new GetParameterCommand({ Name: name, WithDecryption: true }),
      )
      return parameter?.Value?.trim()
    } catch (cause) {
      if (cause instanceof ParameterNotFound) return undefined
      throw unreadable(`parameter ${name}`, nameOf(cause))
    }
  }

  return {
    read,
    async parameter(name) {
      if (!('file' in parameters)) return read({ ssm: name })
      const text = await read({ file: parameters.file })
      return text === undefined ? undefined : entryOf(name, text, parameters.file)
    },
  }
}

function fromFile(path: string): string | undefined {
  try {
    return readText(path).trim()
  } catch (error) {
    const cause = error instanceof UnreadableFile ? error.cause : error
    if (cause instanceof Error && 'code' in cause && cause.code === 'ENOENT') return undefined
    throw unreadable(`file ${path}`, nameOf(cause))
  }
}

/** Of a password every letter counts: what was typed is not made a number, a date or nothing of. */
function entryOf(name: string, text: string, path: string): string | undefined {
  const read = readYaml(text, { asTyped: true })
  if ('fault' in read) throw unreadable(`file ${path}`, read.fault)
  const entries = typeof read.document === 'object' && read.document !== null ? read.document : {}
  const value: unknown = Object.hasOwn(entries, name) ? Reflect.get(entries, name) : ''
  if (typeof value !== 'string') throw unreadable(`file ${path}`, `${name} is no text`)
  return value === '' ? undefined : value
}

/** What a store says of a secret may quote it, so only its name goes on. */
const nameOf = (cause: unknown) => (cause instanceof Error ? cause.name : typeof cause)

const unreadable = (what: string, why: string) =>
  new Failure('Unauthorized', `cannot read the secret in ${what} (${why})`, { class: 'transient' })
