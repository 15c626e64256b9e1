import { afterEach, describe, expect, it } from 'vitest'
import { byHand } from '../lab/by-hand.ts'
import { atStep, type Lab, type LabOptions, openLab, settled } from '../lab/lab.ts'
import { deadLetterCodes, expectDeletable } from './adversity.ts'

let lab: Lab
const open = async (options: LabOptions = {}) => {
  lab = await openLab(options)
}
afterEach(() => lab?.close())

const vmidOf = () => lab.row('alpha')?.place?.vmid ?? 0
const starts = () => lab.sim.tasks().filter(({ type }) => type === 'qmstart')
const stops = () => lab.sim.tasks().filter(({ type }) => type === 'qmstop')

/** What was asked of Proxmox since the last time, the polls of tasks left out. */
const asked = () =>
  lab.calls
    .splice(0)
    .map(({ call }) => call.replace('/nodes/{node}/', '/').replace('/qemu/{vmid}', 'VM'))
    .filter((call) => call !== 'GET /tasks/{upid}/status')

describe('of a life that goes well', () => {
  it('no more is asked than its steps need, and each change of a VM comes right after its configuration', async () => {
    await open()
    lab.request('alpha')
    await settled(lab, 'alpha')
    const made = asked()
    lab.remove('alpha')
    await settled(lab, 'alpha')
    await lab.run()
    const proof = ['GET /nodes', 'GET /cluster/nextid']
    const [config, status] = ['GET VM/config', 'GET VM/status/current']
    expect(made).toEqual([
      ...['GET /nodes', 'GET /cluster/status', ...proof, 'GET /storage/{storage}/content'],
      ...[...proof, 'POST VM/clone', config],
      'POST /storage/{storage}/upload',
      ...[config, 'PUT VM/config', 'PUT VM/resize'],
      ...[config, 'POST VM/status/start', status],
      'GET VM/agent/network-get-interfaces',
    ])
    expect(asked()).toEqual([
      ...[config, 'POST VM/status/stop', status],
      ...['GET /nodes', 'DELETE /storage/{storage}/content/{volume}'],
      // Each function learns once in its life that its token may not ask this.
      ...[
        config,
        'DELETE VM',
        'GET /cluster/status',
        ...proof,
        'GET /nodes',
        'GET /storage/{storage}/content',
      ],
      ...proof,
      ...proof,
    ])
  })
})

describe('a VM that is not as its step expects it', () => {
  it('and runs already is not broken by being started', async () => {
    await open()
    lab.request('alpha')
    await atStep(lab, 'alpha', 'start')
    byHand(lab).qm(vmidOf(), 'start')
    expect((await settled(lab, 'alpha')).phase).toBe('Ready')
    expect(deadLetterCodes(lab)).toEqual([])
    await expectDeletable(lab, 'alpha')
  })

  it('and is paused is started once, and then waited for', async () => {
    await open()
    lab.request('alpha')
    await atStep(lab, 'alpha', 'start')
    byHand(lab).qm(vmidOf(), 'start')
    await lab.clock.advance(5000)
    lab.sim.setQemu(vmidOf(), 'paused')
    await lab.run(() => lab.clock.now() - (lab.row('alpha')?.since ?? 0) > 60_000)
    expect(lab.row('alpha')).toMatchObject({ step: 'start' })
    expect(starts()).toHaveLength(2)
    lab.sim.setQemu(vmidOf(), 'running')
    expect((await settled(lab, 'alpha')).phase).toBe('Ready')
  })

  it('and was destroyed while it was started is made again', async () => {
    await open()
    lab.request('alpha')
    await lab.run(() => lab.row('alpha')?.task?.step === 'start')
    byHand(lab).qm(vmidOf(), 'stop')
    byHand(lab).qm(vmidOf(), 'destroy')
    expect((await settled(lab, 'alpha')).phase).toBe('Ready')
    await expectDeletable(lab, 'alpha')
  })

  it('and was stopped by a person is deleted', async () => {
    await open()
    lab.request('alpha')
    await settled(lab, 'alpha')
    await byHand(lab).stop(vmidOf())
    await expectDeletable(lab, 'alpha')
    expect(deadLetterCodes(lab)).toEqual([])
  })

  it('and was never started is not stopped before it is deleted', async () => {
    await open()
    lab.request('alpha', {
      spec: { proxy: { auth: { username: 'team-a', passwordParameter: 'none/such' } } },
    })
    expect(await settled(lab, 'alpha')).toMatchObject({ phase: 'Failed', failedStep: 'seed' })
    expect(byHand(lab).vm(vmidOf()).running).toBe(false)
    await expectDeletable(lab, 'alpha')
    expect(stops()).toEqual([])
  })

  it('and runs again after it was stopped is stopped again', async () => {
    await open()
    lab.request('alpha')
    await settled(lab, 'alpha')
    const vmid = vmidOf()
    lab.remove('alpha')
    await atStep(lab, 'alpha', 'unseed')
    byHand(lab).qm(vmid, 'start')
    await settled(lab, 'alpha')
    expect(lab.row('alpha')?.phase).toBe('Deleted')
    expect(stops()).toHaveLength(2)
  })
})
