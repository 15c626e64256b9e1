import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { stringify } from 'yaml'
import { describe as notes } from '../../lib/mark.ts'
import type { Row } from '../../lib/record.ts'
import { createSim, defaultWorld, type Sim } from '../../sim/index.ts'
import { aDocument } from '../lib/a-config.ts'
import { aFullSpec, aRow } from '../lib/a-row.ts'
import { binary, root } from './egress.ts'
import { openStage, type Stage } from './stage.ts'

// The command, on a stage whose cluster is simulated on real sockets: one VM of ours, and what its row says of it.

let stage: Stage
let sim: Sim
const place = { cluster: 'lab', node: 'pve1', vmid: 5001, template: 9000, storage: 'vmdata' }
const seed = 'local:iso/egress-test-shop-1-g1.iso'
const row = (changes: Partial<Row> = {}) =>
  aRow({
    uid: 'shop-1',
    name: 'shop',
    place,
    seed,
    seededOn: ['pve1'],
    cloned: true,
    dueAt: Date.now(),
    ...changes,
  })

beforeAll(async () => {
  const world = defaultWorld({ version: 9, nodes: 2 })
  const mark = { deployment: 'test', uid: 'shop-1', generation: 1, vmid: 5001, specHash: 'hash', seed }
  world.vms?.push({
    vmid: 5001,
    node: 'pve1',
    pool: 'egress',
    config: {
      name: 'egress-shop-123456',
      description: notes(mark, 'shop'),
      cores: 1,
      memory: '512',
      tags: 'egress;egress-test',
    },
  })
  world.volumes?.push({ storage: 'local', node: 'pve1', name: 'iso/egress-test-shop-1-g1.iso', sizeBytes: 1 })
  world.roles = { ...world.roles, EgressSeeds: [...(world.roles?.EgressSeeds ?? []), 'Datastore.Audit'] }
  sim = createSim({ world })
  const { endpoints } = await sim.listen()
  const { clusters, ...rest } = aDocument()
  stage = await openStage()
  const files = { config: join(stage.folder, 'config.yml'), token: join(stage.folder, 'token') }
  writeFileSync(files.token, world.tokens.egress)
  writeFileSync(files.config, stringify({ ...rest, clusters: { lab: { ...clusters.lab, endpoints } } }))
  stage.useConfig(files.config)
}, 60_000)
afterAll(async () => {
  await sim.close()
  await stage.close()
})

const explained = async (changes: Partial<Row>) => {
  await stage.store(row(changes))
  return stage.here('explain', 'shop')
}

describe('egress explain', () => {
  it('tells the row, the VM as it is now, its seed, its claims, and what is next', async () => {
    await stage.claim({ partition: 'vmid#lab', sort: '5001', owner: 'shop-1' })
    const timeline = [{ step: 'reserve', at: 0, ms: 1500, outcome: 'clone' }] as const
    const { code, out } = await explained({ step: 'start', timeline: [...timeline] })
    expect(code).toBe(0)
    expect(out).toMatch(/^state +Provisioning, at start$/m)
    expect(out).toMatch(/reserve +1\.5 s +clone$/m)
    expect(out).toMatch(
      /^ {2}VM +egress-shop-123456 on pve1, ours; 1 core, 512 MiB, tags egress egress-test$/m,
    )
    expect(out).toMatch(/^ {2}state +stopped$/m)
    expect(out).toMatch(/^ {2}seed +local:iso\/egress-test-shop-1-g1\.iso on pve1$/m)
    expect(out).toMatch(/^ {2}claims +vmid#lab\/5001$/m)
    expect(out).toMatch(/^ {2}messages +of all proxies, about: create 0 waiting/m)
    expect(out).toMatch(/^ {2}what +it starts the VM$/m)
    expect(out).toMatch(/^ {2}because +it stands still$/m)
    expect(sim.calls().every(({ method }) => method === 'GET')).toBe(true)
  })

  it('says that a row is overdue, and what a failed one waits for', async () => {
    expect((await explained({ step: 'configure', dueAt: 0 })).out).toMatch(
      /^ {2}when +overdue by .* gc sends another$/m,
    )
    const problem = { code: 'StuckLock', reason: 'x', firstAt: 1, lastAt: 1, times: 1 } as const
    const { step: _, ...failed } = row({ phase: 'Failed', failedStep: 'clone', problem })
    await stage.store(failed)
    expect((await stage.here('explain', 'shop-1')).out).toMatch(
      /^ {2}what +nothing, until a person says egress dlq redrive shop-1$/m,
    )
  })

  it('says of a failed one that its deletion was asked for already, and how often a problem was met', async () => {
    const problem = { code: 'Protected', reason: 'x', firstAt: 1000, lastAt: 1000, times: 1 } as const
    const { step: _, ...failed } = row({ phase: 'Failed', wish: 'absent', failedStep: 'stop', problem })
    await stage.store(failed)
    const { out } = await stage.here('explain', 'shop-1')
    expect(out).toMatch(/^wanted +nothing: its deletion was asked for$/m)
    expect(out).toMatch(
      /^ {2}because +its deletion, which was asked for already, failed at stop as Protected$/m,
    )
    expect(out).toMatch(/^ +once, at 1970-01-01T00:00:01/m)
    await stage.store({ ...failed, problem: { ...problem, times: 3, lastAt: 5000 } })
    expect((await stage.here('explain', 'shop-1')).out).toMatch(
      /^ +3 times since 1970\S+, last at 1970-01-01T00:00:05/m,
    )
  })

  it('knows a tombstone that a deletion left without any request, and looks for nothing of it', async () => {
    const { spec: _, name: __, specHash: ___, place: ____, seed: _____, ...bare } = row({ uid: 'nobody-1' })
    await stage.store({ ...bare, step: undefined, wish: 'absent', phase: 'Deleted', generation: 0 } as Row)
    const { out } = await stage.here('explain', 'nobody-1')
    expect(out).toMatch(/^ {2}because +its deletion came and no request of it ever did; /m)
    expect(out).not.toMatch(/not seen|configuration|^generation|^asked for/m)
    expect(out).toMatch(/^heard of /m)
  })

  it('says what it could not see when the cluster is silent', async () => {
    sim.setNode('pve1', 'down')
    sim.setNode('pve2', 'down')
    const { code, out } = await explained({ step: 'start' })
    sim.setNode('pve1', 'up')
    sim.setNode('pve2', 'up')
    expect(code).toBe(0)
    expect(out).toMatch(/^ {2}not seen +the VM: .*ECONNREFUSED/m)
    expect(out).toMatch(/^ {2}what +it cannot be said$/m)
  })

  it('asks which one, when a name is not enough, and ends with 1 for nobody', async () => {
    await stage.store(row({ step: 'start' }))
    await stage.store(row({ uid: 'shop-2', step: 'start' }))
    const both = await stage.here('explain', 'shop')
    expect(both).toMatchObject({ code: 2, err: expect.stringContaining('say which: shop-1, shop-2') })
    await stage.store(row({ uid: 'shop-2', phase: 'Deleted' }))
    expect((await stage.here('explain', 'shop')).code).toBe(0)
    expect(await stage.here('explain', 'nobody')).toMatchObject({ code: 1 })
  })

  it('means the proxy that stands, though somebody had its name deleted as a uid; and so does get', async () => {
    await stage.store(row({ step: 'start' }))
    await stage.store(row({ uid: 'shop', phase: 'Deleted' }))
    expect((await stage.here('explain', 'shop')).out).toContain('shop-1')
    expect(JSON.parse((await stage.here('get', 'shop', '--json')).out).uid).toBe('shop-1')
  })

  it('and delete takes no name: it says whose it is, and sends nothing', async () => {
    await stage.store(row({ step: 'start' }))
    const { code, err } = await stage.here('delete', 'shop')
    expect({ code, err }).toEqual({
      code: 2,
      err: expect.stringContaining(
        'no proxy with the uid shop; the proxy of that name is shop-1: egress delete shop-1',
      ),
    })
  })
})

describe('egress list', () => {
  it('leaves out other zones and labels', async () => {
    const labelled = (uid: string, zone: string, labels: Record<string, string>) =>
      stage.store(row({ uid, spec: { ...aFullSpec, zone, labels } }))
    await labelled('one', 'lab-1', { team: 'search', stage: 'a=b' })
    await labelled('two', 'lab-1', { team: 'ads' })
    await labelled('three', 'lab-2', { team: 'search' })
    const uids = async (...flags: string[]) => {
      const { out } = await stage.here('list', '--json', ...flags)
      return (JSON.parse(out) as Row[]).map(({ uid }) => uid).sort()
    }
    expect(await uids('--label', 'team=search')).toEqual(['one', 'three'])
    expect(await uids('--label', 'team', '--zone', 'lab-1')).toEqual(['one', 'two'])
    expect(await uids('--label', 'stage=a=b', '--label', 'team=search')).toEqual(['one'])
    expect(await uids('--label', 'toString')).toEqual([])
  })
})

describe('egress get --watch', () => {
  it('tells each change in a line, and ends when the proxy is at rest', async () => {
    await stage.store(row({ uid: 'w', step: 'start' }))
    const child = spawn(process.execPath, [binary, 'get', 'w', '--watch', '--data', stage.folder], {
      cwd: root,
    })
    let out = ''
    child.stdout.on('data', (text) => {
      out += text
    })
    const told = async (pattern: RegExp) => {
      while (!pattern.test(out)) await once(child.stdout, 'data')
    }
    await told(/state +Provisioning, at start/)
    await stage.store(row({ uid: 'w', step: 'start', turn: 4 }))
    await stage.store(row({ uid: 'w', step: 'address', turn: 5 }))
    await told(/Z {2}Provisioning, at address\n/)
    const { step: _, ...ready } = row({ uid: 'w', phase: 'Ready', endpoint: 'http://10.0.0.9:3128' })
    await stage.store(ready)
    expect(await once(child, 'exit')).toEqual([0, null])
    expect(
      out
        .split('\n')
        .filter((line) => /Z {2}/.test(line))
        .map((line) => line.slice(26)),
    ).toEqual(['Provisioning, at address', 'Ready  http://10.0.0.9:3128'])
  })
})
