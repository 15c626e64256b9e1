import { afterEach, describe, expect, it } from 'vitest'
import { closely } from '../../cli/close-look.ts'
import { momentOf } from '../../lib/attempt.ts'
import { Failure } from '../../lib/failure.ts'
import { foresee, type View } from '../../lib/foresight.ts'
import { fail, wait } from '../../lib/outcome.ts'
import { createProxmox } from '../../lib/proxmox/index.ts'
import type { Row } from '../../lib/record.ts'
import { inProcess } from '../lab/in-process.ts'
import { type Lab, openLab } from '../lab/lab.ts'
import { aRow, NOW } from './a-row.ts'

const mark = { generation: 1, specHash: 'hash' }
const ours: View['sight'] = { kind: 'ours', protection: false, held: false, mark }
const gone: View['sight'] = { kind: 'gone', heldByAnother: false }
const task = { upid: 'UPID:x', step: 'clone', at: NOW } as const
const stands = { running: false, qmp: 'stopped' }
const runs = { running: true, qmp: 'running' }

const what = (changes: Partial<Row>, view: View = {}, lease?: { until: number }) => {
  const row = aRow(changes)
  return foresee({ ...row, ...momentOf(row, NOW) }, view, lease, NOW).what
}

describe('what the next delivery will do', () => {
  it.each<[string, Partial<Row>, View, RegExp]>([
    ['a ready proxy', { phase: 'Ready', step: undefined }, {}, /^nothing: no message/],
    ['a tombstone', { phase: 'Deleted', step: undefined }, {}, /^nothing, ever/],
    ['a failed one', { phase: 'Failed', step: undefined, failedStep: 'clone' }, {}, /egress dlq redrive a$/],
    ['a report', { step: 'report', failedStep: 'clone' }, {}, /the failure is reported/],
    ['ten dead deliveries', { deliveries: 10 }, { sight: gone }, /^it fails as Crashing/],
    ['its task running', { task }, { task: { running: true } }, /^it waits$/],
    ['its task not to be seen', { task }, { blind: 'no VPN' }, /^it cannot be said/],
    [
      'its task failed for good',
      { task },
      { task: { running: false, ok: false, error: new Failure('Forbidden', 'no', { class: 'permanent' }) } },
      /^it fails as Forbidden/,
    ],
    [
      'its task failed for now',
      { task },
      { task: { running: false, ok: false, error: new Failure('Locked', 'no', { class: 'transient' }) } },
      /^it is tried again/,
    ],
    [
      'its task lost',
      { task },
      {
        sight: ours,
        task: { running: false, ok: false, error: new Failure('TaskLost', 'x', { class: 'transient' }) },
      },
      /^on to seed/,
    ],
    ['nothing to clone to yet', {}, { sight: gone }, /^it clones 9000 to 5001/],
    ['a number that another took', {}, { sight: { kind: 'gone', heldByAnother: true } }, /^back to reserve/],
    ['an earlier generation', { generation: 2 }, { sight: ours }, /^on to stop/],
    ['a cluster that is silent', {}, { blind: 'no VPN' }, /^it cannot be said/],
    [
      'a lock',
      { step: 'configure' },
      { sight: { kind: 'unclear', outcome: wait('locked', 5) } },
      /^it waits/,
    ],
    [
      'a mark edited away',
      { step: 'configure' },
      { sight: { kind: 'unclear', outcome: fail('MarkLost', 'x') } },
      /^it fails as MarkLost/,
    ],
    ['a VM gone', { step: 'start' }, { sight: gone }, /^back to clone/],
    [
      'a VM gone for the fourth time',
      { step: 'start', lookedAgain: 3 },
      { sight: gone },
      /^it fails as VmGone/,
    ],
    ['a VM that stands', { step: 'start' }, { sight: ours, status: stands }, /^it starts the VM/],
    ['a VM that runs', { step: 'start' }, { sight: ours, status: runs }, /^on to address/],
    [
      'a broken VM',
      { step: 'start' },
      { sight: ours, status: { running: false, qmp: 'io-error' } },
      /as VmBroken/,
    ],
    [
      'a protected VM',
      { step: 'stop' },
      { sight: { kind: 'ours', protection: true, held: false, mark } },
      /^it fails as Protected/,
    ],
    [
      'a VM that HA is to stop',
      {
        step: 'stop',
        ended: { upid: 'UPID:pve1:1:1:1:hastop:5001:x@pve!y:', step: 'stop', ok: true, at: NOW },
      },
      { sight: ours, status: runs },
      /^it waits/,
    ],
    [
      'a VM that HA is to start',
      {
        step: 'start',
        ended: { upid: 'UPID:pve1:1:1:1:hastart:5001:x@pve!y:', step: 'start', ok: true, at: NOW },
      },
      { sight: ours, status: { running: false, qmp: 'stopped' } },
      /^it waits/,
    ],
    [
      'a VM that a person keeps',
      { step: 'stop' },
      { sight: { kind: 'ours', protection: false, held: true, mark } },
      /^it fails as Protected/,
    ],
    [
      'unsettled calls',
      { step: 'stop', unsettledUntil: NOW + 1 },
      { sight: ours, status: runs },
      /^it waits/,
    ],
    ['a VM running again', { step: 'destroy' }, { sight: ours, status: runs }, /^back to stop/],
    ['a VM that came back', { step: 'release' }, { sight: ours }, /^back to stop/],
    ['a replacement', { step: 'release', place: undefined }, {}, /on to reserve/],
    ['a deletion', { step: 'release', place: undefined, wish: 'absent' }, {}, /it is deleted$/],
  ])('about %s', (_, changes, view, expected) => {
    expect(what(changes, view)).toMatch(expected)
  })

  it('gives way to whoever holds the row, but not to the dead', () => {
    expect(what({}, { sight: gone }, { until: NOW + 1 })).toMatch(/^it goes back/)
    expect(what({}, { sight: gone }, { until: NOW - 1 })).toMatch(/^it clones/)
  })
})

let lab: Lab
afterEach(() => lab?.close())

/** What explain would say of the row now, looking into the simulated cluster. */
async function foreseen(row: Row) {
  const proxmox = createProxmox({
    endpoints: lab.world.nodes.map(({ name }) => ({ url: `https://${name}:8006`, node: name })),
    token: { get: async () => [lab.world.tokens.egress] },
    exchange: inProcess(lab.sim),
    now: () => lab.clock.now(),
  })
  const vms = proxmox.with({ signal: new AbortController().signal, mutateUntilMs: 0 })
  const cluster = lab.config.clusters.lab
  if (!cluster) throw new Error('no cluster')
  const look = await lab.clock.until(closely(row, vms, cluster, lab.config.deployment, lab.clock.now()))
  // Listing ISO images takes a privilege that a life does without.
  expect(look.unseen.filter((text) => !text.startsWith('ISO images'))).toEqual([])
  return foresee({ ...row, ...momentOf(row, lab.clock.now()) }, look.view, undefined, lab.clock.now())
}

it.each(['linked', 'full'])('what is foreseen along a life with a %s clone is what comes', async (clone) => {
  lab = await openLab({ cluster: { clone } })
  const compared: string[] = []
  const live = async (end: Row['phase']) => {
    while (lab.row('alpha')?.phase !== end) {
      // Looked at in the moment the message is due, so that nothing goes by between.
      await lab.clock.advance(Math.max(0, (lab.queues.nextAt() ?? 0) - lab.clock.now()))
      const row = lab.row('alpha')
      const next = row && row.step !== undefined ? await foreseen(row) : undefined
      const seen = lab.decisions.length
      await lab.run(() => lab.decisions.length > seen)
      const decision = lab.decisions[seen]
      const where = / ?\b(?:on|back) to (\w+)/.exec(next?.what ?? '')?.[1]
      if (!row || where === undefined || decision?.step !== row.step || !next?.what.match(/^(on|back) to/))
        continue
      expect(decision, next.what).toMatchObject({ outcome: 'next', reason: `on to ${where}` })
      compared.push(where)
    }
  }
  lab.request('alpha')
  await live('Ready')
  lab.remove('alpha')
  await live('Deleted')
  expect(new Set(compared)).toEqual(new Set(['seed', 'configure', 'address', 'unseed', 'destroy']))
})
