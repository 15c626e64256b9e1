import { afterEach, describe, expect, it } from 'vitest'
import type { Report } from '../../../functions/gc/event.ts'
import type { GcPorts } from '../../../functions/gc/run.ts'
import type { RowSummary } from '../../../lib/inventory.ts'
import { describe as describeMark, readMark } from '../../../lib/mark.ts'
import { defaultWorld, type World } from '../../../sim/index.ts'
import { type GcLab, openGcLab, seeingWorld } from '../../lab/gc-lab.ts'
import { atStep, type LabOptions, settled } from '../../lab/lab.ts'

let lab: GcLab
const open = async (options: LabOptions = {}) => {
  lab = await openGcLab(options)
}
afterEach(() => lab?.close())

async function ready(uid = 'alpha') {
  lab.request(uid)
  const { place, seed } = await settled(lab, uid)
  if (!place || seed === undefined) throw new Error(`${uid} has no place`)
  return { ...place, seed }
}

/** Two runs with the time of grace between: what was left over at the first is acted on at the second. */
async function twoLooks(): Promise<Report> {
  await lab.gc()
  await lab.grace()
  return lab.gc()
}

/** Three runs, each followed by all that it set off. */
async function threeRuns(): Promise<Report[]> {
  const reports: Report[] = []
  for (let run = 0; run < 3; run++) {
    reports.push(await lab.gc())
    await lab.run()
    await lab.grace()
  }
  return reports
}

const did = ({ actions }: Report) => actions.map(({ kind, state }) => `${kind}: ${state}`)
const vmAt = (vmid: number) => lab.sim.vms().find((vm) => vm.vmid === vmid)
const wellReport = { actions: [], noted: [], waiting: [], warnings: [], skipped: [], heldBack: {} }

const elsewhere = ({ uid, wish }: RowSummary): RowSummary => ({
  uid,
  wish,
  phase: 'Ready',
  place: { cluster: 'lab', node: 'pve1', vmid: 5001, template: 9000, storage: 'vmdata' },
})

function expectNothingLeft() {
  expect(lab.leftOvers()).toEqual({ vms: [], volumes: [] })
  expect(lab.claims.all()).toEqual([])
  expect(lab.queues.size()).toBe(0)
}

describe.each([8, 9] as const)('gc on PVE %i', (version) => {
  it('finds nothing where all is well, and notes nothing', async () => {
    await open({ version })
    for (const uid of ['alpha', 'beta', 'gamma']) lab.request(uid)
    await lab.run(
      () => lab.ledger.rows().length === 3 && lab.ledger.rows().every(({ phase }) => phase === 'Ready'),
    )
    expect(await lab.gc()).toMatchObject({
      ...wellReport,
      looked: { clusters: 1, vms: 6, configs: 0, seeds: 3, rows: 3, claims: 6 },
    })
    expect(lab.claims.suspects()).toEqual([])
  })

  it('finds nothing at any moment of a life that goes well', async () => {
    await open({ version })
    lab.request('alpha')
    let turn = -1
    const looks = async () => {
      await lab.run(() => (lab.row('alpha')?.turn ?? -1) > turn)
      turn = lab.row('alpha')?.turn ?? -1
      const { actions, noted, warnings } = await lab.gc()
      expect({ actions, noted, warnings }).toEqual({ actions: [], noted: [], warnings: [] })
    }
    while (lab.row('alpha')?.phase !== 'Ready') await looks()
    lab.remove('alpha')
    while (lab.row('alpha')?.phase !== 'Deleted') await looks()
    expectNothingLeft()
  })

  it.each([
    ['shows no row at all', () => []],
    ['shows each row as it was at rest, somewhere else', (row: RowSummary) => [elsewhere(row)]],
  ] satisfies [string, (row: RowSummary) => RowSummary[]][])(
    'finds nothing at any moment of a life where the index lags, and %s',
    async (_, shown) => {
      await open({ version })
      lab.request('alpha')
      let turn = -1
      const looks = async () => {
        await lab.run(() => (lab.row('alpha')?.turn ?? -1) > turn)
        turn = lab.row('alpha')?.turn ?? -1
        const interpose = (ports: GcPorts): GcPorts => ({
          ...ports,
          inventory: {
            ...ports.inventory,
            rows: async () => (await ports.inventory.rows()).flatMap(shown),
          },
        })
        const { actions, warnings } = await lab.on(lab.beginGc({ interpose }))
        expect({ actions, warnings }).toEqual({ actions: [], warnings: [] })
      }
      while (lab.row('alpha')?.phase !== 'Ready') await looks()
      lab.remove('alpha')
      while (lab.row('alpha')?.phase !== 'Deleted') await looks()
      expectNothingLeft()
    },
  )

  it('has a VM whose row is gone deleted, with its seed and claims, within three runs', async () => {
    await open({ version })
    const { vmid } = await ready()
    const { address } = lab.row('alpha') ?? {}
    lab.ledger.drop('alpha')
    const [first, second, third] = await threeRuns()
    expect(first).toMatchObject({
      actions: [],
      noted: [`vm#lab#${vmid}#alpha`, `claim#vmid#lab#${vmid}#alpha`, `claim#address#lab#${address}#0#alpha`],
    })
    expect(second && did(second)).toEqual(['delete orphan: done'])
    // The number was given back with its VM.
    expect(third && did(third)).toEqual(['free claim: done'])
    expectNothingLeft()
    expect(await lab.gc()).toMatchObject(wellReport)
    expect(lab.claims.suspects()).toEqual([])
  })
})

describe('an orphan', () => {
  it('is deleted before long also when everything that knew of it is gone', async () => {
    await open()
    const { vmid } = await ready()
    lab.ledger.drop('alpha')
    for (const claim of await lab.claims.claimsOf('alpha'))
      if (claim.sort === String(vmid)) await lab.claims.free(claim)
    await threeRuns()
    expectNothingLeft()
  })

  it('whose message was lost goes before its uid, asked for again meanwhile, is made anew', async () => {
    await open()
    const { vmid } = await ready()
    lab.ledger.drop('alpha')
    await lab.gc()
    await lab.grace()
    const queues = { send: async () => {} }
    expect(did(await lab.on(lab.beginGc({ interpose: (ports) => ({ ...ports, queues }) })))).toEqual([
      'delete orphan: done',
    ])
    lab.request('alpha')
    await lab.run(() => lab.row('alpha')?.parkedAt !== undefined)
    expect(lab.row('alpha')).toMatchObject({ step: 'reserve' })
    expect(did(await lab.gc())).toEqual(['delete orphan: done'])
    await lab.run()
    expect(lab.row(`orphan#lab#${vmid}`)?.phase).toBe('Deleted')
    expect(lab.row('alpha')?.phase).toBe('Ready')
    expect(lab.sim.tasks().filter(({ type }) => type === 'qmdestroy')).toHaveLength(1)
    expect(lab.queues.deadLetters).toEqual([])
  })

  // Report: scrapoxy/scrapoxy#105
  it('without its tags is found by its number', async () => {
    await open()
    const { vmid, node } = await ready()
    lab.sim.qm(node, ['set', String(vmid), '--delete', 'tags'])
    expect((await lab.gc()).warnings).toEqual([
      expect.objectContaining({ code: 'NoTags', vmid, uid: 'alpha' }),
    ])
    lab.ledger.drop('alpha')
    await threeRuns()
    expectNothingLeft()
  })

  it('that is protected is left to a person, and goes once that is mended', async () => {
    await open()
    const { vmid, node } = await ready()
    lab.ledger.drop('alpha')
    lab.sim.qm(node, ['set', String(vmid), '--protection', '1'])
    await threeRuns()
    const [letter] = lab.queues.deadLetters
    expect(letter?.obituary).toMatchObject({ code: 'Protected', uid: `orphan#lab#${vmid}` })
    expect(vmAt(vmid)?.running).toBe(true)
    // It is not tried again and again.
    await threeRuns()
    expect(lab.queues.deadLetters).toHaveLength(1)
    lab.sim.qm(node, ['set', String(vmid), '--protection', '0'])
    const { turn } = lab.row(`orphan#lab#${vmid}`) ?? { turn: 0 }
    lab.queues.publish('delete', JSON.stringify({ type: 'Resume', uid: `orphan#lab#${vmid}`, turn }))
    await lab.run()
    await threeRuns()
    expectNothingLeft()
  })

  // Report: github-aws-runners/terraform-aws-github-runner#5194
  it('that a person holds stays, with its seed and its number', async () => {
    await open()
    const { vmid, node } = await ready()
    lab.ledger.drop('alpha')
    lab.sim.qm(node, ['set', String(vmid), '--tags', 'egress;egress-hold;egress-test'])
    const reports = await threeRuns()
    expect(reports.flatMap(did)).toEqual([])
    expect(reports.at(-1)?.warnings).toEqual([expect.objectContaining({ code: 'Held', vmid, uid: 'alpha' })])
    expect(vmAt(vmid)?.running).toBe(true)
    expect(lab.leftOvers().volumes).toContain('local:iso/egress-test-alpha-g1.iso')
    expect(lab.claims.all().map(({ partition }) => partition.split('#')[0])).toEqual(['vmid', 'address'])
    lab.sim.qm(node, ['set', String(vmid), '--tags', 'egress;egress-test'])
    await threeRuns()
    expectNothingLeft()
  })

  // Report: github-aws-runners/terraform-aws-github-runner#3802
  it('whose uid is asked for again is no orphan any more', async () => {
    await open()
    const { vmid } = await ready()
    lab.ledger.drop('alpha')
    await lab.gc()
    await lab.grace()
    // The request comes while gc looks round, after it has read the rows.
    const report = await lab.on(
      lab.beginGc({
        interpose: (ports) => ({
          ...ports,
          suspects: ports.suspects,
          inventory: {
            ...ports.inventory,
            rows: async () => {
              const rows = await ports.inventory.rows()
              const taken = await lab.ledger.take('alpha', { kind: 'event' })
              if (taken.kind !== 'taken') throw new Error('held')
              const now = lab.clock.now()
              const row = {
                uid: 'alpha',
                wish: 'present',
                phase: 'Pending',
                step: 'reserve',
                turn: 1,
              } as const
              const rest = { generation: 1, since: now, dueAt: now, createdAt: now, requestedAt: now }
              const counts = { deliveries: 0, lookedAgain: 0, probed: 0, timeline: [] }
              await lab.ledger.save({ ...row, ...rest, ...counts }, taken.token)
              return rows
            },
          },
        }),
      }),
    )
    expect(report.actions.every(({ state }) => state === 'overtaken' || state === 'done')).toBe(true)
    expect(did(report)).not.toContain('delete orphan: done')
    expect(vmAt(vmid)?.running).toBe(true)
    expect(lab.queues.size()).toBe(0)
  })
})

describe('what is not ours', () => {
  it('is never touched, also when it looks like ours', async () => {
    const world = seeingWorld()
    const foreign: World['vms'] = [
      { vmid: 5000, node: 'pve1', config: { name: 'web', memory: '512' }, running: true },
      { vmid: 5999, node: 'pve2', config: { name: 'egress-alpha-1a2b3c', tags: 'egress' }, pool: 'egress' },
      {
        vmid: 300,
        node: 'pve3',
        config: {
          name: 'egress-beta-1a2b3c',
          tags: 'egress;egress-prod',
          description: describeMark(
            {
              deployment: 'prod',
              uid: 'beta',
              generation: 1,
              vmid: 300,
              specHash: 'h',
              seed: 'local:iso/egress-prod-beta-g1.iso',
            },
            'beta',
          ),
        },
        pool: 'egress',
      },
      { vmid: 5500, node: 'pve1', config: { hostname: 'box' }, container: true },
    ]
    const isos = [
      'debian-12.iso',
      'egress-prod-beta-g1.iso',
      'egress-test-alpha-g1-copy.iso',
      'egress-test2-x-g1.iso',
    ]
    const volumes: World['volumes'] = [
      ...isos.map((name) => ({ storage: 'local', node: 'pve1', name: `iso/${name}`, sizeBytes: 1024 })),
      { storage: 'vmdata', node: 'pve1', name: '5000/vm-5000-disk-0.qcow2', sizeBytes: 1024 ** 3 },
      // Of nobody any more, and perhaps somebody's only copy.
      { storage: 'vmdata', node: 'pve2', name: '5123/vm-5123-disk-0.qcow2', sizeBytes: 1024 ** 3 },
    ]
    await open({
      world: {
        ...world,
        vms: [...(world.vms ?? []), ...foreign],
        volumes: [...(world.volumes ?? []), ...volumes],
      },
    })
    const { vmid, node } = await ready()
    // A copy made by hand, description, tags, drive and all.
    await lab.finished(
      lab.admin.clone({
        template: { node, vmid },
        vmid: 5777,
        name: 'by-hand',
        description: String(vmAt(vmid)?.config.description ?? ''),
        full: true,
        pool: 'egress',
      }),
    )
    expect(vmAt(5777)?.config.tags).toBe('egress;egress-test')
    expect(readMark(decodeURIComponent(String(vmAt(5777)?.config.description)))?.uid).toBe('alpha')
    const before = { vms: lab.sim.vms(), volumes: lab.sim.volumes() }
    const reports = await threeRuns()
    // Disks of machines that our token may not see are no news.
    expect(new Set(reports.flatMap(did))).toEqual(new Set(['show disk: done']))
    expect(reports.flatMap(({ noted }) => noted)).toEqual(['disk#lab#pve2#vmdata:5123/vm-5123-disk-0.qcow2'])
    expect({ vms: lab.sim.vms(), volumes: lab.sim.volumes() }).toEqual(before)
    expect(reports.at(-1)?.warnings.map(({ code, vmid: about }) => [code, about])).toEqual([
      ['StrayDisk', 5123],
    ])

    lab.remove('alpha')
    await lab.run()
    await threeRuns()
    const kept = (one: { vmid?: number; volid?: string }) =>
      one.vmid !== vmid && one.volid !== 'local:iso/egress-test-alpha-g1.iso'
    expect(lab.sim.vms()).toEqual(before.vms.filter(kept))
    expect(lab.sim.volumes()).toEqual(before.volumes.filter(kept))
  })
})

describe('a seed', () => {
  it('that was copied to another node is swept there, and stays where its VM is', async () => {
    await open()
    const { node } = await ready()
    const elsewhere = ['pve1', 'pve2', 'pve3'].filter((one) => one !== node)
    const filename = 'egress-test-alpha-g1.iso'
    for (const other of elsewhere) {
      await lab.finished(
        lab.admin.upload({ node: other, storage: 'local', filename, bytes: new Uint8Array([1]) }),
      )
    }
    expect(did(await twoLooks())).toEqual(['sweep seed: done', 'sweep seed: done'])
    await lab.clock.advance(60_000)
    expect(
      lab.sim
        .volumes()
        .filter(({ content }) => content === 'iso')
        .map((one) => one.node),
    ).toEqual([node])
    expect(await lab.gc()).toMatchObject(wellReport)
  })

  it('that was copied waits while the node of its VM is silent, and a plan promises nothing else', async () => {
    await open()
    const { node } = await ready()
    const [other = ''] = ['pve1', 'pve2', 'pve3'].filter((one) => one !== node)
    const filename = 'egress-test-alpha-g1.iso'
    await lab.finished(
      lab.admin.upload({ node: other, storage: 'local', filename, bytes: new Uint8Array([1]) }),
    )
    lab.sim.setNode(node, 'unreachable')
    await lab.clock.advance(30_000)
    await lab.gc()
    await lab.grace()
    const { actions, waiting } = await lab.gc(true)
    expect(actions).toEqual([])
    expect(waiting).toMatchObject([{ why: `silent: ${node}` }])
    lab.sim.setNode(node, 'up')
    await lab.clock.advance(30_000)
    expect(did(await lab.gc())).toEqual(['sweep seed: done'])
  })

  // Report: bpg/terraform-provider-proxmox#586
  it('on a storage that all nodes share stays when its VM moves, and is swept once', async () => {
    const world = seeingWorld()
    const storages = world.storages.map((one) => (one.storage === 'local' ? { ...one, shared: true } : one))
    await open({ world: { ...world, storages }, cluster: { isoStorageShared: true } })
    const { node, vmid } = await ready()
    const target = node === 'pve1' ? 'pve2' : 'pve1'
    expect(lab.sim.qm(node, ['migrate', String(vmid), target])).toMatchObject({ exitCode: 0 })
    expect(did(await twoLooks())).toEqual([])
    await lab.grace()
    expect(await lab.gc()).toMatchObject(wellReport)
    lab.ledger.drop('alpha')
    lab.sim.qm(target, ['stop', String(vmid)])
    await lab.clock.advance(60_000)
    lab.sim.qm(target, ['destroy', String(vmid)])
    await lab.clock.advance(60_000)
    expect(did(await twoLooks())).toEqual(['sweep seed: done', 'free claim: done', 'free claim: done'])
    await lab.clock.advance(60_000)
    expectNothingLeft()
  })

  it('on a node that was dead when its proxy went is swept when the node is back', async () => {
    await open()
    const { node, vmid } = await ready()
    const spare = ['pve1', 'pve2', 'pve3'].filter((one) => one !== node)
    // The VM vanishes, so that its seed is looked for on every node, and one of them is down.
    lab.sim.qm(node, ['stop', String(vmid)])
    await lab.clock.advance(10_000)
    lab.sim.qm(node, ['destroy', String(vmid)])
    await lab.clock.advance(30_000)
    const filename = 'egress-test-alpha-g1.iso'
    const [dead = '', other = ''] = spare
    await lab.finished(
      lab.admin.upload({ node: dead, storage: 'local', filename, bytes: new Uint8Array([1]) }),
    )
    lab.sim.setNode(dead, 'unreachable')
    lab.remove('alpha')
    await lab.run()
    expect(lab.row('alpha')?.phase).toBe('Deleted')
    expect(lab.claims.suspects()).toEqual([
      expect.objectContaining({ node: dead, kind: 'seed', uid: 'alpha' }),
    ])
    for (const report of await threeRuns()) {
      expect(report.actions).toEqual([])
      expect(report.skipped).toEqual([
        expect.objectContaining({ node: dead, reason: expect.stringContaining('offline') }),
      ])
    }
    expect(lab.claims.suspects()).toHaveLength(1)
    lab.sim.setNode(dead, 'up')
    expect(did(await lab.gc())).toEqual(['sweep seed: done'])
    await lab.clock.advance(30_000)
    expect(await lab.gc()).toMatchObject({ actions: [], cleared: [expect.stringContaining(dead)] })
    expect(other).not.toBe('')
    expectNothingLeft()
  })
})

describe('lost messages', () => {
  // Report: github-aws-runners/terraform-aws-github-runner#5453
  // Report: cloudbase/garm#401
  it('are made up for: rows that stand still go on, wherever they stood', async () => {
    await open()
    const steps = ['reserve', 'clone', 'seed', 'configure', 'start', 'address', 'verify'] as const
    for (const step of steps) {
      lab.request(step)
      await atStep(lab, step, step)
      lab.queues.purge('create')
      lab.queues.purge('delete')
    }
    lab.request('going')
    await settled(lab, 'going')
    lab.remove('going')
    await atStep(lab, 'going', 'unseed')
    lab.queues.purge('delete')
    await lab.clock.advance(1000 * 1000)
    expect(did(await lab.gc())).toEqual(Array(8).fill('kick: done'))
    await lab.run()
    expect(steps.map((uid) => lab.row(uid)?.phase)).toEqual(steps.map(() => 'Ready'))
    expect(lab.row('going')?.phase).toBe('Deleted')
    expect(await lab.gc()).toMatchObject(wellReport)
  })

  it('are not taken for lost while a lease is held or the queue may still bring them', async () => {
    await open()
    lab.request('alpha')
    await atStep(lab, 'alpha', 'seed')
    lab.queues.purge('create')
    await lab.clock.advance(890_000)
    expect((await lab.gc()).actions).toEqual([])
    await lab.ledger.take('alpha', { kind: 'event' })
    await lab.clock.advance(20_000)
    expect((await lab.gc()).actions).toEqual([])
    await lab.clock.advance(120_000)
    expect(did(await lab.gc())).toEqual(['kick: done'])
    await lab.run()
    expect(lab.row('alpha')?.phase).toBe('Ready')
  })

  it('of an orphan are made up for by the next run', async () => {
    await open()
    await ready()
    lab.ledger.drop('alpha')
    await twoLooks()
    lab.queues.purge('delete')
    expect(did(await lab.gc())).toEqual(['delete orphan: done'])
    await lab.run()
    await threeRuns()
    expectNothingLeft()
  })
})

describe('a time to live', () => {
  // Report: scrapoxy/scrapoxy#30
  it('ends a proxy', async () => {
    await open()
    lab.request('alpha', { spec: { ttlSeconds: 3600 } })
    await settled(lab, 'alpha')
    expect((await lab.gc()).actions).toEqual([])
    await lab.clock.advance(3600_000)
    expect(did(await lab.gc())).toEqual(['expire: done'])
    await lab.run()
    expect(lab.row('alpha')?.phase).toBe('Deleted')
    expectNothingLeft()
  })

  // Report: jenkinsci/openstack-cloud-plugin#310
  it('ends one that failed', async () => {
    await open()
    lab.request('alpha', {
      spec: { ttlSeconds: 3600, proxy: { auth: { username: 'a', passwordParameter: 'nowhere' } } },
    })
    expect((await settled(lab, 'alpha')).phase).toBe('Failed')
    expect((await twoLooks()).actions).toEqual([])
    await lab.clock.advance(3600_000)
    await lab.gc()
    await lab.run()
    expectNothingLeft()
  })

  it('waits while a person holds the VM', async () => {
    await open()
    lab.request('alpha', { spec: { ttlSeconds: 3600 } })
    const { place } = await settled(lab, 'alpha')
    lab.sim.qm(place?.node ?? '', ['set', String(place?.vmid), '--tags', 'egress;egress-hold;egress-test'])
    await lab.clock.advance(3600_000)
    expect(await lab.gc()).toMatchObject({ actions: [], warnings: [{ code: 'Held', uid: 'alpha' }] })
  })
})

/** The first clone whose worker is killed at its work, and the half-made VM that it leaves. */
async function killedClone() {
  const running = () => lab.sim.tasks().find(({ type, status }) => type === 'qmclone' && status === 'running')
  const halfMade = () => lab.sim.vms().find(({ lock }) => lock === 'clone')
  await lab.run(() => running() !== undefined)
  while (!lab.sim.volumes().some(({ name }) => name.includes('vm-')) || !halfMade()) {
    if (!running()) throw new Error('the clone has ended')
    await lab.clock.advance(50)
  }
  lab.sim.killTask(running()?.upid ?? '', 'KILL')
  const vm = halfMade()
  if (!vm) throw new Error('there is no half-made VM')
  return vm
}

describe('a disk', () => {
  /** A clone whose worker was killed and that was removed by hand, but for its disk. */
  async function diskLeft(): Promise<number> {
    lab.request('alpha')
    const vm = await killedClone()
    lab.sim.qm(vm.node, ['unlock', String(vm.vmid)])
    lab.sim.qm(vm.node, ['destroy', String(vm.vmid)])
    await lab.clock.advance(30_000)
    expect(lab.leftOvers()).toEqual({ vms: [], volumes: [expect.stringContaining(`vm-${vm.vmid}-disk-0`)] })
    lab.ledger.drop('alpha')
    lab.queues.purge('create')
    return vm.vmid
  }

  // Report: PegaProx/project-pegaprox#703
  it('of a number whose owner is gone is swept before the number is given back', async () => {
    await open({ cluster: { clone: 'full' } })
    await diskLeft()
    const [first, second, third] = await threeRuns()
    expect(new Set(first?.noted.map((key) => key.split('#').slice(0, 2).join('#')))).toEqual(
      new Set(['disk#lab', 'claim#vmid', 'claim#clone']),
    )
    expect(second && did(second)).toContain('sweep disk: done')
    const freed = (report: Report | undefined) =>
      report?.actions.flatMap((one) => (one.kind === 'free claim' ? [one.partition.split('#')[0]] : []))
    expect(freed(second)).toEqual(['clone'])
    expect(freed(third)).toEqual(['vmid'])
    expectNothingLeft()
  })

  it('is not swept once another holds its number', async () => {
    await open({ cluster: { clone: 'full' } })
    const vmid = await diskLeft()
    const [volume] = lab.leftOvers().volumes
    await lab.gc()
    await lab.grace()
    // A person makes a VM there, unseen by our token, right after the list was made.
    const report = await lab.on(
      lab.beginGc({
        interpose: (ports) => ({
          ...ports,
          inventory: {
            ...ports.inventory,
            rows: async () => {
              const upid = await lab.admin.clone({
                template: { node: 'pve1', vmid: 9000 },
                vmid,
                name: 'theirs',
                description: '',
                full: false,
              })
              for (
                let state = await lab.admin.task(upid);
                state.running;
                state = await lab.admin.task(upid)
              ) {
                await lab.clock.sleep(1000)
              }
              return ports.inventory.rows()
            },
          },
        }),
      }),
    )
    expect(did(report)).toContain('sweep disk: overtaken')
    expect(lab.leftOvers().volumes).toContain(volume)
    expect(vmAt(vmid)?.name).toBe('theirs')
  })
})

describe('a claim', () => {
  it('whose number our token cannot see into stays, and a person is told how to end it', async () => {
    await open()
    lab.request('alpha')
    const vm = await killedClone()
    lab.ledger.drop('alpha')
    lab.queues.purge('create')
    const reports = await threeRuns()
    const warning = reports.at(-1)?.warnings.find(({ code }) => code === 'HiddenVm')
    expect(warning).toMatchObject({ vmid: vm.vmid, uid: 'alpha' })
    expect(lab.claims.all().some(({ partition }) => partition === 'vmid#lab')).toBe(true)

    for (const [, line = ''] of warning?.hint.matchAll(/(qm (?:unlock|destroy)[^&`]*)/g) ?? []) {
      expect(lab.sim.qm(vm.node, line.trim().split(/\s+/).slice(1)).exitCode).toBe(0)
    }
    await lab.clock.advance(30_000)
    await threeRuns()
    expectNothingLeft()
  })

  it('of a place in a queue that a sleeper took too late is given back', async () => {
    await open()
    const { node } = await ready()
    await lab.claims.takeSlot(`clone#lab#vmdata#${node}`, 2, 'alpha')
    expect(did(await twoLooks())).toEqual(['free claim: done'])
    expect(lab.claims.all().map(({ partition }) => partition)).toEqual([
      'vmid#lab',
      `address#lab#${lab.row('alpha')?.address}`,
    ])
  })

  // A process that stood still takes what it was about to, when others have gone on and its proxy is ready elsewhere.
  it('of a number and of an address that a sleeper took for nothing is given back', async () => {
    await open()
    const { vmid } = await ready()
    await lab.claims.takeVmid('lab', vmid + 1, 'alpha')
    await lab.claims.takeAddress('lab', '127.9.9.9', 'alpha')
    const [first, second, third] = await threeRuns()
    expect(first?.noted).toEqual([`claim#vmid#lab#${vmid + 1}#alpha`, 'claim#address#lab#127.9.9.9#0#alpha'])
    expect(second && did(second)).toEqual(['free claim: done', 'free claim: done'])
    expect(third && did(third)).toEqual([])
    expect(lab.claims.all().map(({ partition, sort }) => `${partition} ${sort}`)).toEqual([
      `vmid#lab ${vmid}`,
      `address#lab#${lab.row('alpha')?.address} 0`,
    ])
  })

  it('of a number that stands claimed for a proxy elsewhere stays where its VM stands', async () => {
    await open()
    const { vmid, node } = await ready()
    const claim = await lab.claims.takeVmid('lab', 5900, 'alpha')
    const [mark = ''] = /\{"egress.*/.exec(String(vmAt(vmid)?.config.description)) ?? []
    await lab.finished(
      lab.admin.clone({
        template: { node: 'pve1', vmid: 9000 },
        vmid: 5900,
        name: vmAt(vmid)?.name ?? '',
        description: mark.replace(`"vmid":${vmid}`, '"vmid":5900'),
        full: false,
        pool: 'egress',
      }),
    )
    await threeRuns()
    expect(lab.claims.all()).toContainEqual(expect.objectContaining(claim))
    expect(vmAt(5900)?.node).toBe('pve1')
    expect(vmAt(vmid)?.node).toBe(node)
  })

  it('that was taken anew since a run looked at it stays', async () => {
    await open()
    await lab.claims.takeVmid('lab', 5005, 'ghost')
    await lab.gc()
    await lab.grace()
    const report = await lab.on(
      lab.beginGc({
        interpose: (ports) => ({
          ...ports,
          claims: {
            ...ports.claims,
            async free(seen) {
              await lab.claims.keep(seen)
              return ports.claims.free(seen)
            },
          },
        }),
      }),
    )
    expect(did(report)).toEqual(['free claim: overtaken'])
    expect(lab.claims.all()).toMatchObject([{ sort: '5005', owner: 'ghost' }])
    expect(did(await lab.gc())).toEqual(['free claim: done'])
    expect(lab.claims.all()).toEqual([])
  })

  it('of a number that another’s VM has taken is given back', async () => {
    await open()
    await lab.claims.takeVmid('lab', 5005, 'ghost')
    await lab.finished(
      lab.admin.clone({
        template: { node: 'pve1', vmid: 9000 },
        vmid: 5005,
        name: 'theirs',
        description: '',
        full: false,
        pool: 'egress',
      }),
    )
    expect(did(await twoLooks())).toEqual(['free claim: done'])
    expect(vmAt(5005)?.name).toBe('theirs')
  })
})

describe('a node', () => {
  // Report: theforeman/foreman_fog_proxmox#368
  it('that is down keeps what it holds from being judged, and nothing else', async () => {
    await open()
    for (const uid of ['a', 'b', 'c', 'd', 'e', 'f']) lab.request(uid)
    await lab.run(() => lab.ledger.rows().filter(({ phase }) => phase === 'Ready').length === 6)
    const dead = lab.row('a')?.place?.node ?? ''
    const onDead = lab.ledger.rows().filter(({ place }) => place?.node === dead)
    const others = lab.ledger.rows().filter(({ place }) => place?.node !== dead)
    expect(others.length).toBeGreaterThan(0)
    for (const { uid } of lab.ledger.rows()) lab.ledger.drop(uid)
    lab.sim.setNode(dead, 'down')
    await lab.clock.advance(30_000)
    await threeRuns()
    expect(lab.leftOvers().vms.sort()).toEqual(onDead.map(({ place }) => place?.vmid).sort())
    // What was deleted gives back its number, and gc itself neither a number nor an address meanwhile.
    expect(lab.claims.all()).toHaveLength(12 - others.length)
    lab.sim.setNode(dead, 'up')
    await lab.clock.advance(30_000)
    await threeRuns()
    expectNothingLeft()
  })

  it.each(['hung', 'unreachable'] as const)('that is %s does not keep the others waiting', async (state) => {
    await open()
    for (const uid of ['a', 'b', 'c', 'd']) lab.request(uid)
    await lab.run(() => lab.ledger.rows().filter(({ phase }) => phase === 'Ready').length === 4)
    const bad = lab.row('a')?.place?.node ?? ''
    const well = lab.ledger.rows().find(({ place }) => place?.node !== bad)
    if (!well) throw new Error('all are on one node')
    lab.ledger.drop(well.uid)
    lab.sim.setNode(bad, state)
    await lab.clock.advance(30_000)
    await lab.gc()
    await lab.grace()
    const report = await lab.gc()
    expect(did(report)).toEqual(['delete orphan: done'])
    expect(report.ms).toBeLessThan(50_000)
    expect(report.skipped).toEqual([expect.objectContaining({ node: bad })])
  })

  it('is not needed for a row to go on: with no cluster to be seen, lost messages are made up for', async () => {
    await open()
    lab.request('alpha')
    await atStep(lab, 'alpha', 'seed')
    lab.queues.purge('create')
    for (const name of ['pve1', 'pve2', 'pve3']) lab.sim.setNode(name, 'unreachable')
    await lab.clock.advance(1000_000)
    const report = await lab.gc()
    expect(did(report)).toEqual(['kick: done'])
    expect(report.looked.clusters).toBe(0)
    expect(report.skipped).toEqual([expect.objectContaining({ cluster: 'lab' })])
  })
})

describe('a token', () => {
  it('that may not look leaves what it cannot see alone, and the report says what to grant', async () => {
    await open({ world: defaultWorld() })
    await ready()
    const { skipped, ...report } = await lab.gc()
    expect(report).toMatchObject({ actions: [], noted: [], warnings: [] })
    expect(skipped.map(({ storage }) => storage)).toEqual(['local', 'local', 'local', 'vmdata'])
    expect(skipped.map(({ hint }) => hint)).toEqual([
      ...Array(3).fill(expect.stringContaining('Datastore.Audit')),
      expect.stringContaining('Datastore.Allocate'),
    ])
    lab.ledger.drop('alpha')
    await threeRuns()
    // The life cycle knows the seed by the orphan's mark.
    expectNothingLeft()
  })
})

describe('a run', () => {
  // Report: claffin/cloudproxy#49
  it('that only plans changes nothing, and says what would be done', async () => {
    await open()
    const { vmid } = await ready()
    const { address } = lab.row('alpha') ?? {}
    lab.ledger.drop('alpha')
    const first = await lab.gc(true)
    expect(first).toMatchObject({
      dryRun: true,
      noted: [`vm#lab#${vmid}#alpha`, `claim#vmid#lab#${vmid}#alpha`, `claim#address#lab#${address}#0#alpha`],
    })
    expect(lab.claims.suspects()).toEqual([])
    await lab.gc()
    await lab.grace()
    const noted = lab.claims.suspects()
    expect(did(await lab.gc(true))).toEqual(['delete orphan: planned'])
    expect(lab.claims.suspects()).toEqual(noted)
    expect(lab.claims.all()).toHaveLength(2)
    expect(lab.queues.size()).toBe(0)
    expect(lab.reports).toHaveLength(1)
  })

  it.each(['rows', 'claims'] as const)('that cannot read all %s does nothing at all', async (what) => {
    await open()
    await ready()
    lab.ledger.drop('alpha')
    await lab.gc()
    await lab.grace()
    const before = lab.claims.suspects()
    const broken = lab.beginGc({
      interpose: (ports) => ({
        ...ports,
        inventory: {
          ...ports.inventory,
          [what]: async () => {
            throw new Error('the second page could not be read')
          },
        },
      }),
    })
    broken.catch(() => {})
    await expect(lab.on(broken)).rejects.toThrow('second page')
    expect(lab.queues.size()).toBe(0)
    expect(lab.claims.suspects()).toEqual(before)
  })

  it('does no harm beside another at the same time', async () => {
    await open()
    for (const uid of ['a', 'b', 'c']) lab.request(uid)
    await lab.run(() => lab.ledger.rows().filter(({ phase }) => phase === 'Ready').length === 3)
    lab.ledger.drop('a')
    lab.ledger.drop('b')
    const [kept = { uid: '' }] = lab.ledger.rows()
    for (let run = 0; run < 3; run++) {
      await lab.on(Promise.all([lab.beginGc(), lab.beginGc(), lab.beginGc()]))
      await lab.run()
      await lab.grace()
    }
    expect(lab.leftOvers().vms).toHaveLength(1)
    expect(lab.row(kept.uid)?.phase).toBe('Ready')
    expect(lab.claims.all().map(({ owner }) => owner)).toEqual([kept.uid, kept.uid])
    expect(lab.queues.deadLetters).toEqual([])
    expect(await lab.gc()).toMatchObject(wellReport)
  })

  it('starts no deletion beyond its limit', async () => {
    await open({ config: { limits: { maxDeletions: 2 } } })
    const uids = ['a', 'b', 'c', 'd', 'e']
    for (const uid of uids) lab.request(uid)
    await lab.run(() => lab.ledger.rows().filter(({ phase }) => phase === 'Ready').length === 5)
    for (const uid of uids) lab.ledger.drop(uid)
    const report = await twoLooks()
    expect(did(report)).toEqual(['delete orphan: done', 'delete orphan: done'])
    expect(report.heldBack).toEqual({ 'delete orphan': 3 })
  })

  it('whose time is over leaves the rest to the next', async () => {
    await open()
    await ready()
    lab.ledger.drop('alpha')
    await lab.gc()
    await lab.grace()
    const report = await lab.on(
      lab.beginGc({
        interpose: (ports) => ({
          ...ports,
          inventory: {
            ...ports.inventory,
            rows: async () => {
              await lab.clock.sleep(54_000)
              return ports.inventory.rows()
            },
          },
        }),
      }),
    )
    expect(did(report)).toEqual(['delete orphan: left'])
    expect(did(await lab.gc())).toEqual(['delete orphan: done'])
  })
})
