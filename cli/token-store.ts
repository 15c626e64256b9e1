import { rmSync } from 'node:fs'
import {
  DeleteParameterCommand,
  ParameterNotFound,
  PutParameterCommand,
  type SSMClient,
} from '@aws-sdk/client-ssm'
import type { Source } from '../lib/secrets.ts'
import { writeAtomically } from '../local/write-atomically.ts'
import { Unmet } from './usage.ts'

/** Writes where lib/secrets.ts reads. The functions cannot: only a person has the rights. */
export type TokenStore = {
  /** @throws {Unmet} without a word of the value */
  write(source: Source, value: string): Promise<void>
  /** What is not there is no error. */
  remove(source: Source): Promise<void>
}

export function createTokenStore(ssm: () => SSMClient, kmsKey?: string): TokenStore {
  return {
    async write(source, value) {
      if ('file' in source) return said(source, () => writeAtomically(source.file, `${value}\n`))
      await said(source, () =>
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
async function said(source: Source, act: () => unknown): Promise<void> {
  try {
    await act()
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
