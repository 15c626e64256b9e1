import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { ReceiveMessageCommand, SendMessageCommand, SQSClient } from '@aws-sdk/client-sqs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { fetchThrough } from '../../cli/fetch-through.ts'
import { credentials } from '../../local/account.ts'
import { type Run, readRun } from '../../local/run-file.ts'
import { expectNoTrace, PASSWORD, secretOf, USER_DATA_LINE, userData } from '../hostile/canary.ts'
import { binary, egress, type Ran, root } from './egress.ts'

// The whole installation as a person uses it: one process, real sockets, the real command.

let folder: string
let up: ChildProcess

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'egress-up-'))
  writeFileSync(join(folder, 'parameters.yml'), `pw: ${PASSWORD}\n`)
  writeFileSync(join(folder, 'user-data'), userData)
  up = await start()
})
afterAll(async () => {
  if (up.exitCode === null && up.signalCode === null) {
    up.kill('SIGKILL')
    await once(up, 'exit')
  }
  rmSync(folder, { recursive: true })
})

async function start(): Promise<ChildProcess> {
  const args = [binary, 'up', '--no-demo', '--log-level', 'debug', '--data', folder]
  const child = spawn(process.execPath, args, { cwd: root, stdio: ['ignore', 'ignore', 'pipe'] })
  if (!child.stderr) throw new Error('no output')
  for await (const line of createInterface(child.stderr)) if (line.startsWith('egress is up')) return child
  throw new Error('egress up ended')
}

const here = (...args: string[]) => egress([...args, '--data', folder])

function running(): Run {
  const run = readRun(folder)
  if (!run) throw new Error('no run file')
  return run
}

async function simulated(list: 'vms' | 'volumes'): Promise<string> {
  return (await fetch(`${running().sim?.admin}/${list}`)).text()
}

describe('egress up', () => {
  it('takes a wish to a proxy that serves, shows it, tells of it, and takes it back to nothing', {
    timeout: 240_000,
  }, async () => {
    const listening = here('events', '--json', '--count', '2')
    const made = await here('request', '--name', 'shop', '--zone', 'lab-1', '--image', 'debian-12', '--wait')
    expect(made).toMatchObject({ code: 0 })
    const [uid = '', endpoint = ''] = made.out.split('\n')
    expect(uid).toMatch(/^shop-[0-9a-f]{8}$/)
    for (const step of ['reserve', 'clone', 'seed', 'configure', 'start', 'address', 'verify']) {
      expect(made.err).toContain(`  ${step.padEnd(10)} `)
    }
    const line = await fetchThrough(endpoint, running().page ?? '', AbortSignal.timeout(10_000))
    expect(line).toMatch(/^hello from egress/)

    expect((await here('list')).out).toMatch(new RegExp(`^${uid} +Ready +${endpoint} `, 'm'))
    const row = JSON.parse((await here('get', uid, '--json')).out)
    expect(row).toMatchObject({ uid, phase: 'Ready', endpoint })
    expect((await here('get', uid)).out).toContain(`VM          ${row.place.vmid} on ${row.place.node}`)
    expect(await simulated('vms')).toContain(uid)

    const deleted = await here('delete', uid, '--wait')
    expect(deleted).toMatchObject({ code: 0, out: `${uid} is gone\n` })
    expect((await here('list')).out).toBe('')
    expect(await simulated('vms')).not.toContain(uid)
    expect(await simulated('volumes')).not.toContain(uid)
    const events = (await listening).out
      .trim()
      .split('\n')
      .map((text) => JSON.parse(text))
    expect(events).toMatchObject([
      { type: 'ProxyReady', uid, endpoint },
      { type: 'ProxyDeleted', uid },
    ])

    const kept = (await here('events', '--take', '--json')).out.trim().split('\n')
    expect(kept.map((text) => JSON.parse(text))).toEqual(events)
    expect((await here('events', '--take')).out).toBe('')

    const again = await here(
      'request',
      '--uid',
      uid,
      '--name',
      'shop',
      '--zone',
      'lab-1',
      '--image',
      'debian-12',
      '--wait',
    )
    expect(again.code).toBe(1)
    expect(again.err).toContain('a uid is not used again')
  })

  it('puts what cannot be read among the dead letters, to the letter', async () => {
    const { queues, region, endpoints } = running()
    const client = new SQSClient({ endpoint: endpoints.sqs, region, credentials })
    const MessageBody = '{ "type":"ProxyRequested",  "uid": "x", "nam": 1 }'
    await client.send(new SendMessageCommand({ QueueUrl: queues.create.url, MessageBody }))
    const { Messages = [] } = await client.send(
      new ReceiveMessageCommand({
        QueueUrl: queues.create.deadLetters.url,
        WaitTimeSeconds: 20,
        MessageAttributeNames: ['All'],
      }),
    )
    expect(Messages).toMatchObject([
      { Body: MessageBody, MessageAttributes: { code: { StringValue: 'InvalidEvent' } } },
    ])
  })

  it('refuses a second start on its data, naming itself', async () => {
    const { code, err } = await here('up', '--no-demo')
    expect(code).toBe(2)
    expect(err).toContain(`in use by process ${up.pid}`)
  })

  it('shows the simulated cluster, and runs qm there with its own flags', async () => {
    expect(JSON.parse((await here('sim', 'nodes')).out)).toContainEqual({ name: 'pve1', state: 'up' })
    expect((await here('sim', 'qm', '--node', 'pve1', 'config', '9000')).out).toContain('name: debian-12')
    const gone = await here(
      'sim',
      'qm',
      '--node',
      'pve1',
      'destroy',
      '101',
      '--purge',
      '--destroy-unreferenced-disks',
      '1',
    )
    expect(gone.code).toBe(1)
    expect(gone.err).toContain("Configuration file 'nodes/pve1/qemu-server/101.conf' does not exist")
  })

  it('ends at Ctrl-C, and the next start has its addresses and its data, and no secret in its log', {
    timeout: 240_000,
  }, async () => {
    const before = running()
    const secrets = [
      '--username',
      'ci',
      '--password-parameter',
      'pw',
      '--user-data',
      join(folder, 'user-data'),
    ]
    const wish = ['--name', 'kept', '--zone', 'lab-1', '--image', 'debian-12', ...secrets]
    const requested = await here('request', ...wish)
    const uid = requested.out.trim()
    up.kill('SIGINT')
    expect(await once(up, 'exit')).toEqual([0, null])
    expect(readRun(folder)).toBeUndefined()

    up = await start()
    expect({ ...running(), pid: 0 }).toEqual({ ...before, pid: 0 })
    // Its message was in the queue, or its row in the table: either way it goes on.
    const shown: Ran[] = [requested, await here('get', uid, '--watch'), await here('explain', uid)]
    shown.push(await here('delete', uid, '--wait'))
    expect(shown.at(-1)?.out).toBe(`${uid} is gone\n`)
    const log = readFileSync(join(folder, 'up.log'), 'utf8')
    expect(log).toContain('POST /nodes/{node}/storage/{storage}/upload')
    const token = readFileSync(join(folder, 'sim/token'), 'utf8').trim()
    expectNoTrace({ log, shown }, [secretOf(token), PASSWORD, USER_DATA_LINE])
  })
})
