import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { parseDocument } from 'yaml'
import { rotationPorts } from '../../cli/commands/token-rotate.ts'
import { rotate } from '../../cli/rotate.ts'
import { openPlace } from '../../cli/token-place.ts'
import { type Lab, startLab } from '../../local/lab.ts'
import { openPorts } from '../../local/ports.ts'
import { writeRun } from '../../local/run-file.ts'
import { serveParameters } from '../infra/parameter-store.ts'
import { egress, type Ran } from './egress.ts'

// A stage before its first deployment: its two files, a parameter store on the wire, and a cluster that is really asked.

const FIRST = '/egress/prod/lab/token'
const KEY = 'arn:aws:kms:eu-central-1:123456789012:key/1a2b3c4d'
const SECOND = '/egress/prod/lab/next-token'
let folder: string
let lab: Lab
let token: string
let ssm: Awaited<ReturnType<typeof serveParameters>>
let env: Record<string, string>
const seen: Ran[] = []

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'egress-token-stage-'))
  lab = await startLab({ folder, ports: openPorts(folder), pageUrl: 'http://127.0.0.1:1/' })
  token = readFileSync(join(folder, 'sim/token'), 'utf8').trim()
  const document = parseDocument(readFileSync(lab.config, 'utf8'))
  document.setIn(['clusters', 'lab', 'token'], [{ ssm: FIRST }, { ssm: SECOND }])
  document.setIn(['parameters'], { ssm: true })
  mkdirSync(join(folder, 'config'))
  mkdirSync(join(folder, 'infra/stages'), { recursive: true })
  writeFileSync(join(folder, 'config/prod.yml'), String(document))
  writeFileSync(join(folder, 'infra/stages/prod.yml'), `region: eu-central-1\nsecretsKeyArn: ${KEY}\n`)
})
afterAll(async () => {
  await lab.close()
  rmSync(folder, { recursive: true })
})
beforeEach(async () => {
  ssm = await serveParameters()
  env = { AWS_ENDPOINT_URL_SSM: ssm.url, AWS_ACCESS_KEY_ID: 'a', AWS_SECRET_ACCESS_KEY: 'b' }
})
afterEach(async () => {
  vi.unstubAllEnvs()
  const secrets = [token, ...[...ssm.kept.values()].map(({ value }) => value)].map(
    (value) => value.split('=')[1],
  )
  for (const { out, err } of seen) for (const secret of secrets) expect(out + err).not.toContain(secret)
  await ssm.close()
})

const run = async (args: string[], input?: string): Promise<Ran> => {
  const ran = await egress(['token', ...args], { env, cwd: folder, ...(input !== undefined && { input }) })
  seen.push(ran)
  return ran
}
const set = (input: string, ...args: string[]) =>
  run(['set', '--cluster', 'lab', '--stage', 'prod', ...args], input)
const root = (...argv: string[]) =>
  fetch(`${lab.admin}/root`, { method: 'POST', body: JSON.stringify({ node: 'pve1', argv }) }).then(
    (answer) => answer.json() as Promise<{ stdout: string }>,
  )

describe('egress token set --stage', () => {
  it('asks the cluster of the stage, and stores the token where the stage will look for it', async () => {
    expect(await set(`${token}\n`)).toEqual({
      code: 0,
      out: `stored egress@pve!ctl in parameter ${FIRST}\n`,
      err: expect.stringMatching(/^Proxmox VE 9\.\S+ accepts egress@pve!ctl\n$/),
    })
    expect(ssm.kept.get(FIRST)).toMatchObject({ value: token, type: 'SecureString', keyId: KEY })
  })

  it('stores nothing that the cluster refuses', async () => {
    ssm.kept.set(FIRST, { value: 'before', type: 'SecureString', keyId: '', version: 1 })
    expect(await set('egress@pve!ctl=00000000-0000-0000-0000-000000000000')).toEqual({
      code: 1,
      out: '',
      err: 'not stored: the cluster refuses egress@pve!ctl\n',
    })
    expect(ssm.kept.get(FIRST)?.value).toBe('before')
  })

  it('stores no token that was granted nothing, and says what grants it', async () => {
    const { stdout } = await root('pveum', 'user', 'token', 'add', 'egress@pve', 'bare', '--privsep', '1')
    const bare = `egress@pve!bare=${/^value (\S+)$/m.exec(stdout)?.[1]}`
    const { code, out, err } = await set(bare)
    expect({ code, out }).toEqual({ code: 1, out: '' })
    expect(err).toMatch(/^not stored: egress@pve!bare may do nothing on \/pool\/egress and \/storage\/vmdata/)
    expect(err).toContain("`egress check --role --token-id 'egress@pve!bare'` prints what grants it")
    expect(ssm.asked).toEqual([])
    expect(await set(bare, '--no-verify', '--second', '--kms-key', 'alias/ours')).toMatchObject({ code: 0 })
    expect(ssm.kept.get(SECOND)).toMatchObject({ value: bare, keyId: 'alias/ours' })
  })

  it('says that AWS did not let it, and nothing of what AWS said', async () => {
    ssm.refuseWith('AccessDeniedException')
    expect(await set(token, '--no-verify')).toEqual({
      code: 1,
      out: '',
      err: `parameter ${FIRST} could not be written (AccessDeniedException): nothing was changed there\n`,
    })
  })

  it('says when AWS lets it write and not read: the token is stored, and nobody has looked', async () => {
    ssm.refuseWith('AccessDeniedException', 'GetParameter')
    expect(await set(token, '--no-verify')).toEqual({
      code: 0,
      out: `stored egress@pve!ctl in parameter ${FIRST}\n`,
      err: 'not read back (AccessDeniedException): ssm:GetParameter?\n',
    })
    expect(ssm.kept.get(FIRST)).toMatchObject({ value: token })
  })

  it('looks for the configuration of the stage where its files are', async () => {
    const { code, err } = await run(['set', '--cluster', 'lab', '--stage', 'dev'], token)
    expect(code).toBe(2)
    expect(err).toContain('stage dev has no config/dev.yml here')
  })
})

describe('egress token rotate --stage', () => {
  it('prints lines to type that name the stage', async () => {
    ssm.kept.set(FIRST, { value: token, type: 'SecureString', keyId: '', version: 1 })
    const { code, out } = await run(['rotate', '--cluster', 'lab', '--stage', 'prod'])
    expect(code).toBe(1)
    expect(out).toContain('egress token set --cluster lab --stage prod --second\n')
    expect(out).toContain("egress token rotate --cluster lab --stage prod --old 'egress@pve!ctl'\n")
  })

  it('goes on over the wire where the parameter store failed it', async () => {
    for (const [name, value] of Object.entries({ ...env, AWS_REGION: 'eu-central-1' }))
      vi.stubEnv(name, value)
    const config = join(folder, 'config/prod.yml')
    const place = openPlace({ cluster: 'lab', data: folder, config }, {})
    const admin = place.as(readFileSync(join(folder, 'sim/admin-token'), 'utf8').trim())
    const said: string[] = []
    const outside = {
      admin,
      out: (line: string) => said.push(line),
      err: (line: string) => said.push(line),
      // That nobody remembers the old one is for other tests.
      sleep: async () => {},
      now: Date.now,
    }
    await place.store.write({ ssm: FIRST }, token)
    const ports = rotationPorts(place, {
      ...outside,
      err(line) {
        outside.err(line)
        if (line.startsWith('made ')) ssm.refuseWith('InternalServerError')
      },
    })
    await expect(rotate(ports)).rejects.toThrow(`parameter ${SECOND} could not be written`)
    ssm.refuseWith(undefined)
    await rotate(rotationPorts(place, outside))
    await admin.close()
    expect([...ssm.kept].map(([name, { value }]) => `${name} ${value.split('=')[0]}`)).toEqual([
      `${FIRST} egress@pve!ctl-b`,
    ])
    expect(said.at(-1)).toBe('egress@pve!ctl-b has replaced egress@pve!ctl')
    seen.push({ code: 0, out: said.join('\n'), err: '' })
    // It is the one that opens the cluster now.
    token = ssm.kept.get(FIRST)?.value ?? ''
    expect(await set(token)).toMatchObject({
      code: 0,
      err: expect.stringContaining('accepts egress@pve!ctl-b'),
    })
  })
})

describe('egress token beside a running egress up', () => {
  it('finds its configuration and its files by itself', async () => {
    const queue = { url: 'http://127.0.0.1:1/q', arn: 'arn:q' }
    writeRun(folder, {
      pid: process.pid,
      region: 'us-east-1',
      config: lab.config,
      endpoints: { dynamodb: queue.url, sqs: queue.url, sns: queue.url },
      tables: { proxies: 'proxies', claims: 'claims' },
      queues: { create: { ...queue, deadLetters: queue }, delete: { ...queue, deadLetters: queue } },
      topicArn: 'arn:t',
      events: queue,
    })
    const second = join(folder, 'sim/next-token')
    expect(await run(['set', '--cluster', 'lab', '--data', folder, '--second'], token)).toMatchObject({
      code: 0,
      out: `stored ${token.split('=')[0]} in ${second}\n`,
    })
    expect(readFileSync(second, 'utf8')).toBe(`${token}\n`)
    const none = await run(['rotate', '--cluster', 'lab', '--data', join(folder, 'elsewhere')])
    expect(none).toMatchObject({ code: 2, err: expect.stringContaining('no egress up runs on') })
  })
})
