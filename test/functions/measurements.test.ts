import { globSync, readFileSync } from 'node:fs'
import { afterEach, expect, it } from 'vitest'
import { LostRace } from '../../lib/ledger.ts'
import { METRICS, type Measurement, type MetricName } from '../../lib/metrics.ts'
import { next, wait } from '../../lib/outcome.ts'
import { ProxmoxError } from '../../lib/proxmox/index.ts'
import { CREATE_STEPS, DELETE_STEPS } from '../../lib/record.ts'
import { openGcLab } from '../lab/gc-lab.ts'
import { atStep, type Lab, openLab, settled } from '../lab/lab.ts'
import { aRow, NOW } from '../lib/a-row.ts'
import { openDesk } from '../lib/desk.ts'
import { openCheckLab } from './check/check-lab.ts'

let lab: Lab
afterEach(() => lab?.close())

const valuesOf = (name: MetricName, by: Measurement['by'] = {}) =>
  lab.measurements
    .filter(
      (one) =>
        one.name === name && Object.entries(by).every(([key, value]) => one.by[key as 'code'] === value),
    )
    .map(({ value }) => value)

it('a life is measured from its request to its end: how long it took, and in which steps', async () => {
  lab = await openLab()
  lab.request('alpha')
  const row = await settled(lab, 'alpha')
  expect(valuesOf('ProxyReady')).toEqual([1])
  const [ready] = lab.outcomes
  expect(ready?.type === 'ProxyReady' && valuesOf('TimeToReady')).toEqual([
    ready?.type === 'ProxyReady' && ready.timeToReadyMs / 1000,
  ])
  for (const step of CREATE_STEPS) {
    const entry = row.timeline.find((one) => one.step === step)
    expect(valuesOf('TimeInStep', { step })).toEqual([(entry?.ms ?? Number.NaN) / 1000])
  }
  expect(valuesOf('Waits', { why: 'task' }).length).toBeGreaterThan(2)

  lab.remove('alpha')
  await settled(lab, 'alpha')
  expect(valuesOf('ProxyDeleted')).toEqual([1])
  for (const step of DELETE_STEPS) expect(valuesOf('TimeInStep', { step })).toHaveLength(1)
  // Of each delivery its age; of each that a row waited for how late it came, which on this clock is never.
  expect(valuesOf('MessageAge')).toHaveLength(lab.decisions.length)
  expect(Math.max(...valuesOf('MessageAge'))).toBeGreaterThan(1)
  expect(new Set(valuesOf('Lateness'))).toEqual(new Set([0]))
})

it('waits are told apart by what they are for', async () => {
  lab = await openLab({ config: { limits: { clonesPerStorage: 1 } } })
  for (const uid of ['alpha', 'beta', 'gamma']) lab.request(uid)
  await lab.run(() => ['alpha', 'beta', 'gamma'].every((uid) => lab.row(uid)?.phase === 'Ready'))
  expect(valuesOf('Waits', { why: 'place' }).length).toBeGreaterThan(0)
  const vmid = lab.row('alpha')?.place?.vmid
  const vm = lab.sim.vms().find((one) => one.vmid === vmid)
  lab.sim.qm(vm?.node ?? '', ['set', String(vmid), '--lock', 'backup'])
  lab.remove('alpha')
  await lab.run(() => valuesOf('Waits', { why: 'lock' }).length > 0)
})

it('errors in passing are retries by their code, and what is given up is a failure by its own', async () => {
  lab = await openLab({ passwords: {} })
  lab.request('alpha', {
    spec: { proxy: { auth: { username: 'a', passwordParameter: '/egress/test/passwords/x' } } },
  })
  lab.request('beta')
  await atStep(lab, 'beta', 'start')
  for (const { name } of lab.world.nodes) lab.sim.setNode(name, 'unreachable')
  await lab.run(() => valuesOf('Retries', { code: 'Unreachable' }).length > 2)
  for (const { name } of lab.world.nodes) lab.sim.setNode(name, 'up')
  await settled(lab, 'beta')
  await settled(lab, 'alpha')
  expect(valuesOf('ProxyFailed', { code: 'PasswordMissing' })).toEqual([1])
  expect(valuesOf('ProxyFailed')).toEqual([1])
  lab.queues.publish('create', '{"type":"Nonsense"}')
  await lab.run()
  expect(valuesOf('EventsRefused', { code: 'InvalidEvent' })).toEqual([1])
})

it('runs of gc say what they found, and plans say nothing', async () => {
  const gcLab = await openGcLab()
  lab = gcLab
  lab.request('alpha')
  lab.request('beta')
  await settled(lab, 'alpha')
  await settled(lab, 'beta')
  // The table lost a row, and the queue a message.
  lab.ledger.drop('alpha')
  lab.remove('beta')
  await atStep(lab, 'beta', 'unseed')
  lab.queues.purge('delete')
  await gcLab.gc()
  await gcLab.grace()
  await gcLab.gc(true)
  expect(valuesOf('GcRuns')).toEqual([1])
  await gcLab.gc()
  expect(valuesOf('GcRuns')).toEqual([1, 1])
  expect(valuesOf('Orphans')).toEqual([0, 1])
  expect(valuesOf('StalledRows')).toEqual([0, 1])
})

it('runs of gc count what they are kept from deleting as well', async () => {
  const gcLab = await openGcLab({ config: { limits: { maxDeletions: 0 } } })
  lab = gcLab
  for (const uid of ['alpha', 'beta']) {
    lab.request(uid)
    await settled(lab, uid)
    lab.ledger.drop(uid)
  }
  await gcLab.gc()
  await gcLab.grace()
  const { actions, heldBack } = await gcLab.gc()
  expect(actions.filter(({ kind }) => kind === 'delete orphan')).toEqual([])
  expect(heldBack).toEqual({ 'delete orphan': 2 })
  expect(valuesOf('Orphans')).toEqual([0, 2])
})

it('rounds of check say how much is wrong, cluster by cluster, and how many proxies are ready', async () => {
  const checkLab = await openCheckLab()
  lab = checkLab
  lab.request('alpha')
  await settled(lab, 'alpha')
  const { summary } = await checkLab.round()
  expect(valuesOf('CheckFailures')).toEqual([summary.counts.failure])
  expect(valuesOf('CheckWarnings')).toEqual([summary.counts.warning])
  expect(valuesOf('ReadyProxies')).toEqual([1])
  lab.sim.setNode('pve2', 'down')
  const { summary: later } = await checkLab.round()
  expect(valuesOf('CheckFailures')).toEqual([summary.counts.failure, later.counts.failure])
  expect(later.counts.failure).toBeGreaterThan(0)
})

it('a row in the hands of another, a save that was lost, a late message and each kind of waiting are measured', async () => {
  const desk = openDesk()
  desk.script.run = () => next('seed')
  const measuredBy = async (act: () => Promise<unknown>) => {
    desk.measurements.length = 0
    await act()
    return desk.measurements
  }
  await desk.store(aRow())
  const taken = await desk.ledger.take('a', { kind: 'event' })
  if (taken.kind !== 'taken') throw new Error(taken.kind)
  const go = { type: 'Continue', uid: 'a', turn: 3 }
  expect(await measuredBy(() => desk.handle(go))).toEqual([
    { name: 'LeaseHeld', value: 1, by: { queue: 'create' } },
  ])
  await desk.ledger.release('a', taken.token)

  desk.clock.advance(7000)
  desk.breakNext('save', new LostRace('a', undefined))
  expect(await measuredBy(() => desk.handle(go))).toContainEqual({ name: 'LostRaces', value: 1, by: {} })
  desk.clock.advance(desk.leaseMs)
  const late = (desk.clock.now() - NOW + 1) / 1000
  desk.clock.advance(1)
  expect(await measuredBy(() => desk.handle(go))).toContainEqual({
    name: 'Lateness',
    value: late,
    by: { queue: 'create' },
  })

  const waits = async (turn: number) =>
    (await measuredBy(() => desk.handle({ ...go, turn }))).filter(({ name }) => name === 'Waits')
  desk.script.run = () => wait('for something', 5)
  expect(await waits(4)).toEqual([{ name: 'Waits', value: 1, by: { why: 'unsettled' } }])
  desk.clock.advance(desk.settleMs + 1)
  expect(await waits(5)).toEqual([{ name: 'Waits', value: 1, by: { why: 'step' } }])
  desk.script.run = () => wait('and looks again at once', 0)
  expect(await waits(6)).toEqual([])
  desk.script.run = () => {
    throw new ProxmoxError('silent', { code: 'AgentSilent', call: 'GET /x', sent: 'yes', ambiguous: false })
  }
  expect(await waits(7)).toEqual([{ name: 'Waits', value: 1, by: { why: 'agent' } }])
})

it('every metric of the list is written somewhere', () => {
  const root = new URL('../../', import.meta.url)
  const text = globSync('{lib,functions}/**/*.ts', { cwd: root.pathname })
    .map((file) => readFileSync(new URL(file, root), 'utf8'))
    .join('\n')
  const written = new Set([...text.matchAll(/\bmeasured\('(\w+)'/g)].map(([, name]) => name))
  expect([...written].sort()).toEqual(Object.keys(METRICS).sort())
})
