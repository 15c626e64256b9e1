import { readFileSync, rmSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  DeleteParameterCommand,
  GetParameterCommand,
  ParameterNotFound,
  PutParameterCommand,
  type SSMClient,
} from '@aws-sdk/client-ssm'
import type { Source } from '../lib/secrets.ts'
import { writeAtomically } from '../local/write-atomically.ts'
import { Unmet } from './usage.ts'

/** Writes where lib/secrets.ts reads. The functions cannot: only a person has the rights. */
export type TokenStore = {
  /**
   * Writes it, and reads it back: `unread` says why that was not allowed, for who may write need not be one who may read.
   * @throws {Unmet} without a word of the value, also when another one is read back
   */
  write(source: Source, value: string): Promise<{ unread?: string }>
  /** What is not there is no error. */
  remove(source: Source): Promise<void>
}

/** A read may come to where a write has not come yet. */
const READS = 6
const READ_AGAIN_MS = 500

export function createTokenStore(
  ssm: () => SSMClient,
  kmsKey?: string,
  wait: (ms: number) => Promise<unknown> = sleep,
): TokenStore {
  /** What the functions will read, and which version of it. Of one that is not there yet: nothing, version 0. */
  async function stands(name: string): Promise<{ value?: string | undefined; version: number }> {
    try {
      const { Parameter: parameter } = await ssm().send(
        new GetParameterCommand({ Name: name, WithDecryption: true }),
      )
      return { value: parameter?.Value, version: parameter?.Version ?? 0 }
    } catch (error) {
      if (error instanceof ParameterNotFound) return { version: 0 }
      throw error
    }
  }

  async function readBack(source: { ssm: string }, value: string, written: number): Promise<void> {
    for (let read = 1; ; read += 1) {
      const found = await stands(source.ssm)
      if (found.version >= written && found.value === value) return
      if (found.version > written)
        throw new Unmet(
          `${sourceName(source)} was stored, and written again by somebody else: it holds another value now`,
        )
      if (found.version === written)
        throw new Unmet(`${sourceName(source)} was stored, and reads as another value: store it once more`)
      if (read === READS)
        throw new Unmet(`${sourceName(source)} was stored, and still reads as before: store it once more`)
      await wait(READ_AGAIN_MS)
    }
  }

  return {
    async write(source, value) {
      if ('file' in source) {
        const text = `${value}\n`
        await said(source, () => writeAtomically(source.file, text))
        if (readFileSync(source.file, 'utf8') !== text)
          throw new Unmet(`${sourceName(source)} was stored, and reads as another value: store it once more`)
        return {}
      }
      const { Version: version = 1 } = await said(source, () =>
        ssm().send(
          new PutParameterCommand({
            Name: source.ssm,
            Value: value,
            Type: 'SecureString',
            Overwrite: true,
            ...(kmsKey === undefined ? {} : { KeyId: kmsKey }),
          }),
        ),
      )
      try {
        await readBack(source, value, version)
        return {}
      } catch (cause) {
        if (cause instanceof Unmet) throw cause
        const why = nameOf(cause)
        if (why === 'AccessDeniedException') return { unread: `not read back (${why}): ssm:GetParameter?` }
        throw new Unmet(`${sourceName(source)} was stored, and could not be read back (${why})`)
      }
    },
    async remove(source) {
      if ('file' in source) return said(source, () => rmSync(source.file, { force: true }))
      await said(source, async () => {
        try {
          await ssm().send(new DeleteParameterCommand({ Name: source.ssm }))
        } catch (error) {
          if (!(error instanceof ParameterNotFound)) throw error
        }
      })
    },
  }
}

export const sourceName = (source: Source) => ('file' in source ? source.file : `parameter ${source.ssm}`)

/** An answer of AWS may quote what it refuses, so only its name goes on. */
async function said<T>(source: Source, act: () => T | Promise<T>): Promise<T> {
  try {
    return await act()
  } catch (cause) {
    const why = nameOf(cause)
    throw new Unmet(`${sourceName(source)} could not be written (${why}): nothing was changed there`)
  }
}

function nameOf(cause: unknown): string {
  if (!(cause instanceof Error)) return typeof cause
  if ('code' in cause) return String(cause.code)
  // The SDK's one complaint that has no name of its own.
  return cause.message === 'Region is missing' ? 'no region: AWS_REGION?' : cause.name
}
