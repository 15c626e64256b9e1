import { afterEach, describe, expect, it } from 'vitest'
import { CREATE_STEPS, DELETE_STEPS } from '../../lib/record.ts'
import { atStep, type Lab, type LabOptions, openLab, settled } from '../lab/lab.ts'

let lab: Lab
const open = async (options: LabOptions = {}) => {
  lab = await openLab(options)
}
afterEach(() => lab?.close())

/** Nothing of anyone is left: no VM, disk or seed, no claim, no message. */
function expectNothingLeft() {
  expect(lab.leftOvers()).toEqual({ vms: [], volumes: [] })
  expect(lab.claims.all()).toEqual([])
  expect(lab.queues.size()).toBe(0)
}

const eventTypes = () => lab.outcomes.map(({ type }) => type)

describe.each([8, 9] as const)('a proxy on PVE %i', (version) => {
  it.each(['linked', 'full'] as const)(
    'comes to life from a %s clone and leaves nothing behind',
    async (clone) => {
      await open({ version, cluster: { clone } })
      lab.request('alpha')
      const ready = await settled(lab, 'alpha')
      expect(ready).toMatchObject({
        phase: 'Ready',
        address: expect.stringMatching(/^127\./),
        endpoint: expect.stringMatching(/:3128$/),
      })
      const vm = lab.sim.vms().find(({ vmid }) => vmid === ready.place?.vmid)
      expect(vm).toMatchObject({ running: true, pool: 'egress', node: ready.place?.node })
      expect(vm?.config).toMatchObject({
        onboot: '1',
        tags: 'egress;egress-test',
        boot: 'order=scsi0',
        net0: expect.stringContaining(String(ready.mac).toUpperCase()),
        ide2: expect.stringContaining('local:iso/egress-test-alpha-g1.iso,media=cdrom'),
      })
      expect(lab.outcomes).toEqual([
        expect.objectContaining({ type: 'ProxyReady', uid: 'alpha', endpoint: ready.endpoint }),
      ])

      lab.remove('alpha')
      const gone = await settled(lab, 'alpha')
      await lab.run()
      expect(gone.phase).toBe('Deleted')
      expect(eventTypes()).toEqual(['ProxyReady', 'ProxyDeleted'])
      expectNothingLeft()
    },
  )

  it('asks for its password, and is verified with it', async () => {
    await open({ version, passwords: { 'team/a': 's3cret.word' } })
    lab.request('alpha', {
      spec: { proxy: { auth: { username: 'team-a', passwordParameter: 'team/a' } } },
    })
    expect((await settled(lab, 'alpha')).phase).toBe('Ready')
  })
})

// Report: bpg/terraform-provider-proxmox#1610
// Report: Telmate/terraform-provider-proxmox#1136
// Report: Telmate/terraform-provider-proxmox#1372
it('twenty-five requests at once get twenty-five VMs, and all of them go again', async () => {
  await open()
  const uids = Array.from({ length: 25 }, (_, index) => `proxy-${index}`)
  for (const uid of uids) lab.request(uid)
  await lab.run(() => uids.every((uid) => lab.row(uid)?.phase === 'Ready'))
  expect(new Set(lab.leftOvers().vms).size).toBe(25)
  expect(new Set(uids.map((uid) => lab.row(uid)?.endpoint)).size).toBe(25)
  for (const uid of uids) lab.remove(uid)
  await lab.run()
  expect(uids.map((uid) => lab.row(uid)?.phase)).toEqual(uids.map(() => 'Deleted'))
  expectNothingLeft()
})

describe('a request', () => {
  // Report: github-aws-runners/terraform-aws-github-runner#2306
  it('that comes three times makes one VM', async () => {
    await open()
    for (let copy = 0; copy < 3; copy++) lab.request('alpha')
    await settled(lab, 'alpha')
    lab.request('alpha')
    await lab.run()
    expect(lab.leftOvers().vms).toHaveLength(1)
    expect(eventTypes()).toEqual(['ProxyReady'])
    expect(lab.queues.deadLetters).toEqual([])
  })

  // Report: claffin/cloudproxy#50
  it('with the same generation and another spec ends among the dead letters, its body to the letter', async () => {
    await open()
    lab.request('alpha')
    await settled(lab, 'alpha')
    lab.request('alpha', { spec: { size: { cores: 2 } } })
    await lab.run()
    const [letter] = lab.queues.deadLetters
    expect(letter?.obituary).toMatchObject({ code: 'GenerationReused', uid: 'alpha' })
    expect(JSON.parse(letter?.body ?? '').spec.size.cores).toBe(2)
    expect(lab.row('alpha')?.phase).toBe('Ready')
  })

  it.each([
    ['an unknown zone', { spec: { zone: 'mars-1' } }, /spec\.zone: got "mars-1", wanted one of: lab-1/],
    [
      'a negative size',
      { spec: { size: { cores: -1 } } },
      /spec\.size\.cores: got -1, wanted a whole number of cores/,
    ],
    [
      'a misspelt field',
      { spec: { sise: {} } },
      /spec\.sise: got a field of this name, wanted no such field/,
    ],
    ['a name with an underscore', { name: 'my_proxy' }, /name: got "my_proxy", wanted .*no underscore/],
    [
      'an empty allow',
      { spec: { proxy: { allow: [] } } },
      /spec\.proxy\.allow: got a list of 0, wanted at least one/,
    ],
  ])('with %s ends among the dead letters as InvalidEvent, naming the field', async (_, over, reason) => {
    await open()
    lab.request('alpha', over)
    await lab.run()
    const [letter] = lab.queues.deadLetters
    expect(letter?.obituary.code).toBe('InvalidEvent')
    expect(letter?.obituary.problem.reason).toMatch(reason)
    expect(JSON.parse(letter?.body ?? '{}')).toMatchObject(over)
    expect(lab.ledger.rows()).toEqual([])
  })

  // Report: openshift-online/maestro#557
  it('of a lower generation, or after a deletion, is dropped', async () => {
    await open()
    lab.request('alpha', { generation: 3 })
    await settled(lab, 'alpha')
    lab.request('alpha', { generation: 2 })
    await lab.run()
    expect(lab.row('alpha')).toMatchObject({ phase: 'Ready', generation: 3 })
    lab.remove('alpha')
    await lab.run()
    lab.request('alpha', { generation: 4 })
    await lab.run()
    expect(lab.row('alpha')?.phase).toBe('Deleted')
    expectNothingLeft()
  })
})

describe('a deletion', () => {
  it('that comes before its request wins', async () => {
    await open()
    lab.remove('alpha')
    await lab.run()
    lab.request('alpha')
    await lab.run()
    expect(lab.row('alpha')?.phase).toBe('Deleted')
    expectNothingLeft()
  })

  it.each(CREATE_STEPS)('at the step %s leaves nothing behind', async (step) => {
    await open()
    lab.request('alpha')
    await atStep(lab, 'alpha', step)
    lab.remove('alpha')
    lab.remove('alpha')
    await lab.run()
    expect(lab.row('alpha')?.phase).toBe('Deleted')
    expect(eventTypes().at(-1)).toBe('ProxyDeleted')
    expectNothingLeft()
  })

  it.each(['clone', 'seed', 'configure', 'start'] as const)(
    'while the task of %s runs leaves nothing behind',
    async (step) => {
      await open({ cluster: { clone: 'full' } })
      lab.request('alpha')
      await lab.run(() => lab.row('alpha')?.task?.step === step)
      lab.remove('alpha')
      await lab.run()
      expect(lab.row('alpha')?.phase).toBe('Deleted')
      expectNothingLeft()
    },
  )
})

describe('a higher generation', () => {
  it.each(CREATE_STEPS)('replaces at the step %s', async (step) => {
    await open()
    lab.request('alpha')
    await atStep(lab, 'alpha', step)
    lab.request('alpha', { generation: 2, spec: { size: { cores: 2 } } })
    await lab.run()
    expect(lab.row('alpha')).toMatchObject({ phase: 'Ready', generation: 2 })
    const vms = lab.sim.vms().filter(({ template }) => !template)
    expect(vms.map(({ config }) => Number(config.cores))).toEqual([2])
    const seeds = lab.leftOvers().volumes.filter((volid) => volid.includes('iso/'))
    expect(seeds).toEqual(['local:iso/egress-test-alpha-g2.iso'])
    lab.remove('alpha')
    await lab.run()
    expectNothingLeft()
  })

  // Report: projectcalico/felix#233
  it('in another cluster moves it there, and keeps nothing in the first', async () => {
    await open({ besides: ['west'] })
    lab.request('alpha')
    await settled(lab, 'alpha')
    lab.request('alpha', { generation: 2, spec: { zone: 'west-1' } })
    await lab.run()
    const { phase, place, address } = lab.row('alpha') ?? {}
    expect({ phase, cluster: place?.cluster }).toEqual({ phase: 'Ready', cluster: 'west' })
    expect(lab.sim.vms().filter(({ template }) => !template)).toEqual([])
    expect(
      lab.claims
        .all()
        .map(({ partition, sort }) => `${partition} ${sort}`)
        .sort(),
    ).toEqual([`address#west#${address} 0`, `vmid#west ${place?.vmid}`])
  })

  it('in another cluster gives back the number that a process which died had claimed in the first', async () => {
    await open({ besides: ['west'] })
    await lab.claims.takeVmid('lab', 5001, 'alpha')
    lab.request('alpha', { generation: 2, spec: { zone: 'west-1' } })
    expect(await settled(lab, 'alpha')).toMatchObject({ phase: 'Ready', place: { cluster: 'west' } })
    expect(lab.claims.all().filter(({ partition }) => partition.includes('#lab'))).toEqual([])
  })

  it('replaces a ready proxy, which keeps its MAC', async () => {
    await open()
    lab.request('alpha')
    const first = await settled(lab, 'alpha')
    lab.request('alpha', { generation: 2, name: 'renamed' })
    await lab.run()
    expect(lab.row('alpha')).toMatchObject({ phase: 'Ready', generation: 2, mac: first.mac })
    expect(eventTypes()).toEqual(['ProxyReady', 'ProxyReady'])
    expect(lab.leftOvers().vms).toHaveLength(1)
  })

  // Report: openshift-online/maestro#557
  it.each(DELETE_STEPS)('after a deletion, at its step %s, is dropped', async (step) => {
    await open()
    lab.request('alpha')
    await settled(lab, 'alpha')
    lab.remove('alpha')
    await atStep(lab, 'alpha', step)
    lab.request('alpha', { generation: 2 })
    await lab.run()
    expect(lab.row('alpha')?.phase).toBe('Deleted')
    expectNothingLeft()
  })
})

it('a failed proxy is deleted like any other', async () => {
  await open()
  lab.request('alpha', { spec: { proxy: { auth: { username: 'a', passwordParameter: 'nowhere' } } } })
  const failed = await settled(lab, 'alpha')
  expect(failed).toMatchObject({ phase: 'Failed', failedStep: 'seed', problem: { code: 'PasswordMissing' } })
  expect(lab.queues.deadLetters[0]?.obituary).toMatchObject({
    code: 'PasswordMissing',
    uid: 'alpha',
    step: 'seed',
  })
  lab.remove('alpha')
  await lab.run()
  expect(eventTypes()).toEqual(['ProxyFailed', 'ProxyDeleted'])
  expectNothingLeft()
})
