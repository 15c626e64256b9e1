import { afterEach, describe, expect, it } from 'vitest'
import type { FindingCode, Round } from '../../../functions/check/event.ts'
import { checkRound } from '../../../functions/check/round.ts'
import type { Row } from '../../../lib/record.ts'
import { defaultWorld } from '../../../sim/index.ts'
import { settled } from '../../lab/lab.ts'
import { type CheckLab, type CheckOptions, found, openCheckLab, wrong } from './check-lab.ts'

let lab: CheckLab
afterEach(() => lab?.close())

/** A lab with these proxies ready. */
async function ready(uids: string[], options: CheckOptions = {}): Promise<Row[]> {
  lab = await openCheckLab(options)
  for (const uid of uids) lab.request(uid)
  await lab.run(() => uids.every((uid) => lab.row(uid)?.phase === 'Ready'))
  expect(uids.map((uid) => lab.row(uid)?.phase)).toEqual(uids.map(() => 'Ready'))
  lab.outcomes.length = 0
  return uids.map((uid) => rowOf(uid))
}
async function readyOne(options: CheckOptions = {}): Promise<{ row: Row; node: string; vmid: number }> {
  const [row] = await ready(['alpha'], options)
  if (!row?.place) throw new Error('alpha is nowhere')
  return { row, node: row.place.node, vmid: row.place.vmid }
}
function rowOf(uid: string): Row {
  const row = lab.row(uid)
  if (!row) throw new Error(`no row ${uid}`)
  return row
}

async function qm(node: string, ...argv: (string | number)[]): Promise<void> {
  const { exitCode, stderr } = lab.sim.qm(node, argv.map(String))
  if (exitCode !== 0) throw new Error(stderr)
  await lab.clock.advance(15_000)
}
const destroyed = async (node: string, vmid: number) => {
  await qm(node, 'stop', vmid)
  await qm(node, 'destroy', vmid, '--purge', '--destroy-unreferenced-disks', '1')
}
/** A VM of somebody else's, in no pool of ours. */
async function strangersVm(node: string, vmid: number): Promise<void> {
  const body = Buffer.from(new URLSearchParams({ newid: String(vmid), name: 'precious' }).toString())
  const template = 9000 + Number(node.slice(3)) - 1
  const { status } = await lab.clock.until(
    lab.sim.request(node, {
      method: 'POST',
      path: `/api2/json/nodes/${node}/qemu/${template}/clone`,
      headers: {
        host: node,
        authorization: `PVEAPIToken=${lab.world.tokens.admin}`,
        'content-type': 'application/x-www-form-urlencoded',
        'content-length': String(body.byteLength),
      },
      body,
    }),
  )
  expect(status).toBe(200)
  await lab.clock.advance(15_000)
}
const vmOf = (vmid: number) => lab.sim.vms().find((vm) => vm.vmid === vmid)
const codes = (round: Round) => wrong(round).map(({ code }) => code)
const eventTypes = () => lab.outcomes.map(({ type }) => type)
const steps = (uid: string, since: Row) =>
  rowOf(uid)
    .timeline.slice(since.timeline.length)
    .map(({ step }) => step)

/** One VM for each ready proxy, of its own number, and no seed but theirs. */
function expectOrder(): void {
  const rows = lab.ledger.rows().filter(({ phase }) => phase === 'Ready')
  const left = lab.leftOvers()
  expect(left.vms.sort()).toEqual(rows.map(({ place }) => place?.vmid).sort())
  expect(left.volumes.filter((volid) => volid.includes('iso/')).sort()).toEqual(
    rows.map(({ seed }) => seed).sort(),
  )
  expect(lab.queues.deadLetters).toEqual([])
}

const VISIBLE = { role: 'Sees', path: '/vms', privileges: ['VM.Audit'] }
/** A token that sees every VM of the cluster. */
function seesAll() {
  const world = defaultWorld()
  const acl = ['egress@pve', 'egress@pve!ctl'].map((ugid) => ({
    path: VISIBLE.path,
    ugid,
    role: VISIBLE.role,
    propagate: true,
  }))
  // On a template a deeper entry hides what is granted above.
  return {
    ...world,
    roles: { ...world.roles, [VISIBLE.role]: VISIBLE.privileges },
    acl: [...(world.acl ?? []), ...acl],
  }
}

describe('a ready proxy whose VM', () => {
  it('was stopped is started again, and the world is told nothing', async () => {
    const { row, node, vmid } = await readyOne()
    await qm(node, 'stop', vmid)
    const round = await lab.round()
    expect(found(round, 'Stopped')).toMatchObject([
      { target: 'proxy', where: 'alpha', node, done: 'taken up again at start' },
    ])
    await lab.run()
    expect(rowOf('alpha')).toMatchObject({
      phase: 'Ready',
      place: row.place,
      address: row.address,
      readyAt: row.readyAt,
    })
    expect(vmOf(vmid)?.running).toBe(true)
    expect(steps('alpha', row)).toEqual(['start', 'address', 'verify'])
    expect(lab.outcomes).toEqual([])
    expect(wrong(await lab.round())).toEqual([])
    expectOrder()
  })

  it('was stopped is made anew where the policy says so', async () => {
    const { row, node, vmid } = await readyOne({ config: { check: { stopped: 'replace' } } })
    await qm(node, 'stop', vmid)
    await lab.round()
    await lab.run()
    expect(rowOf('alpha')).toMatchObject({ phase: 'Ready', generation: 1, mac: row.mac })
    expect(steps('alpha', row).slice(0, 5)).toEqual(['stop', 'unseed', 'destroy', 'release', 'reserve'])
    expectOrder()
  })

  it('was stopped is only reported where the policy says so', async () => {
    const { row, node, vmid } = await readyOne({ config: { check: { stopped: 'report' } } })
    await qm(node, 'stop', vmid)
    expect(found(await lab.round(), 'Stopped')).toMatchObject([
      { level: 'warning', line: `qm start ${vmid} # on ${node}` },
    ])
    await lab.run()
    expect(rowOf('alpha').turn).toBe(row.turn)
    expect(vmOf(vmid)?.running).toBe(false)
  })

  it.each(['linked', 'full'] as const)('vanished is made anew from a %s clone', async (clone) => {
    const { row, node, vmid } = await readyOne({ cluster: { clone } })
    await destroyed(node, vmid)
    expect(found(await lab.round(), 'Gone')).toMatchObject([{ where: 'alpha', done: 'being replaced' }])
    await lab.run()
    expect(rowOf('alpha')).toMatchObject({ phase: 'Ready', generation: 1, mac: row.mac })
    expect(steps('alpha', row)).toEqual([
      ...['stop', 'unseed', 'destroy', 'release'],
      ...['reserve', 'clone', 'seed', 'configure', 'start', 'address', 'verify'],
    ])
    expect(wrong(await lab.round())).toEqual([])
    expectOrder()
  })

  it('was replaced by another’s at its number is made anew elsewhere, and the other is not touched', async () => {
    const { row, node, vmid } = await readyOne({ world: seesAll() })
    await destroyed(node, vmid)
    await strangersVm(node, vmid)
    const before = vmOf(vmid)
    expect(found(await lab.round(), 'Gone')).toMatchObject([
      { text: expect.stringContaining('another’s VM') },
    ])
    await lab.run()
    expect(rowOf('alpha').phase).toBe('Ready')
    expect(rowOf('alpha').place?.vmid).not.toBe(vmid)
    expect(vmOf(vmid)).toEqual(before)
    expect(lab.claims.all().filter(({ partition }) => partition === 'vmid#lab')).toMatchObject([
      { owner: 'alpha', sort: String(rowOf('alpha').place?.vmid) },
    ])
    expect(rowOf('alpha').mac).toBe(row.mac)
    lab.remove('alpha')
    await lab.run()
    expect(vmOf(vmid)).toEqual(before)
  })

  it('was replaced by what our token may not see is only reported: it may be ours, outside its pool', async () => {
    const { row, node, vmid } = await readyOne()
    await destroyed(node, vmid)
    await strangersVm(node, vmid)
    expect(found(await lab.round(), 'Hidden')).toMatchObject([
      { level: 'failure', line: expect.stringContaining(`qm config ${vmid}`) },
    ])
    await lab.run()
    expect(rowOf('alpha')).toMatchObject({ phase: 'Ready', turn: row.turn })
  })

  it('lost its mark gets it back, and the world is told nothing', async () => {
    const { row, node, vmid } = await readyOne()
    await qm(node, 'set', vmid, '--description', 'a note of mine')
    expect(found(await lab.round(), 'MarkLost')).toMatchObject([{ done: 'taken up again at start' }])
    await lab.run()
    expect(String(vmOf(vmid)?.config.description)).toMatch(/^a note of mine[\s\S]*"uid":"alpha"/)
    expect(rowOf('alpha')).toMatchObject({ phase: 'Ready', place: row.place })
    expect(lab.outcomes).toEqual([])
    expect(wrong(await lab.round())).toEqual([])
  })

  it('lost its mark and its name is left alone, with the line to restore', async () => {
    const { row, node, vmid } = await readyOne()
    await qm(node, 'set', vmid, '--description', 'mine now', '--name', 'mine')
    const [doubt] = found(await lab.round(), 'MarkDoubtful')
    const line = /--description '(\{.*\})'/.exec(doubt?.line ?? '')?.[1] ?? ''
    await lab.run()
    expect(rowOf('alpha').turn).toBe(row.turn)
    await qm(node, 'set', vmid, '--description', line)
    expect(wrong(await lab.round())).toEqual([])
  })

  it.each<[what: string, make: (node: string, vmid: number) => Promise<void>]>([
    ['stopped', (node, vmid) => qm(node, 'stop', vmid)],
    ['without its mark', (node, vmid) => qm(node, 'set', vmid, '--description', 'x')],
  ])('is tagged egress-hold, and %s, is left alone', async (_, make) => {
    const { row, node, vmid } = await readyOne({
      config: { check: { stopped: 'replace', silent: 'replace' } },
    })
    await qm(node, 'set', vmid, '--tags', 'egress;egress-hold;egress-test')
    expect(found(await lab.round(), 'Held')).toMatchObject([{ level: 'ok' }])
    await make(node, vmid)
    const before = vmOf(vmid)
    const [held] = found(await lab.round(), 'Held')
    expect(held).toMatchObject({ level: 'warning', where: 'alpha' })
    // Nothing is promised that is not done.
    expect(held?.text).not.toMatch(/again|anew/)
    await lab.run()
    expect(vmOf(vmid)).toEqual(before)
    expect(rowOf('alpha').turn).toBe(row.turn)
  })

  it.each(['io-error', 'internal-error', 'guest-panicked'])('is in state %s is reported', async (state) => {
    const { row, node, vmid } = await readyOne()
    lab.sim.setQemu(vmid, state)
    expect(found(await lab.round(), 'Broken')).toMatchObject([
      { level: 'failure', text: expect.stringContaining(state) },
    ])
    await lab.run()
    expect(rowOf('alpha').turn).toBe(row.turn)
    expect(node).toBe(rowOf('alpha').place?.node)
  })

  it('is locked by a backup is left to it', async () => {
    const { row, node, vmid } = await readyOne()
    await qm(node, 'stop', vmid)
    await qm(node, 'set', vmid, '--lock', 'backup')
    expect(found(await lab.round(), 'Locked')).toHaveLength(1)
    await lab.run()
    expect(rowOf('alpha').turn).toBe(row.turn)
  })

  // Report: bpg/terraform-provider-proxmox#391
  it('moved to another node is found there', async () => {
    const known = defaultWorld()
    const storages = known.storages.map((one) => ({ ...one, shared: true }))
    const shared = { storageShared: true, isoStorageShared: true, clone: 'full' }
    const { node, vmid } = await readyOne({ world: { ...known, storages }, cluster: shared })
    const other = node === 'pve1' ? 'pve2' : 'pve1'
    await qm(node, 'stop', vmid)
    await qm(node, 'migrate', vmid, other)
    lab.sim.setNode(node, 'hung')
    const startedAt = lab.clock.now()
    const round = await lab.round()
    expect(found(round, 'Stopped')).toMatchObject([{ node: other, done: 'taken up again at start' }])
    // Nobody asked the node that it left.
    expect(lab.clock.now() - startedAt).toBeLessThanOrEqual(20_000)
  })
})

describe('a ready proxy that does not answer', () => {
  const deaf: CheckOptions['ports'] = () => {
    const silent = async () => ({ kind: 'silent', detail: 'ECONNREFUSED' }) as const
    return { probe: { http: silent, tcp: silent } }
  }

  it('is counted, and after so many rounds a failure, but left as it is', async () => {
    const { row } = await readyOne({ ports: deaf })
    const levels: string[] = []
    for (let round = 0; round < 4; round++)
      levels.push(...found(await lab.round(), 'Silent').map(({ level }) => level))
    expect(levels).toEqual(['warning', 'warning', 'failure', 'failure'])
    expect(lab.saved.get('lab')).toMatchObject({ silent: { alpha: 4 } })
    await lab.run()
    expect(rowOf('alpha').turn).toBe(row.turn)
  })

  // Report: veertuinc/anklet#40
  it('is made anew after so many rounds where the policy says so, and counts from nothing then', async () => {
    const { row } = await readyOne({ ports: deaf, config: { check: { silent: 'replace', silentRounds: 2 } } })
    await lab.round()
    expect(rowOf('alpha').turn).toBe(row.turn)
    await lab.round()
    await lab.run()
    expect(steps('alpha', row)[0]).toBe('stop')
    expect(rowOf('alpha').phase).toBe('Ready')
    expectOrder()
  })

  it('is counted from its last answer on', async () => {
    let heard = false
    await readyOne({
      ports: () => {
        const probe = async () => ({ kind: heard ? 'answers' : 'silent', detail: '' }) as const
        return { probe: { http: probe, tcp: probe } }
      },
    })
    await lab.round()
    heard = true
    await lab.round()
    expect(lab.saved.get('lab')).toMatchObject({ silent: {} })
  })
})

describe('the guests of ready proxies', () => {
  const uids = Array.from({ length: 8 }, (_, index) => `proxy-${index}`)
  const asks = (from: number) =>
    lab.sim
      .calls()
      .slice(from)
      .filter(({ path }) => path.endsWith('network-get-interfaces'))

  it('are not asked where their proxies answer through', async () => {
    await ready(uids)
    const before = lab.sim.calls().length
    await lab.round()
    expect(asks(before)).toEqual([])
  })

  it.each(['tcp', 'none'] as const)('are asked where the probe is %s, and proves nothing', async (probe) => {
    await ready(uids, { config: { verify: { probe, probeFrom: ['127.0.0.1/32'] } } })
    const before = lab.sim.calls().length
    expect((await lab.round()).summary.proxies).toMatchObject({ ready: 8, fine: 8 })
    expect(asks(before)).toHaveLength(8)
  })

  it('are asked one at a time on each node, and no more of them once three kept silent', async () => {
    await ready(uids, { nodes: 1, config: { verify: { probe: 'tcp', probeFrom: ['127.0.0.1/32'] } } })
    lab.sim.faults.add({ match: { path: 'network-get-interfaces' }, effect: { kind: 'agentHangs' } })
    const before = lab.sim.calls().length
    const round = await lab.round()
    expect(round.summary.proxies).toMatchObject({ ready: 8, fine: 8, unseen: 0 })
    expect(found(round, 'SilentAgent')).toMatchObject([
      { level: 'warning', target: 'proxies', where: 'pve1' },
    ])
    const asked = asks(before)
    expect(asked).toHaveLength(3)
    for (const [index, { atMs, tookMs = 0 }] of asked.entries()) {
      expect(tookMs).toBeGreaterThan(2000)
      expect(asked[index + 1]?.atMs ?? Number.POSITIVE_INFINITY).toBeGreaterThanOrEqual(atMs + tookMs)
    }
  })

  it('are left to the life cycle that is just asking on that node', async () => {
    const { node } = await readyOne({ config: { verify: { probe: 'tcp', probeFrom: ['127.0.0.1/32'] } } })
    await lab.claims.takeAgentTurn('lab', node, 'another')
    const before = lab.sim.calls().length
    expect((await lab.round()).summary.proxies).toMatchObject({ fine: 1 })
    expect(asks(before)).toEqual([])
  })
})

describe('a ready proxy whose address changed', () => {
  const NEW = '127.9.9.9'

  /** The guest of every VM has moved to the new address once `moved.on`, and its proxy answers there alone. */
  function moving() {
    const moved = { on: false, failSaves: 0 }
    const interpose: CheckOptions['interpose'] = ({ surroundings, exchange }) => ({
      surroundings: {
        ...surroundings,
        ledger: {
          ...surroundings.ledger,
          async save(row, token) {
            if (row.phase === 'Ready' && moved.failSaves-- > 0) throw new Error('the table does not answer')
            await surroundings.ledger.save(row, token)
          },
        },
        probe: {
          ...surroundings.probe,
          http: async (target) => {
            if (!moved.on) return surroundings.probe.http(target)
            return target.host === NEW
              ? { kind: 'answers', detail: '' }
              : { kind: 'silent', detail: 'ECONNREFUSED' }
          },
        },
      },
      exchange: async (endpoint, request) => {
        const answer = await exchange(endpoint, request)
        if (!moved.on || !request.path.endsWith('network-get-interfaces')) return answer
        return { ...answer, body: answer.body.replaceAll(/"127\.(?!0\.0\.1")[\d.]+"/g, `"${NEW}"`) }
      },
    })
    return { moved, interpose }
  }

  it('tells the change once, with the address before, and is well from then on', async () => {
    const { moved, interpose } = moving()
    const { row } = await readyOne({ interpose })
    moved.on = true
    expect(found(await lab.round(), 'AddressChanged')).toMatchObject([{ done: 'taken up again at start' }])
    await lab.run()
    expect(rowOf('alpha')).toMatchObject({
      phase: 'Ready',
      address: NEW,
      endpoint: `http://${NEW}:3128`,
      place: row.place,
    })
    expect(lab.outcomes).toEqual([
      {
        type: 'ProxyChanged',
        eventId: expect.stringMatching(/^alpha:1:\d+$/),
        uid: 'alpha',
        generation: 1,
        address: NEW,
        endpoint: `http://${NEW}:3128`,
        previousAddress: row.address,
      },
    ])
    expect(wrong(await lab.round())).toEqual([])
    await lab.run()
    expect(lab.outcomes).toHaveLength(1)
  })

  it('tells it with one id, however often the row could not be saved', async () => {
    const { moved, interpose } = moving()
    await readyOne({ interpose })
    Object.assign(moved, { on: true, failSaves: 3 })
    await lab.round()
    await lab.run()
    expect(rowOf('alpha')).toMatchObject({ phase: 'Ready', address: NEW })
    expect(eventTypes()).toEqual(['ProxyChanged', 'ProxyChanged', 'ProxyChanged', 'ProxyChanged'])
    expect(new Set(lab.outcomes.map(({ eventId }) => eventId)).size).toBe(1)
  })

  it('tells both when it changes back', async () => {
    const { moved, interpose } = moving()
    const { row } = await readyOne({ interpose })
    for (const on of [true, false]) {
      moved.on = on
      await lab.round()
      await lab.run()
    }
    expect(lab.outcomes).toMatchObject([
      { type: 'ProxyChanged', address: NEW, previousAddress: row.address },
      { type: 'ProxyChanged', address: row.address, previousAddress: NEW },
    ])
  })

  it('is found out by its guest also where another proxy answers at the old address', async () => {
    await ready(['alpha', 'beta'])
    const beta = rowOf('beta')
    // As if alpha had its row's address from days ago, which is beta's now.
    lab.ports.rows = async () =>
      lab.ledger
        .rows()
        .map((row) => (row.uid === 'alpha' && beta.address ? { ...row, address: beta.address } : row))
    expect(found(await lab.round(), 'AddressChanged').map(({ where }) => where)).toEqual(['alpha'])
  })

  it('tells ProxyReady, not a change, when it had failed meanwhile', async () => {
    const { moved, interpose } = moving()
    const { node, vmid } = await readyOne({ interpose })
    await qm(node, 'stop', vmid)
    lab.sim.faults.add({
      match: { taskType: 'qmstart' },
      times: 1,
      effect: { kind: 'taskFails', exitText: '403 Permission check failed', effects: 'none' },
    })
    await lab.round()
    await settled(lab, 'alpha')
    expect(eventTypes()).toEqual(['ProxyFailed'])
    moved.on = true
    lab.queues.publish('create', JSON.stringify({ type: 'Resume', uid: 'alpha', turn: rowOf('alpha').turn }))
    await lab.run()
    expect(lab.outcomes.slice(1)).toMatchObject([{ type: 'ProxyReady', address: NEW }])
  })
})

describe('a round', () => {
  const uids = Array.from({ length: 8 }, (_, index) => `proxy-${index}`)
  const stopAll = async () => {
    for (const { place } of lab.ledger.rows()) if (place) lab.sim.qm(place.node, ['stop', String(place.vmid)])
    await lab.clock.advance(15_000)
  }
  const running = () => lab.sim.vms().filter((vm) => !vm.template && vm.running).length

  it.each(['down', 'hung', 'unreachable'] as const)(
    'leaves proxies of a node that is %s alone, and says so once',
    async (state) => {
      const rows = await ready(uids)
      const turns = rows.map(({ turn }) => turn)
      lab.sim.setNode('pve2', state)
      const round = await lab.round()
      const there = rows.filter(({ place }) => place?.node === 'pve2').length
      expect(there).toBeGreaterThan(0)
      expect(found(round, 'Unknown')).toMatchObject([
        { target: 'proxies', where: 'pve2', text: `${there} ready on it: unknown, and left alone` },
      ])
      expect(codes(round)).toContain(state === 'unreachable' ? 'NodeOffline' : 'NodeSilent')
      expect(round.summary.proxies).toMatchObject({ ready: 8, fine: 8 - there, unknown: there, resumed: 0 })
      await lab.run()
      expect(lab.ledger.rows().map(({ turn }) => turn)).toEqual(turns)
    },
  )

  it.each(['pve1', 'pve2', 'pve3'])(
    'is not held up by %s, which hangs: the others’ proxies are taken up at once',
    async (hung) => {
      await ready(uids)
      await stopAll()
      lab.sim.setNode(hung, 'hung')
      const startedAt = lab.clock.now()
      const sentAt: number[] = []
      const { send } = lab.ports.queues
      lab.ports.queues = {
        send: async (...args) => {
          sentAt.push(lab.clock.now() - startedAt)
          await send(...args)
        },
      }
      const round = await lab.round()
      const elsewhere = lab.ledger.rows().filter(({ place }) => place?.node !== hung).length
      expect(sentAt).toHaveLength(elsewhere)
      // Nobody waited for an answer of the hung node.
      expect(Math.max(...sentAt)).toBeLessThan(1000)
      // Its endpoint and the node itself each had their time, at once.
      expect(lab.clock.now() - startedAt).toBeLessThanOrEqual(20_000)
      expect(found(round, 'Unreachable')).toMatchObject([{ where: `https://${hung}:8006` }])
      expect(found(round, 'NodeSilent')).toMatchObject([{ where: hung, level: 'failure' }])
    },
  )

  it('looks a second time at what answers too late the first time, and says nothing of it', async () => {
    await ready(uids)
    const late = { match: { path: '^/nodes$|/network' }, effect: { kind: 'delay', ms: 30_000 } } as const
    // Each node’s first answer, and each endpoint’s.
    lab.sim.faults.add({ ...late, times: 6 })
    expect(wrong(await lab.round())).toEqual([])
    lab.sim.faults.clear()
    lab.sim.faults.add(late)
    const round = await lab.round()
    expect(found(round, 'Unexpected')).not.toEqual([])
    for (const { text, line } of found(round, 'Unexpected')) {
      expect(text).toMatch(/: no answer within \d+ s, asked twice$/)
      expect(line).toMatch(/^egress check # once more: .* if it stays so/)
    }
  })

  it('that nobody answers finds that out, and touches nothing', async () => {
    const rows = await ready(uids)
    for (const node of ['pve1', 'pve2', 'pve3']) lab.sim.setNode(node, 'hung')
    const startedAt = lab.clock.now()
    const round = await lab.round()
    expect(lab.clock.now() - startedAt).toBeLessThanOrEqual(10_000)
    expect(found(round, 'NoEndpoint')).toHaveLength(1)
    expect(round.summary.proxies).toMatchObject({ ready: 8, unknown: 8 })
    expect(lab.queues.size()).toBe(0)
    expect(lab.ledger.rows().map(({ turn }) => turn)).toEqual(rows.map(({ turn }) => turn))
  })

  it('takes up no more than it may; the next goes on', async () => {
    await ready(uids, { config: { check: { maxResumes: 3 } } })
    await stopAll()
    const first = await lab.round()
    expect(first.summary.proxies).toMatchObject({ drifted: 8, resumed: 3 })
    expect(found(first, 'Stopped').filter(({ done }) => done?.startsWith('not now'))).toHaveLength(5)
    for (let round = 0; round < 2; round++) {
      await lab.run()
      await lab.round()
    }
    await lab.run()
    expect(running()).toBe(uids.length)
    expectOrder()
  })

  it('whose time is over says what it did not see, and the next begins there', async () => {
    const rows = await ready(uids)
    // Each answer of a VM's configuration takes as long as a quarter of the round.
    lab.sim.faults.add({
      match: { method: 'GET', path: '/qemu/5\\d+/config$' },
      effect: { kind: 'delay', ms: 10_000 },
    })
    const seen = new Set<string>()
    for (let round = 0; round < 4; round++) {
      const before = lab.sim.calls().length
      const { reports } = await lab.round(16_000)
      const [report] = reports
      expect(report?.proxies.unknown).toBe(0)
      for (const { path } of lab.sim.calls().slice(before))
        seen.add(/qemu\/(5\d+)\/status/.exec(path)?.[1] ?? '')
    }
    seen.delete('')
    expect([...seen].sort()).toEqual(rows.map(({ place }) => String(place?.vmid)).sort())
  })

  it('at the same time as another does no harm', async () => {
    await ready(uids)
    await stopAll()
    await lab.clock.until(Promise.all([checkRound(lab.ports, 52_000), checkRound(lab.ports, 52_000)]))
    await lab.run()
    expect(running()).toBe(uids.length)
    const starts = lab.sim.tasks().filter(({ type, exitstatus }) => type === 'qmstart' && exitstatus === 'OK')
    expect(starts).toHaveLength(2 * uids.length) // Once at birth, once now.
    expect(lab.outcomes).toEqual([])
    expectOrder()
  })

  it.each([0, 1, 7])('that dies after %i messages does no harm, and the next goes on', async (messages) => {
    await ready(uids)
    await stopAll()
    const { send } = lab.ports.queues
    const whole = { ...lab.ports }
    let left = messages
    Object.assign(lab.ports, {
      queues: {
        send: async (...args: Parameters<typeof send>) =>
          left-- > 0 ? send(...args) : new Promise(() => {}),
      },
      reports: {
        ...lab.ports.reports,
        of: () => ({ save: () => new Promise(() => {}), latest: async () => undefined }),
      },
    })
    void checkRound(lab.ports, 52_000)
    await lab.clock.advance(60_000)
    Object.assign(lab.ports, whole)
    await lab.run()
    expect(running()).toBe(messages)
    await lab.round()
    await lab.run()
    expect(running()).toBe(uids.length)
    expect(lab.outcomes).toEqual([])
    expectOrder()
  })

  // Report: github-aws-runners/terraform-aws-github-runner#4262
  it('does not believe a row that is behind: what is being deleted is not taken up', async () => {
    const { node, vmid } = await readyOne()
    const stale = lab.ledger.rows()
    lab.remove('alpha')
    await lab.run(() => vmOf(vmid)?.running === false)
    lab.ports.rows = async () => stale
    const round = await lab.round()
    expect(wrong(round)).toEqual([])
    expect(node).toBeDefined()
    await lab.run()
    expect(rowOf('alpha').phase).toBe('Deleted')
    expect(lab.leftOvers()).toEqual({ vms: [], volumes: [] })
  })

  // Report: claffin/cloudproxy#49
  it('changes nothing on a cluster, whatever it finds', async () => {
    const { node, vmid } = await readyOne()
    await qm(node, 'stop', vmid)
    const before = lab.sim.calls().length
    await lab.round()
    const methods = new Set(
      lab.sim
        .calls()
        .slice(before)
        .map(({ method }) => method),
    )
    expect([...methods]).toEqual(['GET'])
  })

  it('says of what it could not be: an error of its own is a finding of that cluster', async () => {
    await readyOne({
      ports: () => ({
        claimedVmids: async () => {
          throw new Error('the table does not answer')
        },
      }),
    })
    const round = await lab.round()
    expect(codes(round) satisfies FindingCode[]).toEqual(['Unexpected', 'Unknown'])
    expect(found(round, 'Unexpected')[0]?.text).toContain('the table does not answer')
  })
})
