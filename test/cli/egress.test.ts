import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { egress } from './egress.ts'

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'egress-cli-'))
})
afterAll(() => rmSync(folder, { recursive: true }))

const commands = [
  'up',
  'request',
  'delete',
  'get',
  'list',
  'dlq',
  'explain',
  'check',
  'events',
  'sim',
  'schema',
]

describe.concurrent('egress', () => {
  it('names its commands in its help', async () => {
    const { code, out } = await egress(['--help'])
    expect(code).toBe(0)
    for (const command of commands) expect(out).toContain(`egress ${command}`)
  })

  it.each(commands)('explains %s with an example', async (command) => {
    const { code, out } = await egress([command, '--help'])
    expect(code).toBe(0)
    expect(out).toMatch(/Examples:\s+egress /)
  })

  it('completes words for a shell', async () => {
    expect((await egress(['completion'])).out).toContain('complete -o bashdefault')
    expect((await egress(['--get-yargs-completions', 'egress', 're'])).out).toContain('request')
  })

  it.each([
    ['a misspelt command', ['reqest'], 'Did you mean request?'],
    ['no command', [], 'Which command?'],
    ['a misspelt flag', ['list', '--jsn'], 'Unknown argument: jsn'],
    ['a flag without its value', ['request', '--cores'], 'Not enough arguments following: cores'],
    ['a missing uid', ['get'], 'Not enough non-option arguments'],
    ['a uid that is none', ['delete', 'No_Such'], 'uid: got "No_Such", wanted 1 to 63 of a-z'],
    ['flags that exclude each other', ['list', '--all', '--phase', 'Ready'], 'exclude each other'],
    ['a word that is no phase', ['list', '--phase', 'Lost'], 'Invalid values'],
    [
      'a configuration that is not there',
      ['up', '--config', '/no/such.yml', '--data', 'DATA'],
      '/no/such.yml',
    ],
  ])('refuses %s on standard error with exit code 2', async (_, args, text) => {
    const { code, out, err } = await egress(args.map((arg) => (arg === 'DATA' ? join(folder, 'none') : arg)))
    expect({ code, out }).toEqual({ code: 2, out: '' })
    expect(err).toContain(text)
  })

  it('says what to start, or to name, when nothing runs here', async () => {
    const { code, err } = await egress(['list', '--data', folder])
    expect(code).toBe(2)
    expect(err).toContain('egress up')
    expect(err).toContain('--table or EGRESS_PROXIES_TABLE')
  })

  it('takes a run file of a killed process for nothing', async () => {
    const stale = mkdtempSync(join(folder, 'stale-'))
    const queue = { url: 'http://127.0.0.1:1/0/q', arn: 'arn:q' }
    const source = { ...queue, deadLetters: queue }
    const ended = spawnSync(process.execPath, ['-e', ''])
    const run = {
      pid: ended.pid,
      region: 'us-east-1',
      config: '/none',
      endpoints: { dynamodb: 'http://127.0.0.1:1', sqs: 'http://127.0.0.1:1', sns: 'http://127.0.0.1:1' },
      tables: { proxies: 'proxies', claims: 'claims' },
      queues: { create: source, delete: source },
      topicArn: 'arn:t',
      events: queue,
    }
    writeFileSync(join(stale, 'run.json'), JSON.stringify(run))
    const { code, err } = await egress(['list', '--data', stale])
    expect(code).toBe(2)
    expect(err).toContain(`no egress up runs on ${stale}`)
  })

  it('refuses a bad request before it is sent: field, what came, what was wanted', async () => {
    const flags = [
      '--name',
      'a_b',
      '--zone',
      'nowhere',
      '--image',
      'debian-12',
      '--cores',
      '-1',
      '--allow',
      '',
    ]
    const { code, out, err } = await egress(['request', '--config', 'config/local.yml', ...flags])
    expect({ code, out }).toEqual({ code: 2, out: '' })
    expect(err).toContain('name: got "a_b", wanted')
    expect(err).toContain('spec.size.cores: got -1, wanted')
    expect(err).toContain('spec.proxy.allow: got a list of 0, wanted at least one')
  })

  it('reads a request from standard input and refuses its misspelt field', async () => {
    const input = JSON.stringify({ name: 'a', spec: { zone: 'lab-1', image: 'debian-12', prot: 1 } })
    const { code, err } = await egress(['request', '--config', 'config/local.yml', '-f', '-'], { input })
    expect(code).toBe(2)
    expect(err).toContain('spec.prot: got a field of this name, wanted no such field')
  })

  it('prints the schemas that events and configuration are checked by', async () => {
    expect(JSON.parse((await egress(['schema', 'config'])).out)).toHaveProperty('properties.deployment')
    expect(JSON.parse((await egress(['schema', 'events'])).out)).toHaveProperty(
      'ProxyRequested.properties.uid',
    )
  })

  const old = oldNode()
  it.skipIf(!old)(
    'hands over from an older Node to the one that npm brought, exit code and all',
    async () => {
      const { code, err } = await egress(['reqest'], old ? { node: old } : {})
      expect(code).toBe(2)
      expect(err).toContain('Did you mean request?')
    },
  )
})

/** A Node on this machine that cannot run TypeScript. */
function oldNode(): string | undefined {
  const folders = (process.env.PATH ?? '').split(':').map((one) => join(one, 'node'))
  return folders.find((node) => {
    if (!existsSync(node)) return false
    const [major = 0, minor = 0] = spawnSync(node, ['-p', 'process.versions.node'])
      .stdout.toString()
      .split('.')
      .map(Number)
    return major < 22 || (major === 22 && minor < 19)
  })
}
