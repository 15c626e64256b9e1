import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { GetParameterCommand, ParameterNotFound, SSMClient } from '@aws-sdk/client-ssm'
import { mockClient } from 'aws-sdk-client-mock'
import 'aws-sdk-client-mock-vitest/extend'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { Failure } from '../../lib/failure.ts'
import { createSecrets } from '../../lib/secrets.ts'
import { NOW } from './a-row.ts'

const CANARY = 'correct-horse-battery-staple'
const ssm = mockClient(SSMClient)
let now = NOW
let folder: string

const open = (parameters: { ssm: true } | { file: string } = { ssm: true }) =>
  createSecrets({ ssm: () => new SSMClient({ region: 'x' }), parameters, now: () => now })
const file = (name: string, text: string) => {
  const path = join(folder, name)
  writeFileSync(path, text)
  return path
}

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'egress-secrets-'))
})
afterAll(() => rmSync(folder, { recursive: true }))
beforeEach(() => {
  ssm.reset()
  now = NOW
})

/** Everything an error could show: its words, its cause, its stack. */
async function failureOf(reading: Promise<unknown>): Promise<Failure> {
  const error: unknown = await reading.catch((thrown: unknown) => thrown)
  if (!(error instanceof Failure)) throw new Error(`expected a failure, got ${String(error)}`)
  expect(`${error.stack} ${String(error.cause)} ${JSON.stringify(error)}`).not.toContain(CANARY)
  return error
}

describe('secrets in AWS Systems Manager', () => {
  it('are read decrypted and trimmed', async () => {
    ssm.on(GetParameterCommand).resolves({ Parameter: { Value: ` ${CANARY}\n` } })
    expect(await open().read({ ssm: '/token' })).toBe(CANARY)
    expect(ssm).toHaveReceivedCommandExactlyOnceWith(GetParameterCommand, {
      Name: '/token',
      WithDecryption: true,
    })
  })

  it('are believed for a minute, also when they are not there', async () => {
    const secrets = open()
    ssm
      .on(GetParameterCommand)
      .resolvesOnce({ Parameter: { Value: 'one' } })
      .resolves({ Parameter: { Value: 'two' } })
    expect([await secrets.read({ ssm: '/t' }), await secrets.read({ ssm: '/t' })]).toEqual(['one', 'one'])
    now += 60_000
    expect(await secrets.read({ ssm: '/t' })).toBe('two')
    ssm.on(GetParameterCommand).rejects(new ParameterNotFound({ message: 'no', $metadata: {} }))
    expect(await secrets.read({ ssm: '/none' })).toBeUndefined()
    const calls = ssm.commandCalls(GetParameterCommand).length
    expect(await secrets.read({ ssm: '/none' })).toBeUndefined()
    expect(ssm).toHaveReceivedCommandTimes(GetParameterCommand, calls)
  })

  // Report: Caprox-eu/Proxmox-Kubernetes-Engine#27
  it('are asked for anew when a fresh one is wanted, which is then believed', async () => {
    const secrets = open()
    ssm
      .on(GetParameterCommand)
      .resolvesOnce({ Parameter: { Value: 'one' } })
      .resolves({ Parameter: { Value: 'two' } })
    await secrets.read({ ssm: '/t' })
    expect(await secrets.read({ ssm: '/t' }, { fresh: true })).toBe('two')
    expect(await secrets.read({ ssm: '/t' })).toBe('two')
    expect(ssm).toHaveReceivedCommandTimes(GetParameterCommand, 2)
  })

  it('that cannot be read are a transient failure, which is not remembered', async () => {
    const secrets = open()
    const throttled = Object.assign(new Error(`too many calls for ${CANARY}`), {
      name: 'ThrottlingException',
    })
    ssm
      .on(GetParameterCommand)
      .rejectsOnce(throttled)
      .resolves({ Parameter: { Value: 'one' } })
    const failure = await failureOf(secrets.read({ ssm: '/t' }))
    expect(failure).toMatchObject({
      code: 'Unauthorized',
      class: 'transient',
      message: 'cannot read the secret in parameter /t (ThrottlingException)',
    })
    expect(await secrets.read({ ssm: '/t' })).toBe('one')
  })

  it('never load the client of an installation on files', async () => {
    const secrets = createSecrets({
      ssm: () => {
        throw new Error('loaded')
      },
      parameters: { file: file('p.yml', 'a: b') },
    })
    expect(await secrets.parameter('a')).toBe('b')
  })
})

describe('secrets in files', () => {
  it('are read, trimmed, and not there when the file is not', async () => {
    expect(await open().read({ file: file('token', `${CANARY}\n`) })).toBe(CANARY)
    expect(await open().read({ file: join(folder, 'nowhere') })).toBeUndefined()
  })

  it('that cannot be read are a transient failure that names the file', async () => {
    const failure = await failureOf(open().read({ file: folder }))
    expect(failure).toMatchObject({
      code: 'Unauthorized',
      class: 'transient',
      message: `cannot read the secret in file ${folder} (Error)`,
    })
  })
})

describe('parameters', () => {
  it('are parameters of Systems Manager under their own name', async () => {
    ssm.on(GetParameterCommand, { Name: '/ci/password' }).resolves({ Parameter: { Value: CANARY } })
    expect(await open({ ssm: true }).parameter('/ci/password')).toBe(CANARY)
  })

  it('are the entries of one YAML file, numbers too', async () => {
    const secrets = open({ file: file('parameters.yml', `/ci/password: ${CANARY}\npin: 1234\n`) })
    expect(await secrets.parameter('/ci/password')).toBe(CANARY)
    expect(await secrets.parameter('pin')).toBe('1234')
    for (const name of ['none', 'constructor', '__proto__'])
      expect(await secrets.parameter(name)).toBeUndefined()
  })

  it.each([
    ['no file', undefined],
    ['an empty file', ''],
    ['a file that is one text', 'just text'],
  ])('are none in %s', async (_, text) => {
    const path = text === undefined ? join(folder, 'nowhere') : file('odd.yml', text)
    expect(await open({ file: path }).parameter('a')).toBeUndefined()
  })

  it('in a file that is no YAML are a failure that shows nothing of it', async () => {
    const path = file('broken.yml', `/ci/password: ${CANARY}: ${CANARY}\n  - [${CANARY}`)
    const failure = await failureOf(open({ file: path }).parameter('/ci/password'))
    expect(failure).toMatchObject({ class: 'transient', message: expect.stringContaining(path) })
  })
})
