import { afterEach, describe, expect, it } from 'vitest'
import { CREATE_STEPS } from '../../lib/record.ts'
import { byHand, everywhere, resume, worldOf } from '../lab/by-hand.ts'
import { atStep, type Lab, type LabOptions, openLab, settled } from '../lab/lab.ts'
import { deadLetterCodes, expectDeletable, expectNothingLeft } from './adversity.ts'

let lab: Lab
const open = async (options: LabOptions) => {
  lab = await openLab(options)
}
afterEach(() => lab?.close())

const MINUTE_MS = 60_000
const AGENT = { method: 'GET', path: '/agent/network-get-interfaces' }
const vmidOf = (uid = 'alpha') => lab.row(uid)?.place?.vmid ?? 0

/** The agent answers this instead of the truth, for so long. */
function agentSays(
  answer: { status: number; message?: string; data?: unknown },
  ms = Number.POSITIVE_INFINITY,
) {
  const id = lab.sim.faults.add({ match: AGENT, effect: { kind: 'answer', answer } })
  if (ms !== Number.POSITIVE_INFINITY) lab.clock.after(ms, () => lab.sim.faults.remove(id))
}
const silence = { status: 500, message: 'QEMU guest agent is not running' }
const card = (mac: string, ...addresses: string[]) => ({
  name: 'eth0',
  'hardware-address': mac,
  'ip-addresses': addresses.map((address) => ({
    'ip-address': address,
    'ip-address-type': address.includes(':') ? 'ipv6' : 'ipv4',
    prefix: 24,
  })),
})

describe.each(everywhere)('on PVE $version, with sight of $sight', (where) => {
  describe('a guest agent', () => {
    // Report: ionos-cloud/cluster-api-provider-proxmox#506
    it('that is silent for ten minutes is waited for', async () => {
      await open({ world: worldOf(where) })
      agentSays(silence, 10 * MINUTE_MS)
      lab.request('alpha')
      expect((await settled(lab, 'alpha')).phase).toBe('Ready')
      expect(deadLetterCodes(lab)).toEqual([])
      await expectDeletable(lab, 'alpha')
    })

    // Report: github-aws-runners/terraform-aws-github-runner#3535
    // Report: veertuinc/anklet#40
    // Report: danitso/terraform-provider-proxmox#27
    // Report: lnxbil/docker-machine-driver-proxmox-ve#15
    it('that never answers is told of after a quarter of an hour, and a redrive finds it later', async () => {
      await open({ world: worldOf(where) })
      agentSays(silence)
      lab.request('alpha')
      const failed = await settled(lab, 'alpha')
      expect(failed).toMatchObject({
        phase: 'Failed',
        failedStep: 'address',
        problem: { code: 'AgentNeverUp' },
      })
      lab.sim.faults.clear()
      resume(lab, 'alpha')
      expect((await settled(lab, 'alpha')).phase).toBe('Ready')
      await expectDeletable(lab, 'alpha')
    })

    it.each<[string, unknown]>([
      ['an error of its own', { result: { error: { class: 'CommandNotFound', desc: 'disabled' } } }],
      ['nothing', { result: [] }],
      ['the MAC of another', { result: [card('02:00:00:00:00:01', '10.9.9.9')] }],
    ])('that says %s has said nothing', async (_, data) => {
      await open({ world: worldOf(where) })
      agentSays({ status: 200, data })
      lab.request('alpha')
      const failed = await settled(lab, 'alpha')
      expect(failed).toMatchObject({ phase: 'Failed', problem: { code: 'AgentNeverUp' } })
      expect(failed).not.toHaveProperty('address')
      await expectDeletable(lab, 'alpha')
    })

    it.each<[string, unknown]>([
      ['text', { result: 'junk' }],
      ['a list of numbers', { result: [1, 2, 3] }],
      ['megabytes', { result: 'x'.repeat(20 * 1024 * 1024) }],
    ])('that answers with %s for a while gains nothing by it', async (_, data) => {
      await open({ world: worldOf(where) })
      agentSays({ status: 200, data }, 5 * MINUTE_MS)
      lab.request('alpha')
      expect((await settled(lab, 'alpha')).phase).toBe('Ready')
      await expectDeletable(lab, 'alpha')
    })

    it.each<[string, (mac: string) => unknown[]]>([
      // Report: Telmate/terraform-provider-proxmox#221
      ['link-local addresses only', (mac) => [card(mac, '169.254.7.7', 'fe80::1')]],
      // Report: Telmate/terraform-provider-proxmox#293
      [
        'docker0 before the card',
        (mac) => [card('02:42:00:00:00:01', '127.42.0.1'), card(mac, '169.254.7.7')],
      ],
      ['its loopback under our MAC', (mac) => [card(mac, '::1', '0.0.0.0')]],
    ])('that shows %s is asked again', async (_, interfaces) => {
      await open({ world: worldOf(where) })
      lab.request('alpha')
      const { mac } = await atStep(lab, 'alpha', 'address')
      agentSays({ status: 200, data: { result: interfaces(mac ?? '') } }, 3 * MINUTE_MS)
      await lab.run(() => lab.calls.some(({ call, status }) => call.includes('/agent/') && status === 200))
      expect(lab.row('alpha')).not.toHaveProperty('address')
      const ready = await settled(lab, 'alpha')
      expect(ready).toMatchObject({ phase: 'Ready', address: expect.stringMatching(/^127\./) })
      expect(ready.address).not.toMatch(/^127\.42/)
      await expectDeletable(lab, 'alpha')
    })
  })

  describe('QEMU', () => {
    // The last is of no release yet.
    // Report: scrapoxy/scrapoxy#194
    it.each(['paused', 'prelaunch', 'frobnicating'])('in the state %s is waited for', async (state) => {
      await open({ world: worldOf(where) })
      lab.request('alpha')
      await atStep(lab, 'alpha', 'start')
      await lab.run(() => byHand(lab).vm(vmidOf()).running || lab.row('alpha')?.task?.step === 'start')
      await lab.clock.advance(900)
      lab.sim.setQemu(vmidOf(), state)
      lab.clock.after(5 * MINUTE_MS, () => lab.sim.setQemu(vmidOf(), 'running'))
      expect((await settled(lab, 'alpha')).phase).toBe('Ready')
      expect(deadLetterCodes(lab)).toEqual([])
      await expectDeletable(lab, 'alpha')
    })

    it.each(['io-error', 'internal-error', 'guest-panicked'])(
      'in the state %s is told of, and can be deleted',
      async (state) => {
        await open({ world: worldOf(where) })
        lab.request('alpha')
        await atStep(lab, 'alpha', 'start')
        await lab.run(() => lab.row('alpha')?.task?.step === 'start')
        await lab.clock.advance(900)
        lab.sim.setQemu(vmidOf(), state)
        const failed = await settled(lab, 'alpha')
        expect(failed).toMatchObject({
          phase: 'Failed',
          problem: { code: 'VmBroken', reason: expect.stringContaining(state) },
        })
        await expectDeletable(lab, 'alpha')
      },
    )
  })

  describe('the proxy', () => {
    const withProbe =
      (kind: 'refuses' | 'silent') => (outside: Parameters<NonNullable<LabOptions['interpose']>>[0]) => {
        const answer = async () => ({ kind, detail: kind === 'refuses' ? 'status 403' : 'ECONNREFUSED' })
        return { ...outside, surroundings: { ...outside.surroundings, probe: { http: answer, tcp: answer } } }
      }

    it('that refuses us is told of at once', async () => {
      await open({ world: worldOf(where), interpose: withProbe('refuses') })
      lab.request('alpha')
      expect(await settled(lab, 'alpha')).toMatchObject({
        phase: 'Failed',
        problem: { code: 'ProbeRefused' },
      })
      await expectDeletable(lab, 'alpha')
    })

    it('that never answers is told of after a quarter of an hour', async () => {
      await open({ world: worldOf(where), interpose: withProbe('silent') })
      lab.request('alpha')
      const failed = await settled(lab, 'alpha')
      expect(failed).toMatchObject({ phase: 'Failed', problem: { code: 'ProxyNeverAnswered' } })
      await expectDeletable(lab, 'alpha')
    })
  })

  describe('the places in a storage’s queue', () => {
    // Report: LINBIT/linstor-proxmox#73
    it('let one clone or destroy through at a time, and all twelve proxies come and go', async () => {
      const world = worldOf(where)
      const zones = { 'lab-1': { cluster: 'lab', nodes: ['pve1', 'pve2'] } }
      await open({ world, cluster: { clone: 'full' }, config: { limits: { clonesPerStorage: 1 }, zones } })
      const uids = Array.from({ length: 12 }, (_, index) => `proxy-${index}`)
      for (const uid of uids) lab.request(uid)
      await lab.run()
      expect(new Set(uids.map((uid) => lab.row(uid)?.phase))).toEqual(new Set(['Ready']))
      for (const uid of uids) lab.remove(uid)
      await lab.run()
      expectNothingLeft(lab)
      expect(deadLetterCodes(lab)).toEqual([])
      for (const { name } of world.nodes) expectOneAtATime(name)
    })

    it.each(['clone', 'destroy'] as const)('are given back on every way out of %s', async (step) => {
      await open({
        world: worldOf(where),
        cluster: { clone: 'full' },
        config: { limits: { clonesPerStorage: 1 } },
      })
      const taken = () => lab.claims.all().filter(({ partition }) => partition.startsWith('clone#'))
      lab.request('alpha')
      if (step === 'destroy') {
        await settled(lab, 'alpha')
        lab.remove('alpha')
      }
      await lab.run(() => taken().length === 1)
      expect(taken()).toMatchObject([{ owner: 'alpha' }])
      // A way out by failing: the task ends in a lock that a person must take off.
      await lab.clock.advance(step === 'clone' ? 100 : 165)
      const [running] = lab.sim.tasks().filter(({ status }) => status === 'running')
      lab.sim.killTask(running?.upid ?? '', 'KILL')
      await lab.run()
      expect(lab.row('alpha')?.phase).toBe('Failed')
      expect(taken()).toEqual([])
    })

    it.each(CREATE_STEPS)('are given back when a deletion comes at the step %s', async (step) => {
      await open({
        world: worldOf(where),
        cluster: { clone: 'full' },
        config: { limits: { clonesPerStorage: 1 } },
      })
      lab.request('alpha')
      await atStep(lab, 'alpha', step)
      if (step === 'clone') await lab.run(() => lab.row('alpha')?.task !== undefined)
      lab.remove('alpha')
      await lab.run(() => lab.row('alpha')?.step === 'stop')
      expect(lab.claims.all().filter(({ partition }) => partition.startsWith('clone#'))).toEqual([])
      await lab.run()
      expectNothingLeft(lab)
    })
  })
})

/** No two clones or destroys of ours ran at the same time on a node, whose disks lie on one storage. */
function expectOneAtATime(node: string): void {
  const spans = lab.sim
    .tasks()
    .filter((task) => task.node === node && ['qmclone', 'qmdestroy'].includes(task.type))
    .map(({ startMs, endMs = Number.POSITIVE_INFINITY }) => ({ startMs, endMs }))
    .sort((a, b) => a.startMs - b.startMs)
  for (const [index, { startMs }] of spans.entries()) {
    if (index > 0) expect(startMs).toBeGreaterThanOrEqual(spans[index - 1]?.endMs ?? 0)
  }
}
