import { afterEach, expect, it } from 'vitest'
import type { Report } from '../../../functions/gc/event.ts'
import type { Row } from '../../../lib/record.ts'
import { seeingWorld, withGc } from '../../lab/gc-lab.ts'
import { type CheckLab, openCheckLab, wrong } from '../check/check-lab.ts'

// Fifty proxies, and everything that hands can do to them at once: then only gc, check and redrives.

let lab: CheckLab
let gc: ReturnType<typeof withGc>
afterEach(() => lab?.close())

const GRACE_MS = 120_000

const uids = Array.from({ length: 50 }, (_, index) => `p${String(index).padStart(2, '0')}`)
const range = (from: number, to: number) => uids.slice(from, to)

const rowOf = (uid: string): Row & { place: NonNullable<Row['place']> } => {
  const row = lab.row(uid)
  if (!row?.place) throw new Error(`${uid} has no place`)
  return { ...row, place: row.place }
}

/** Types a line at the host of a proxy's VM; `$` is its number. */
async function type(uid: string, ...lines: string[]): Promise<void> {
  const { node, vmid } = rowOf(uid).place
  for (const line of lines) {
    const words = [...line.replaceAll('$', String(vmid)).matchAll(/'([^']*)'|(\S+)/g)]
    const { stderr } = lab.sim.root(
      node,
      words.map(([, quoted, plain = '']) => quoted ?? plain),
    )
    expect(stderr).toBe('')
    await lab.clock.advance(10_000)
  }
}

const upload = (node: string, filename: string) =>
  gc.finished(gc.admin.upload({ node, storage: 'local', filename, bytes: new Uint8Array([1]) }))

const copy = (uid: string, vmid: number, name: string, description: string, pool?: string) =>
  gc.finished(
    gc.admin.clone({
      template: rowOf(uid).place,
      vmid,
      name,
      description,
      full: true,
      ...(pool === undefined ? {} : { pool }),
    }),
  )

const about = ({ kind, ...rest }: Report['actions'][number]) => {
  const { since: _, state: __, why: ___, ...what } = rest
  return JSON.stringify({ kind, ...what })
}

/** A plan, and the run right after it: whatever the one said, the other did, and nothing else. */
async function asPlanned(): Promise<Report> {
  const plan = await gc.gc(true)
  const run = await gc.gc()
  expect(run.actions.map(about)).toEqual(plan.actions.map(about))
  for (const { state, ...action } of run.actions)
    expect({ ...action, state }).toMatchObject({ state: 'done' })
  expect(run.heldBack).toEqual(plan.heldBack)
  return run
}

/** Lets time go by, and whatever happens in it happen. */
async function later(ms: number): Promise<void> {
  const until = lab.clock.now() + ms
  await lab.run(() => lab.clock.now() >= until)
  await lab.clock.advance(Math.max(0, until - lab.clock.now()))
}

const isOrderly = ({ actions, noted, heldBack, waiting }: Report) =>
  actions.length + noted.length + waiting.length + Object.keys(heldBack).length === 0

it('fifty proxies in disorder come to order by gc, check and redrives alone, as each plan said, and nothing foreign is touched', async () => {
  lab = await openCheckLab({
    world: seeingWorld({ version: 9, nodes: 3 }),
    config: {
      limits: { maxDeletions: 8, clonesPerStorage: 10 },
      timings: { maxClockSkewSeconds: 0, graceSeconds: GRACE_MS / 1000, stallSeconds: 400 },
    },
  })
  gc = withGc(lab)
  for (const uid of uids) lab.request(uid)
  await lab.run(() => uids.every((uid) => lab.row(uid)?.phase === 'Ready'))
  expect(uids.map((uid) => lab.row(uid)?.phase)).toEqual(uids.map(() => 'Ready'))

  // Somebody else's, some of it looking like ours.
  await copy(
    'p20',
    5901,
    'by-hand',
    String(lab.sim.vms().find(({ vmid }) => vmid === rowOf('p20').place.vmid)?.config.description),
  )
  // One in the pool, where our token sees it; of the others it sees the disks alone.
  await copy('p20', 5902, 'egress-p01-aaaaaa', 'no mark', 'egress')
  await upload('pve1', 'egress-test-p18-g1-copy.iso')
  await upload('pve1', 'egress-prod-p18-g1.iso')
  const isForeign = (name: string) => /^(by-hand|egress-p01-aaaaaa|debian-12.*)$|-copy|prod/.test(name)
  const foreign = () => ({
    vms: lab.sim.vms().filter(({ name = '' }) => isForeign(name)),
    volumes: lab.sim
      .volumes()
      .filter(({ volid, vmid = 0 }) => isForeign(volid) || [5901, 5902].includes(vmid)),
  })
  const before = foreign()
  expect(before.vms).toHaveLength(5)

  // Stopped, destroyed, destroyed with a disk left, kept, unmarked, untagged.
  for (const uid of range(12, 15)) await type(uid, 'qm stop $')
  for (const uid of range(15, 17)) await type(uid, 'qm stop $', 'qm destroy $ --purge')
  const losing = [
    'qm stop $',
    'pvesm set vmdata --disable 1',
    'qm destroy $ --purge',
    'pvesm set vmdata --disable 0',
  ]
  for (const uid of ['p17', 'p11']) await type(uid, ...losing)
  await type('p24', 'qm set $ --protection 1')
  await type('p25', "qm set $ --tags 'egress;egress-hold;egress-test'", 'qm stop $')
  await type('p26', 'qm set $ --description mine')
  await type('p27', 'qm set $ --delete tags')
  // Rows lost, more than a run may delete; seeds copied; messages lost in the middle of deletions.
  for (const uid of range(0, 12)) lab.ledger.drop(uid)
  const seen = (there: string[]) => range(28, 50).filter((uid) => there.includes(rowOf(uid).place.node))
  for (const uid of [...seen(['pve3']).slice(0, 2), ...seen(['pve1', 'pve2']).slice(0, 2)]) {
    const { node } = rowOf(uid).place
    await upload(['pve1', 'pve2'].find((one) => one !== node) ?? '', `egress-test-${uid}-g1.iso`)
  }
  for (const uid of range(21, 25)) lab.remove(uid)
  await lab.run(() =>
    range(21, 24).every((uid) => lab.row(uid)?.phase === 'Deleting' && lab.row(uid)?.turn !== undefined),
  )
  lab.queues.purge('delete')
  // A right taken away, and a node.
  const grants = (verb: string) =>
    lab.sim.root(
      'pve1',
      `pveum acl ${verb} /vms/9001 --roles EgressTemplate --users egress@pve --tokens egress@pve!ctl`.split(
        ' ',
      ),
    )
  expect(grants('delete').exitCode).toBe(0)
  lab.sim.setNode('pve3', 'unreachable')
  await lab.clock.advance(60_000)

  let isBack = false
  let runs = 0
  for (let isOver = false; !isOver; runs++) {
    expect(runs, 'it comes to order').toBeLessThan(12)
    await lab.round()
    const report = await asPlanned()
    await later(GRACE_MS + 10_000)
    for (const { uid } of lab.ledger.rows().filter(({ phase }) => phase === 'Failed')) {
      // What a person mends: the hint says it, and another test types each.
      if (rowOf(uid).problem?.code === 'Forbidden') grants('modify')
      if (rowOf(uid).problem?.code === 'Protected') await type(uid, 'qm set $ --protection 0')
      const { turn, failedStep = 'stop' } = rowOf(uid)
      const side = failedStep === 'clone' ? 'create' : 'delete'
      lab.queues.publish(side, JSON.stringify({ type: 'Resume', uid, turn }))
    }
    isOver = isBack && isOrderly(report)
    if (runs >= 2 && !isBack) {
      lab.sim.setNode('pve3', 'up')
      isBack = true
      await lab.clock.advance(30_000)
    }
  }

  // The held one is let go last.
  await type('p25', "qm set $ --tags 'egress;egress-test'")
  await lab.round()
  await lab.run()
  expect(wrong(await lab.round())).toEqual([])
  const rows = lab.ledger.rows().filter(({ phase }) => phase !== 'Deleted')
  expect(rows.map(({ uid, phase }) => `${uid} ${phase}`).sort()).toEqual(
    uids.filter((_, index) => index >= 12 && (index < 21 || index > 24)).map((uid) => `${uid} Ready`),
  )
  const ours = lab.sim.vms().filter(({ name = '', template }) => !template && !isForeign(name))
  expect(ours.map(({ vmid }) => vmid).sort()).toEqual(rows.map(({ place }) => place?.vmid).sort())
  expect(ours.every(({ running }) => running)).toBe(true)
  const isos = lab.sim.volumes().filter(({ content, volid }) => content === 'iso' && !isForeign(volid))
  expect(isos.map(({ volid, node }) => `${volid} ${node}`).sort()).toEqual(
    rows.map(({ seed, place }) => `${seed} ${place?.node}`).sort(),
  )
  expect(foreign()).toEqual(before)
  expect(new Set(lab.claims.all().map(({ owner }) => owner))).toEqual(new Set(rows.map(({ uid }) => uid)))
  expect(lab.claims.suspects()).toEqual([])
})
