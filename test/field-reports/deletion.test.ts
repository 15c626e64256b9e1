import { afterEach, describe, expect, it } from 'vitest'
import { deadLetterCodes, expectDeletable, expectNothingLeft, portrait } from '../functions/adversity.ts'
import { byHand } from '../lab/by-hand.ts'
import { atStep, type Lab, type LabOptions, openLab, settled } from '../lab/lab.ts'

let lab: Lab
const open = async (options: LabOptions = {}) => {
  lab = await openLab(options)
}
afterEach(() => lab?.close())

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const placeOf = (uid = 'alpha') => {
  const place = lab.row(uid)?.place
  if (!place) throw new Error(`${uid} has no place`)
  return place
}
const theVm = () => byHand(lab).vm(placeOf().vmid)
const sent = (method: string, path: RegExp) =>
  lab.sim.calls().filter((call) => call.method === method && path.test(call.path))

async function ready(options: LabOptions = {}): Promise<void> {
  await open(options)
  lab.request('alpha')
  expect((await settled(lab, 'alpha')).phase).toBe('Ready')
}

/** Deletes a proxy that cannot be deleted, and gives the letter that tells why. */
async function failedDeletion() {
  lab.remove('alpha')
  await lab.run()
  expect(lab.row('alpha')?.phase).toBe('Failed')
  expect(lab.outcomes.map(({ type }) => type)).not.toContain('ProxyDeleted')
  const letter = lab.queues.deadLetters.at(-1)?.obituary
  if (!letter) throw new Error('there is no letter')
  return letter
}

describe('a deletion', () => {
  // Report: ionos-cloud/cluster-api-provider-proxmox#742
  // Report: sergelogvinov/karpenter-provider-proxmox#188
  it('waits for the stop before it destroys, and is told when nothing is left and no sooner', async () => {
    await ready({ durations: { stopMs: 5 * MINUTE_MS, destroyMs: 10 * MINUTE_MS } })
    lab.remove('alpha')
    const { vmid } = placeOf()
    await lab.run(() => {
      const vm = lab.sim.vms().find((one) => one.vmid === vmid)
      if (vm?.running) expect(sent('DELETE', /\/qemu\//)).toEqual([])
      if (vm) expect(lab.outcomes.map(({ type }) => type)).not.toContain('ProxyDeleted')
      return false
    })
    expect(sent('POST', /\/status\/stop$/)).toHaveLength(1)
    expect(sent('DELETE', /\/qemu\//)).toHaveLength(1)
    expect(lab.row('alpha')?.phase).toBe('Deleted')
    expectNothingLeft(lab)
  })

  // Report: ansible-collections/community.proxmox#22
  it('pulls the plug of a guest that would not shut down', async () => {
    await open()
    lab.sim.faults.add({ match: { path: '/agent/' }, effect: { kind: 'agentHangs' } })
    lab.request('alpha')
    expect((await settled(lab, 'alpha')).problem?.code).toBe('AgentNeverUp')
    lab.remove('alpha')
    await lab.run(() => lab.row('alpha')?.phase === 'Deleted', 2 * MINUTE_MS)
    expect(sent('POST', /\/status\/shutdown/)).toEqual([])
    expectNothingLeft(lab)
  })

  // Report: bpg/terraform-provider-proxmox#1620
  it.each([
    ['stop', 'qmstop', { stopMs: 72 * HOUR_MS }],
    ['destroy', 'qmdestroy', { destroyMs: 72 * HOUR_MS }],
  ] as const)(
    'whose task of %s never ends is told of after an hour, with the task',
    async (step, type, durations) => {
      await ready({ durations })
      const from = lab.clock.now()
      const letter = await failedDeletion()
      expect(letter).toMatchObject({ code: 'StepTimedOut', step })
      expect(letter.problem.upid).toContain(`:${type}:${placeOf().vmid}:`)
      expect(lab.clock.now() - from).toBeLessThan(70 * MINUTE_MS)
    },
  )

  // Report: bpg/terraform-provider-proxmox#2078
  // Report: cloudbase/garm#117
  it('that a storage which is away holds up for good is told of with the storage, and goes on once it is back', async () => {
    await ready({ cluster: { clone: 'full' } })
    const offline =
      "unable to activate storage 'vmdata' - directory is expected to be a mount point but is not mounted: '/var/lib/vmdata'"
    lab.sim.setStorage('vmdata', { offline })
    const letter = await failedDeletion()
    expect(letter).toMatchObject({ code: 'RetriesExhausted', step: 'destroy' })
    expect(letter.problem.reason).toContain("storage 'vmdata'")
    lab.sim.setStorage('vmdata', {})
    lab.remove('alpha')
    await lab.run()
    expect(lab.row('alpha')?.phase).toBe('Deleted')
    expectNothingLeft(lab)
  })

  // Report: luthermonson/go-proxmox#77
  it('does not mind a seed that is gone already', async () => {
    await ready()
    await byHand(lab).deleteVolume(placeOf().node, lab.row('alpha')?.seed ?? '')
    await expectDeletable(lab, 'alpha')
    expect(deadLetterCodes(lab)).toEqual([])
  })

  // Report: jenkinsci/openstack-cloud-plugin#310
  it('takes away what a start that failed left standing', async () => {
    await open({
      config: { timings: { retryWindowSeconds: { CommandFailed: 600 }, maxClockSkewSeconds: 0 } },
    })
    lab.sim.faults.add({
      match: { taskType: 'qmstart' },
      effect: { kind: 'taskFails', exitText: 'start failed: QEMU exited with code 1', effects: 'none' },
    })
    lab.request('alpha')
    expect(await settled(lab, 'alpha')).toMatchObject({ phase: 'Failed', failedStep: 'start' })
    expect(theVm().running).toBe(false)
    await expectDeletable(lab, 'alpha')
  })

  // Report: openshift-online/maestro#562
  it('that is asked for fifty times is one deletion, and holds up no creation', async () => {
    await ready()
    for (let times = 0; times < 50; times++) lab.remove('alpha')
    lab.request('beta')
    await lab.run(() => lab.row('beta')?.phase === 'Ready', 2 * MINUTE_MS)
    await lab.run()
    const reasons = lab.decisions.filter(({ uid }) => uid === 'alpha').map(({ reason }) => reason)
    expect(reasons.filter((reason) => reason === 'to be deleted, on to stop')).toHaveLength(1)
    expect(reasons.filter((reason) => /^(?:being )?deleted already$/.test(reason ?? ''))).toHaveLength(49)
    expect(lab.outcomes.filter(({ type }) => type === 'ProxyDeleted')).toHaveLength(1)
    expect(sent('DELETE', /\/qemu\//)).toHaveLength(1)
    await expectDeletable(lab, 'beta')
  })
})

describe('a template with drives of its own for cloud-init', () => {
  // Report: Telmate/terraform-provider-proxmox#747
  it.each(['ide0', 'ide2', 'scsi1'])('on %s leaves none of their disks behind', async (slot) => {
    const base = await openLab()
    const { world } = base
    await base.close()
    for (const { vmid, config } of world.vms ?? []) {
      config[slot] = `vmdata:${vmid}/vm-${vmid}-cloudinit.qcow2,media=cdrom`
      const node = world.nodes[vmid - 9000]?.name ?? ''
      const name = `${vmid}/vm-${vmid}-cloudinit.qcow2`
      world.volumes?.push({ storage: 'vmdata', node, name, sizeBytes: 4 * 1024 ** 2 })
    }
    await ready({ world })
    const drives = lab.sim.volumes().filter(({ name }) => /cloudinit/.test(name) && !/\b900\d\b/.test(name))
    expect(drives).toEqual([])
    const templates = lab.sim.volumes().filter(({ name }) => /cloudinit/.test(name))
    await expectDeletable(lab, 'alpha', { volumes: templates.map(({ volid }) => volid) })
  })
})

describe('a VM that is protected against deletion', () => {
  // Report: Telmate/terraform-provider-proxmox#350
  it('after it was stopped is kept, and its deletion is not told as done', async () => {
    await ready()
    lab.remove('alpha')
    await atStep(lab, 'alpha', 'destroy')
    byHand(lab).qm(placeOf().vmid, 'set', '--protection', '1')
    expect(await failedDeletion()).toMatchObject({ code: 'Protected', step: 'destroy' })
    expect(theVm().vmid).toBe(placeOf().vmid)
  })

  // Report: Telmate/terraform-provider-proxmox#350
  it('while it is being destroyed is kept as well: the end of the task is read', async () => {
    await ready()
    const exitText = `can't remove VM ${placeOf().vmid} - protection mode enabled`
    lab.sim.faults.add({
      match: { taskType: 'qmdestroy' },
      effect: { kind: 'taskFails', exitText, effects: 'none' },
    })
    expect(await failedDeletion()).toMatchObject({ code: 'Protected', step: 'destroy' })
    expect(theVm().vmid).toBe(placeOf().vmid)
  })
})

describe.each([8, 9] as const)('a VM under HA on PVE %i', (version) => {
  const putUnderHa = (state = 'started') => {
    const { node, vmid } = placeOf()
    expect(lab.sim.root(node, ['ha-manager', 'add', `vm:${vmid}`, '--state', state]).exitCode).toBe(0)
  }

  // Report: Telmate/terraform-provider-proxmox#362
  // Report: ionos-cloud/cluster-api-provider-proxmox#212
  // Report: ansible-collections/community.general#1488
  it('is stopped by way of HA, waited for, and destroyed with its entry there', async () => {
    await ready({ version })
    putUnderHa()
    await lab.clock.advance(20_000)
    expect(theVm().running).toBe(true)
    await expectDeletable(lab, 'alpha')
    expect(deadLetterCodes(lab)).toEqual([])
    const [stop, ...more] = lab.sim.tasks().filter(({ type }) => type === 'hastop')
    expect(stop?.exitstatus).toBe('OK')
    expect(more).toEqual([])
    const [destroy] = lab.sim.tasks().filter(({ type }) => type === 'qmdestroy')
    expect(destroy?.log.join('\n')).toContain('from HA resource configuration')
  })

  it.each(['started', 'stopped'])('from before its start, there to be %s, becomes a proxy', async (state) => {
    await open({ version })
    lab.request('alpha')
    await atStep(lab, 'alpha', 'configure')
    putUnderHa(state)
    expect((await settled(lab, 'alpha')).phase).toBe('Ready')
    expect(lab.sim.tasks().filter(({ type }) => type === 'hastart').length).toBeLessThanOrEqual(2)
    await expectDeletable(lab, 'alpha')
  })
})

describe('a VM tagged egress-hold', () => {
  // Report: github-aws-runners/terraform-aws-github-runner#5194
  it.each(['deleted', 'replaced'])('is not %s, until the tag is taken off as the hint says', async (what) => {
    await ready()
    const { vmid } = placeOf()
    byHand(lab).qm(vmid, 'set', '--tags', 'egress;egress-hold;egress-test')
    const before = portrait(lab, vmid)
    if (what === 'deleted') lab.remove('alpha')
    else lab.request('alpha', { generation: 2 })
    await lab.run()
    const row = lab.row('alpha')
    expect(row).toMatchObject({ phase: 'Failed', failedStep: 'stop', problem: { code: 'Protected' } })
    expect(portrait(lab, vmid)).toEqual(before)
    byHand(lab).typeHint(row?.problem?.hint ?? '')
    if (what === 'replaced') {
      lab.queues.publish('delete', JSON.stringify({ type: 'Resume', uid: 'alpha', turn: row?.turn }))
      expect(await settled(lab, 'alpha')).toMatchObject({ phase: 'Ready', generation: 2 })
    }
    await expectDeletable(lab, 'alpha')
  })
})
