import { readFile } from 'node:fs/promises'
import { GetParameterCommand, ParameterNotFound, type SSMClient } from '@aws-sdk/client-ssm'
import { parse } from 'yaml'
import { Failure } from './failure.ts'

/** How long a value is believed without asking again. A refused one is asked for anew at once. */
export const CACHE_MS = 60_000

export type Source = { ssm: string } | { file: string }

export type Secrets = {
  /** The value, trimmed; undefined when there is none. `fresh` skips the cache. */
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
    const value = 'file' in source ? await fromFile(source.file) : await fromSsm(source.ssm)
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
      throw unreadable(`parameter ${name}`, cause)
    }
  }

  return {
    read,
    async parameter(name) {
      if (!('file' in parameters)) return read({ ssm: name })
      const text = await read({ file: parameters.file })
      const value = text === undefined ? undefined : entriesOf(text, parameters.file).get(name)
      return value === undefined ? undefined : String(value)
    },
  }
}

async function fromFile(path: string): Promise<string | undefined> {
  try {
    return (await readFile(path, 'utf8')).trim()
  } catch (cause) {
    if (cause instanceof Error && 'code' in cause && cause.code === 'ENOENT') return undefined
    throw unreadable(`file ${path}`, cause)
  }
}

function entriesOf(text: string, path: string): Map<string, unknown> {
  try {
    const values: unknown = parse(text)
    return new Map(typeof values === 'object' && values !== null ? Object.entries(values) : [])
  } catch (cause) {
    // The parser's own words quote the line that it stumbled over.
    throw unreadable(`file ${path}`, cause)
  }
}

function unreadable(what: string, cause: unknown): Failure {
  const why = cause instanceof Error ? cause.name : typeof cause
  return new Failure('Unauthorized', `cannot read the secret in ${what} (${why})`, { class: 'transient' })
}
