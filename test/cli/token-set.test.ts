import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import {
  DeleteParameterCommand,
  ParameterNotFound,
  PutParameterCommand,
  SSMClient,
} from '@aws-sdk/client-ssm'
import { mockClient } from 'aws-sdk-client-mock'
import 'aws-sdk-client-mock-vitest/extend'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { readSecret } from '../../cli/read-secret.ts'
import { createTokenStore } from '../../cli/token-store.ts'
import { tokenConfig } from './a-token-config.ts'
import { egress } from './egress.ts'

const SECRET = 'correct-horse-battery-staple'
const TOKEN = `egress@pve!ctl=${SECRET}`
let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'egress-token-'))
  writeFileSync(join(folder, 'lab.yml'), tokenConfig())
})
afterEach(() => rmSync(folder, { recursive: true }))

const set = (input: string, ...args: string[]) =>
  egress(['token', 'set', '--cluster', 'lab', '--config', join(folder, 'lab.yml'), ...args], { input })

describe('egress token set', () => {
  it('stores what is piped in where the configuration says, for nobody else to read', async () => {
    const { code, out, err } = await set(`${TOKEN}\n`, '--no-verify', '--second')
    expect({ code, err }).toEqual({ code: 0, err: '' })
    expect(out).toBe(`stored egress@pve!ctl in ${join(folder, 'next-token')}\n`)
    expect(readFileSync(join(folder, 'next-token'), 'utf8')).toBe(`${TOKEN}\n`)
    expect(statSync(join(folder, 'next-token')).mode & 0o777).toBe(0o600)
    expect(readdirSync(folder).sort()).toEqual(['lab.yml', 'next-token'])
  })

  it.each(['', SECRET, `egress@pve=${SECRET}`, `${TOKEN}\n${TOKEN}`])(
    'refuses what is no token, says what is wanted and never what it got (%#)',
    async (input) => {
      const { code, out, err } = await set(input, '--no-verify')
      expect(code).toBe(2)
      expect(err).toContain('wanted one line user@realm!name=secret')
      expect(out + err).not.toContain(SECRET)
      expect(readdirSync(folder)).toEqual(['lab.yml'])
    },
  )

  it('stores nothing that the cluster could not be asked about', async () => {
    const closed = {
      endpoints: [{ url: 'https://127.0.0.1:1', fingerprint: Array(32).fill('AA').join(':') }],
    }
    writeFileSync(join(folder, 'lab.yml'), tokenConfig(closed))
    const { code, out, err } = await set(TOKEN)
    expect(code).toBe(1)
    expect(err).toContain('not stored, as the cluster could not be asked')
    expect(out + err).not.toContain(SECRET)
    expect(readdirSync(folder)).toEqual(['lab.yml'])
  })
})

describe('the store on AWS', () => {
  const ssm = mockClient(SSMClient)
  const store = createTokenStore(() => new SSMClient({ region: 'x' }))
  beforeEach(() => ssm.reset())

  it('writes a SecureString over the one before', async () => {
    ssm.on(PutParameterCommand).resolves({})
    await store.write({ ssm: '/t' }, TOKEN)
    const asked = { Name: '/t', Value: TOKEN, Type: 'SecureString', Overwrite: true } as const
    expect(ssm).toHaveReceivedCommandExactlyOnceWith(PutParameterCommand, asked)
  })

  it('removes one that is gone already', async () => {
    ssm.on(DeleteParameterCommand).rejects(new ParameterNotFound({ message: 'no', $metadata: {} }))
    await expect(store.remove({ ssm: '/t' })).resolves.toBeUndefined()
  })

  it('never repeats what AWS says of a value', async () => {
    const quoting = Object.assign(new Error(`Value '${TOKEN}' failed`), { name: 'ValidationException' })
    ssm.on(PutParameterCommand).rejects(quoting)
    const error: Error = await store.write({ ssm: '/t' }, TOKEN).catch((thrown) => thrown)
    expect(error.message).toBe(
      'parameter /t could not be written (ValidationException): nothing was changed there',
    )
    expect(`${error.stack} ${String(error.cause)}`).not.toContain(SECRET)
  })
})

describe('a secret that is typed', () => {
  const terminal = (more: object) => Object.assign(new PassThrough(), { isTTY: true, ...more })

  it('is not shown, and may be corrected', async () => {
    const modes: boolean[] = []
    const input = terminal({ setRawMode: (raw: boolean) => modes.push(raw) })
    const screen = new PassThrough()
    const read = readSecret(input, 'token of lab', screen)
    input.write(`x\u007f${TOKEN}\r`)
    expect(await read).toBe(TOKEN)
    expect(modes).toEqual([true, false])
    expect(String(screen.read())).toBe('token of lab (is not shown): \n')
  })

  it('is refused on a terminal that would show it', async () => {
    await expect(readSecret(terminal({}), 'token', new PassThrough())).rejects.toThrow('would show')
  })
})
