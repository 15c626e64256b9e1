import { afterEach, describe, expect, it } from 'vitest'
import { ask, unask } from '../faults/plots.ts'
import { openStage } from '../faults/stage.ts'
import { everywhere, worldOf } from '../lab/by-hand.ts'
import { type Lab, openLab, settled } from '../lab/lab.ts'
import { deadLetterCodes, expectDeletable, expectNothingLeft } from './adversity.ts'

let lab: Lab
afterEach(() => lab?.close())

const vm = '^/nodes/[^/]+/qemu/[^/]+'
const calls = {
  clone: { method: 'POST', path: `${vm}/clone` },
  upload: { method: 'POST', path: '/upload' },
  configure: { method: 'PUT', path: `${vm}/config` },
  resize: { method: 'PUT', path: `${vm}/resize` },
  start: { method: 'POST', path: `${vm}/status/start` },
  stop: { method: 'POST', path: `${vm}/status/stop` },
  'delete the seed': { method: 'DELETE', path: '/content/' },
  destroy: { method: 'DELETE', path: `${vm}($|\\?)` },
}
type Call = keyof typeof calls
const ofCreation: Call[] = ['clone', 'upload', 'configure', 'resize', 'start']

/** pveproxy gives up after 30 s; pvedaemon carries the call out when a worker comes free, or never. */
const ends = [
  ['and runs 100 s later', 100_000],
  ['and runs at the same moment', 0],
  ['and never runs', undefined],
] as const
const meanwhiles = ['nothing else happens', 'it is deleted', 'it is replaced'] as const

/** Strikes the first such call. True once it has struck. */
function unanswered(call: Call, runAfterMs: number | undefined): () => boolean {
  const id = lab.sim.faults.add({
    match: calls[call],
    times: 1,
    effect: {
      kind: 'answer',
      answer: { status: 596, reason: 'Connection timed out' },
      afterMs: 30_000,
      ...(runAfterMs === undefined ? {} : { runAfterMs }),
    },
  })
  return () => lab.sim.faults.list().some((rule) => rule.id === id && rule.struck > 0)
}

describe.each(everywhere)('on PVE $version, with sight of $sight, a call answered with 596', (where) => {
  const open = async () => {
    lab = await openLab({ world: worldOf(where) })
  }

  describe.each(ends)('%s', (_, runAfterMs) => {
    // Report: k8s-proxmox/cluster-api-provider-proxmox#147
    // Report: hashicorp/packer#8476
    // Report: Telmate/terraform-provider-proxmox#782
    it.each(ofCreation.flatMap((call) => meanwhiles.map((meanwhile) => [call, meanwhile] as const)))(
      'is lived through when it is to %s, while %s',
      async (call, meanwhile) => {
        await open()
        const struck = unanswered(call, runAfterMs)
        lab.request('alpha')
        await lab.run(() => struck() && lab.row('alpha')?.problem !== undefined)
        expect(lab.row('alpha')?.problem?.code).toBe('Unreachable')
        if (meanwhile === 'it is deleted') {
          await expectDeletable(lab, 'alpha')
          return
        }
        const generation = meanwhile === 'it is replaced' ? 2 : 1
        if (generation === 2) lab.request('alpha', { generation, spec: { size: { cores: 2 } } })
        await lab.run()
        await lab.clock.advance(600_000)
        expect(lab.row('alpha')).toMatchObject({ phase: 'Ready', generation })
        const vms = lab.sim.vms().filter(({ template }) => !template)
        expect(vms).toMatchObject([
          {
            running: true,
            config: expect.objectContaining({
              cores: expect.toSatisfy((cores: unknown) => Number(cores) === generation),
            }),
          },
        ])
        expect(deadLetterCodes(lab)).toEqual([])
        await expectDeletable(lab, 'alpha')
      },
    )

    it.each(['stop', 'delete the seed', 'destroy'] as const)(
      'is lived through when it is to %s',
      async (call) => {
        await open()
        lab.request('alpha')
        await settled(lab, 'alpha')
        const struck = unanswered(call, runAfterMs)
        await expectDeletable(lab, 'alpha')
        expect(struck()).toBe(true)
        expect(deadLetterCodes(lab)).toEqual([])
      },
    )

    it.each(['stop', 'delete the seed', 'destroy'] as const)(
      'does not reach the VM that replaces the one it was to %s',
      async (call) => {
        await open()
        lab.request('alpha')
        await settled(lab, 'alpha')
        const struck = unanswered(call, runAfterMs)
        lab.request('alpha', { generation: 2 })
        await lab.run()
        expect(struck()).toBe(true)
        await lab.clock.advance(600_000)
        expect(lab.row('alpha')).toMatchObject({ phase: 'Ready', generation: 2 })
        const vms = lab.sim.vms().filter(({ template }) => !template)
        expect(vms).toMatchObject([{ running: true }])
        const seeds = lab.leftOvers().volumes.filter((volid) => volid.includes('iso/'))
        expect(seeds).toEqual(['local:iso/egress-test-alpha-g2.iso'])
        await expectDeletable(lab, 'alpha')
      },
    )
  })
})

describe.each(everywhere)('on PVE $version, with sight of $sight', (where) => {
  // Report: CloudSnorkel/cdk-github-runners#351
  // Report: aws-powertools/powertools-lambda-python#8049
  // Report: macstadium/orka-github-actions-integration#64
  // Report: ionos-cloud/cluster-api-provider-proxmox#733
  it('a clone that was begun by a process that died is taken over, and not made twice', async () => {
    const stage = await openStage({
      world: worldOf(where),
      cluster: { clone: 'full' },
      fate: ({ what }) => (what.endsWith('/clone') ? { kind: 'dies', when: 'after' } : { kind: 'done' }),
    })
    lab = stage.lab
    stage.count(true)
    lab.request('alpha')
    await stage.run(() => stage.deeds().some(({ what }) => what.endsWith('/clone')))
    stage.count(false)
    await stage.run()
    expect(lab.row('alpha')?.phase).toBe('Ready')
    expect(lab.sim.tasks().filter(({ type }) => type === 'qmclone')).toHaveLength(1)
    stage.publish('delete', { type: 'ProxyDeletionRequested', uid: 'alpha' })
    await stage.run()
    expectNothingLeft(lab)
  })

  it.each(
    ofCreation.flatMap((call) =>
      (['it is deleted', 'it is replaced'] as const).map((meanwhile) => [call, meanwhile] as const),
    ),
  )('the last call of a process that died, to %s, runs 100 s later, while %s', async (call, meanwhile) => {
    const { method, path } = calls[call]
    let died = false
    const stage = await openStage({
      world: worldOf(where),
      fate({ request }) {
        const [, sent] = request ?? []
        if (died || sent?.method !== method || !new RegExp(path.replace('^', '')).test(sent.path))
          return { kind: 'done' }
        died = true
        return { kind: 'dies', when: 'under way', ms: 100_000 }
      },
    })
    lab = stage.lab
    stage.count(true)
    ask(stage, 'alpha')
    // It finds the row held, and takes it over as soon as the lease has run out.
    if (meanwhile === 'it is deleted') unask(stage, 'alpha', 10_000)
    else ask(stage, 'alpha', 2, 10_000)
    await stage.run()
    expect(died).toBe(true)
    await lab.clock.advance(600_000)
    await stage.run()
    stage.watch.look()
    expect(stage.watch.broken).toEqual([])
    if (meanwhile === 'it is replaced') {
      expect(lab.row('alpha')).toMatchObject({ phase: 'Ready', generation: 2 })
      expect(lab.sim.vms().filter(({ template }) => !template)).toMatchObject([{ running: true }])
      unask(stage, 'alpha')
      await stage.run()
    }
    expect(lab.row('alpha')?.phase).toBe('Deleted')
    expectNothingLeft(lab)
    expect(deadLetterCodes(lab)).toEqual([])
  })
})
