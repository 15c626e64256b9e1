import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { GcPorts } from '../../../functions/gc/run.ts'
import { type GcLab, GRACE_MS, openGcLab } from '../../lab/gc-lab.ts'
import { expectOrder, type Foreign, foreignIn, runs, workFor } from './order.ts'

/** What happens to an installation, by publishers, by hand, by accident. Numbers choose among what there is. */
type Happening =
  | { kind: 'request'; ttl: boolean }
  | { kind: 'delete'; which: number }
  | { kind: 'pass'; seconds: number }
  | { kind: 'work'; ms: number }
  | { kind: 'drop row'; which: number }
  | { kind: 'purge'; side: 'create' | 'delete' }
  | { kind: 'copy seed'; which: number; node: number }
  | { kind: 'clone by hand'; which: number }
  | { kind: 'destroy by hand'; which: number }
  | { kind: 'claim of a ghost'; vmid: number; slot: boolean }
  | { kind: 'foreign VM'; vmid: number; node: number }
  | { kind: 'node'; node: number; state: 'down' | 'hung' | 'unreachable' | 'up' }
  /** `missing`: which of the rows its index does not show, by the bits of the number, over and over. */
  | { kind: 'gc'; times: number; missing: number }

const which = fc.nat(20)
const node = fc.integer({ min: 1, max: 3 })
const happening: fc.Arbitrary<Happening> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('request'), ttl: fc.boolean() }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('delete'), which }) },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant('pass'), seconds: fc.integer({ min: 1, max: 600 }) }),
  },
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('work'), ms: fc.integer({ min: 1, max: 60_000 }) }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('drop row'), which }) },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('purge'), side: fc.constantFrom('create', 'delete') }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('copy seed'), which, node }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('clone by hand'), which }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('destroy by hand'), which }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('claim of a ghost'),
      vmid: fc.integer({ min: 5000, max: 5999 }),
      slot: fc.boolean(),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('foreign VM'),
      vmid: fc.integer({ min: 5000, max: 5999 }),
      node,
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('node'),
      node,
      state: fc.constantFrom('down', 'hung', 'unreachable', 'up'),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('gc'),
      times: fc.integer({ min: 1, max: 2 }),
      missing: fc.oneof(fc.constant(0), fc.nat(7)),
    }),
  },
)

type Story = { lab: GcLab; foreign: Foreign; requests: number }

const pick = <T>(list: readonly T[], which: number): T | undefined =>
  list.length === 0 ? undefined : list[which % list.length]

async function happen(story: Story, what: Happening): Promise<void> {
  const { lab } = story
  const live = () =>
    lab.ledger.rows().filter(({ phase, orphanOf }) => phase !== 'Deleted' && orphanOf === undefined)
  switch (what.kind) {
    case 'request': {
      story.requests += 1
      lab.request(`p${story.requests}`, { spec: what.ttl ? { ttlSeconds: 600 } : {} })
      return
    }
    case 'delete':
      return lab.remove(`p${1 + (what.which % Math.max(1, story.requests))}`)
    case 'pass':
      return lab.clock.advance(what.seconds * 1000)
    case 'work':
      return workFor(lab, what.ms)
    case 'drop row': {
      const row = pick(live(), what.which)
      if (row) lab.ledger.drop(row.uid)
      return
    }
    case 'purge':
      return lab.queues.purge(what.side)
    case 'copy seed': {
      const row = pick(live(), what.which)
      const filename = row?.seed?.split(':iso/')[1]
      const at = `pve${what.node}`
      const isUp = lab.sim.nodes().some(({ name, state }) => name === at && state === 'up')
      if (filename === undefined || !isUp) return
      return lab.finished(
        lab.admin.upload({ node: at, storage: 'local', filename, bytes: new Uint8Array([1]) }),
      )
    }
    case 'clone by hand':
      return cloneByHand(story, what.which)
    case 'destroy by hand': {
      // Of a proxy that is still there, check would have to make a new one: here its row goes as well.
      const row = pick(
        live().filter(({ phase }) => phase === 'Ready'),
        what.which,
      )
      const vm = lab.sim.vms().find(({ vmid }) => vmid === row?.place?.vmid)
      if (!row || !vm || lab.sim.nodes().some(({ state }) => state !== 'up')) return
      lab.ledger.drop(row.uid)
      lab.sim.qm(vm.node, ['stop', String(vm.vmid)])
      await lab.clock.advance(30_000)
      lab.sim.qm(vm.node, ['destroy', String(vm.vmid)])
      return lab.clock.advance(30_000)
    }
    case 'claim of a ghost': {
      await lab.claims.takeVmid('lab', what.vmid, 'ghost')
      if (what.slot) await lab.claims.takeSlot(`clone#lab#vmdata#pve1`, 2, 'ghost')
      return
    }
    case 'foreign VM':
      return foreignVm(story, what.vmid, `pve${what.node}`)
    case 'node':
      return lab.sim.setNode(`pve${what.node}`, what.state)
    case 'gc': {
      const interpose = (ports: GcPorts): GcPorts => ({
        ...ports,
        inventory: {
          ...ports.inventory,
          rows: async () =>
            (await ports.inventory.rows()).filter((_, index) => ((what.missing >> (index % 3)) & 1) === 0),
        },
      })
      await lab.on(Promise.all(Array.from({ length: what.times }, () => lab.beginGc({ interpose }))))
      return
    }
  }
}

const allUp = (lab: GcLab) => lab.sim.nodes().every(({ state }) => state === 'up')

/** A person copies a proxy's VM: description, tags, drives and all. */
async function cloneByHand(story: Story, which: number): Promise<void> {
  const { lab } = story
  const vm = pick(
    lab.sim
      .vms()
      .filter(({ vmid, template, lock }) => !template && lock === undefined && !story.foreign.vms.has(vmid)),
    which,
  )
  const vmid = [5900, 5901, 5902, 5903].find((number) => !lab.sim.vms().some((one) => one.vmid === number))
  if (!vm || vmid === undefined || !allUp(lab)) return
  const description = String(vm.config.description ?? '')
  await lab.finished(
    lab.admin.clone({ template: vm, vmid, name: `copy-${vmid}`, description, full: true, pool: 'egress' }),
  )
  story.foreign = foreignIn(lab, story.foreign, vmid)
}

async function foreignVm(story: Story, vmid: number, on: string): Promise<void> {
  const { lab } = story
  if (lab.sim.vms().some((one) => one.vmid === vmid) || !allUp(lab)) return
  if (lab.claims.all().some(({ sort, owner }) => sort === String(vmid) && owner !== 'ghost')) return
  const template = { node: on, vmid: 8999 + Number(on.slice(3)) }
  await lab.finished(
    lab.admin.clone({ template, vmid, name: `web-${vmid}`, description: 'a web server', full: false }),
  )
  story.foreign = foreignIn(lab, story.foreign, vmid)
}

async function tell(happenings: readonly Happening[]): Promise<void> {
  const lab = await openGcLab()
  try {
    const story: Story = { lab, foreign: foreignIn(lab), requests: 0 }
    for (const what of happenings) await happen(story, what)
    for (const { name } of lab.sim.nodes()) lab.sim.setNode(name, 'up')
    await workFor(lab, GRACE_MS)
    await runs(lab, 3)
    expectOrder(lab, story.foreign)
    // … and nothing is found any more.
    const { actions, noted, warnings } = await lab.gc()
    expect({ actions, noted, warnings: warnings.filter(({ code }) => code !== 'StrayDisk') }).toEqual({
      actions: actions.filter(({ kind }) => kind === 'show disk' || kind === 'expire'),
      noted: [],
      warnings: [],
    })
  } finally {
    await lab.close()
  }
}

// A failing story is told again by the seed and path that fast-check prints: EGRESS_SEED=… EGRESS_PATH=… npx vitest run
// test/functions/gc/random.test.ts
const { EGRESS_SEED: seed, EGRESS_PATH: path, EGRESS_RUNS: numRuns } = process.env

// Report: macstadium/orka-github-actions-integration#66
it('any disorder is order again after three runs, and nothing of others was touched', async () => {
  await fc.assert(fc.asyncProperty(fc.array(happening, { minLength: 5, maxLength: 40, size: 'max' }), tell), {
    numRuns: Number(numRuns ?? 40),
    endOnFailure: false,
    ...(seed === undefined ? {} : { seed: Number(seed) }),
    ...(path === undefined ? {} : { path }),
  })
}, 600_000)
