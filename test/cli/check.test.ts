import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parse, stringify } from 'yaml'
import { Round } from '../../functions/check/event.ts'
import { readRun } from '../../local/run-file.ts'
import { aDocument } from '../lib/a-config.ts'
import { binary, egress, root } from './egress.ts'

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'egress-check-'))
})
afterAll(() => rmSync(folder, { recursive: true }))

describe.concurrent('egress check --config', () => {
  it('finds nothing wrong with a good file, and asks no cluster', async () => {
    expect(await egress(['check', '--config', 'config/example.yml'])).toEqual({
      code: 0,
      out: 'config/example.yml can be used\n',
      err: '',
    })
  })

  it('names everything that is wrong with the file at once, with exit code 2', async () => {
    const path = join(folder, 'bad.yml')
    writeFileSync(path, stringify(aDocument({ deployment: 'a-b', placement: 'best' })))
    const { code, err } = await egress(['check', '--config', path])
    expect(code).toBe(2)
    expect(err).toContain('deployment: got "a-b"')
    expect(err).toContain('placement: got "best"')
  })

  it('finds files that it names and that are not there, with exit code 2', async () => {
    const path = join(folder, 'alone.yml')
    writeFileSync(path, stringify(aDocument()))
    const { code, out } = await egress(['check', '--config', path])
    expect(code).toBe(2)
    expect(out).toMatch(/^failure: clusters\.lab\.token: .*token cannot be read/m)
    expect(out).toMatch(/^warning: parameters\.file: /m)
  })
})

describe.concurrent('egress check --role', () => {
  it('prints what to grant on either version, and for one alone', async () => {
    const both = await egress(['check', '--role', '--data', folder])
    expect(both.code).toBe(0)
    expect(both.out).toMatch(/^pveum role add EgressVm --privs ".*VM\.Monitor"$/m)
    expect(both.out).toMatch(/^pveum role add EgressVm --privs ".*VM\.GuestAgent\.Audit"$/m)
    const nine = await egress(['check', '--role', '--pve', '9', '--data', folder])
    expect(nine.out).not.toContain('VM.Monitor')
  })

  it('prints it with the names of a configuration', async () => {
    const args = ['--config', 'config/example.yml', '--token-id', 'bot@pve!one']
    const { out } = await egress(['check', '--role', ...args])
    expect(out).toContain('# where, on cluster paris')
    expect(out).toContain('DISKS=ceph-vm')
    expect(out).toContain("BOTH=(--users bot@pve --tokens 'bot@pve!one')")
  })

  it('refuses a token with its secret', async () => {
    expect((await egress(['check', '--role', '--token-id', 'bot@pve!one=secret'])).code).toBe(2)
  })
})

describe('egress check on a running installation', () => {
  let data: string
  let up: ChildProcess
  const here = (...args: string[]) => egress([...args, '--data', data])

  beforeAll(async () => {
    data = mkdtempSync(join(tmpdir(), 'egress-check-up-'))
    up = spawn(process.execPath, [binary, 'up', '--no-demo', '--data', data], {
      cwd: root,
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    if (!up.stderr) throw new Error('no output')
    for await (const line of createInterface(up.stderr)) if (line.startsWith('egress is up')) return
    throw new Error('egress up ended')
  }, 60_000)
  afterAll(async () => {
    up.kill('SIGKILL')
    await once(up, 'exit')
    rmSync(data, { recursive: true })
  })

  it('says that nothing was stored before the first round', async () => {
    expect(await here('check', '--stored')).toMatchObject({ code: 1, out: '' })
  })

  it('looks, tells a person by node and a program whole, and keeps what it saw', {
    timeout: 120_000,
  }, async () => {
    await here(
      'request',
      '--uid',
      'shop',
      '--name',
      'shop',
      '--zone',
      'lab-1',
      '--image',
      'debian-12',
      '--wait',
    )
    const { code, out } = await here('check')
    expect({ code, out }).toMatchObject({ code: 0 })
    expect(out).toMatch(/^WHERE +STATE +WHAT$/m)
    for (const title of ['cluster lab', 'node pve1', 'endpoint https://']) expect(out).toContain(title)
    expect(out).toContain('proxies: 1 ready, 1 fine')
    const round = Round.parse(JSON.parse((await here('check', '--json')).out))
    expect(round.summary.counts).toMatchObject({ failure: 0, warning: 0 })
    expect(JSON.parse((await here('check', '--stored', '--json')).out)).toEqual(round)
  })

  it('finds a stopped VM, and has it started again', { timeout: 120_000 }, async () => {
    const row = JSON.parse((await here('get', 'shop', '--json')).out)
    await here('sim', 'qm', '--node', row.place.node, 'stop', String(row.place.vmid))
    let told = await here('check', '--strict')
    for (let tries = 0; tries < 20 && told.code === 0; tries++) told = await here('check', '--strict')
    expect(told).toMatchObject({ code: 1, err: expect.stringContaining('1 warning') })
    expect(told.out).toMatch(
      /proxy shop on pve\d +warning +VM \d+ is stopped: it is started again \[taken up again at start\]/,
    )
    let again = await here('check', '--strict')
    for (let tries = 0; tries < 40 && !again.out.includes('1 ready, 1 fine'); tries++)
      again = await here('check', '--strict')
    expect(again.code).toBe(0)
  })

  it('finds a certificate that is not the pinned one, over a real connection, with exit code 2', async () => {
    const config = readRun(data)?.config ?? ''
    const text = readFileSync(config, 'utf8')
    const document = parse(text)
    document.clusters.lab.endpoints[0].fingerprint = Array(32).fill('AA').join(':')
    writeFileSync(config, stringify(document))
    try {
      const { code, out, err } = await here('check')
      expect({ code, err }).toMatchObject({ code: 2, err: expect.stringContaining('1 failure') })
      expect(out).toMatch(/endpoint https:\/\/\S+ +failure +its certificate is not the one/)
      expect(out).toContain('openssl s_client -connect')
    } finally {
      writeFileSync(config, text)
    }
  })
})
