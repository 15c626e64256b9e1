import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { SSMClient } from '@aws-sdk/client-ssm'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { readSecret } from '../../cli/read-secret.ts'
import { createTokenStore } from '../../cli/token-store.ts'
import { serveParameters } from '../infra/parameter-store.ts'
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
  let ssm: Awaited<ReturnType<typeof serveParameters>>
  let client: SSMClient
  beforeEach(async () => {
    ssm = await serveParameters(new Map([['/t', 'before']]))
    client = new SSMClient({
      endpoint: ssm.url,
      region: 'x',
      credentials: { accessKeyId: 'a', secretAccessKey: 'b' },
    })
  })
  afterEach(() => ssm.close())

  it('writes a SecureString over the one before', async () => {
    await createTokenStore(() => client).write({ ssm: '/t' }, TOKEN)
    expect(ssm.kept.get('/t')).toMatchObject({ value: TOKEN, type: 'SecureString', version: 2 })
  })

  it('reads back what it wrote, and waits for a read that comes late', async () => {
    const waits: number[] = []
    const store = createTokenStore(
      () => client,
      undefined,
      async (ms) => waits.push(ms),
    )
    ssm.readLate(3)
    expect(await store.write({ ssm: '/t' }, TOKEN)).toEqual({})
    expect(waits).toEqual([500, 500, 500])
    ssm.readLate(1)
    expect(await store.write({ ssm: '/new' }, TOKEN)).toEqual({})
    expect(ssm.asked.filter((one) => one === 'GetParameter')).toHaveLength(6)
  })

  it.each([
    ['still reads as before', () => ssm.readLate(99)],
    [
      'could not be read back (InternalServerError)',
      () => ssm.refuseWith('InternalServerError', 'GetParameter'),
    ],
    [
      'reads as another value',
      () => ssm.afterWrite(() => Object.assign(ssm.kept.get('/t') ?? {}, { value: `${TOKEN}x` })),
    ],
    [
      'was stored, and written again by somebody else',
      () => ssm.afterWrite(() => Object.assign(ssm.kept.get('/t') ?? {}, { value: 'other', version: 9 })),
    ],
  ])('does not call stored what %s, and says nothing of the value', async (words, happening) => {
    happening()
    const impatient = new SSMClient({
      endpoint: ssm.url,
      region: 'x',
      credentials: { accessKeyId: 'a', secretAccessKey: 'b' },
      maxAttempts: 1,
    })
    const store = createTokenStore(
      () => impatient,
      undefined,
      async () => {},
    )
    const error: Error = await store.write({ ssm: '/t' }, TOKEN).then(
      () => new Error('it was called stored'),
      (thrown) => thrown,
    )
    expect(error.message).toContain(words)
    expect(`${error.stack} ${String(error.cause)}`).not.toContain(SECRET)
  })

  it('says that it was not read back to whom AWS lets write alone', async () => {
    ssm.refuseWith('AccessDeniedException', 'GetParameter')
    expect(await createTokenStore(() => client).write({ ssm: '/t' }, TOKEN)).toEqual({
      unread: 'not read back (AccessDeniedException): ssm:GetParameter?',
    })
    expect(ssm.kept.get('/t')).toMatchObject({ value: TOKEN })
  })

  it('removes one, and one that is gone already', async () => {
    const store = createTokenStore(() => client)
    await store.remove({ ssm: '/t' })
    await store.remove({ ssm: '/t' })
    expect([...ssm.kept]).toEqual([])
  })

  it('never repeats what AWS says of a value', async () => {
    const long = TOKEN.padEnd(5000, 'x')
    const error: Error = await createTokenStore(() => client)
      .write({ ssm: '/t' }, long)
      .catch((thrown) => thrown)
    expect(error.message).toBe(
      'parameter /t could not be written (ValidationException): nothing was changed there',
    )
    expect(`${error.stack} ${String(error.cause)}`).not.toContain(SECRET)
  })

  it('says when nobody told it the region', async () => {
    vi.stubEnv('AWS_REGION', undefined)
    vi.stubEnv('AWS_CONFIG_FILE', '/nowhere')
    const nowhere = new SSMClient({ endpoint: ssm.url })
    await expect(createTokenStore(() => nowhere).write({ ssm: '/t' }, TOKEN)).rejects.toThrow(
      'could not be written (no region: AWS_REGION?)',
    )
    vi.unstubAllEnvs()
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
