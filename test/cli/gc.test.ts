import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { DynamoDBClient } from '@aws-sdk/client-dynamodb'
import { DeleteCommand, DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Report } from '../../functions/gc/event.ts'
import { credentials } from '../../local/account.ts'
import { readRun } from '../../local/run-file.ts'
import { binary, egress, root } from './egress.ts'

describe('egress gc', () => {
  let data: string
  let up: ChildProcess
  const here = (...args: string[]) => egress([...args, '--data', data])
  const reported = async (...args: string[]): Promise<Report> => {
    const report: Report = JSON.parse((await here('gc', ...args, '--json')).out)
    // The table of claims has them in an order of its own.
    return { ...report, noted: report.noted.toSorted() }
  }

  beforeAll(async () => {
    data = mkdtempSync(join(tmpdir(), 'egress-gc-'))
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

  it('says that nothing was reported before the first run', async () => {
    const { code, err } = await here('gc')
    expect(code).toBe(1)
    expect(err).toContain('no run of gc has been reported yet')
  })

  it('plans without a trace, runs, and shows the last run', { timeout: 120_000 }, async () => {
    const wish = ['--uid', 'shop', '--name', 'shop', '--zone', 'lab-1', '--image', 'debian-12', '--wait']
    expect((await here('request', ...wish)).code).toBe(0)
    const row = JSON.parse((await here('get', 'shop', '--json')).out)
    expect(await reported('plan')).toMatchObject({
      dryRun: true,
      actions: [],
      noted: [],
      skipped: [],
      looked: { rows: 1, claims: 2, seeds: 1 },
    })

    // Its row is removed by hand.
    const run = readRun(data)
    if (!run) throw new Error('nothing runs')
    const client = new DynamoDBClient({ endpoint: run.endpoints.dynamodb, region: run.region, credentials })
    await DynamoDBDocumentClient.from(client).send(
      new DeleteCommand({ TableName: run.tables.proxies, Key: { uid: 'shop' } }),
    )
    client.destroy()
    const claims = [`claim#vmid#lab#${row.place.vmid}#shop`, `claim#address#lab#${row.address}#0#shop`]
    const noted = [`vm#lab#${row.place.vmid}#shop`, ...claims].sort()
    expect(await reported('plan')).toMatchObject({ noted, looked: { suspects: 0 } })
    expect(await reported('plan')).toMatchObject({ noted, looked: { suspects: 0 } })
    expect(await reported('run')).toMatchObject({ dryRun: false, noted })
    expect(await reported('last')).toMatchObject({ noted })

    const { code, out, err } = await here('gc', 'plan')
    expect(code).toBe(0)
    expect(out).toContain('tables: 0 rows, 2 claims, 3 suspects')
    expect(out).toContain(`VM ${row.place.vmid} of shop (lab), for`)
    expect(err).toMatch(/^began .* ago, took /)
  })

  it('says which node it could not look at', async () => {
    const report = await reported('plan')
    expect(report.skipped).toEqual([])
    await here('sim', 'node', 'pve2', 'unreachable')
    const { out } = await here('gc', 'plan')
    expect(out).toMatch(/^not looked at:\n {2}lab\/pve2: /m)
    await here('sim', 'node', 'pve2', 'up')
  })

  it('knows no other word', async () => {
    expect((await here('gc', 'away')).code).toBe(2)
  })
})
