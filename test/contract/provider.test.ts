import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type Clone, type Look, ProxmoxError } from '../../lib/proxmox/index.ts'
import { type Cluster, type Door, openCluster } from './cluster-doors.ts'

// The provider against the simulated cluster, which shares no line with it and was held against recordings of the real
// one: each test runs on PVE 8 and 9, once without sockets on a clock that tests move, once over HTTPS.

const flavours: [8 | 9, Door][] = [
  [8, 'without sockets'],
  [9, 'without sockets'],
  [8, 'over HTTPS'],
  [9, 'over HTTPS'],
]

const vm = { node: 'pve1', vmid: 101 }
const template = { node: 'pve1', vmid: 9000 }
const linked: Clone = {
  template,
  vmid: 101,
  name: 'egress-a',
  description: 'mark',
  pool: 'egress',
  full: false,
}
const full: Clone = { ...linked, full: true, storage: 'vmdata', format: 'qcow2' }
const iso = { node: 'pve1', storage: 'local', filename: 'egress-a.iso' }
const mac = '02:00:00:00:00:01'
const done = { running: false, ok: true, warnings: 0 }

describe.each(flavours)('provider on PVE %s %s', (version, door) => {
  let cluster: Cluster
  beforeEach(async () => {
    cluster = await openCluster(version, door)
  })
  afterEach(() => cluster.close())

  /** What a call is refused with. */
  async function refusal(call: Promise<unknown>): Promise<ProxmoxError> {
    const outcome = await cluster.run(
      call.then(
        (value) => new Error(`expected a refusal, got ${JSON.stringify(value)}`),
        (error: unknown) => error,
      ),
    )
    if (outcome instanceof ProxmoxError) return outcome
    throw outcome
  }

  /** What a task that a call starts ends with. */
  async function failure(start: Promise<string>, by = cluster.provider): Promise<ProxmoxError> {
    const state = await cluster.ended(await cluster.run(start), by)
    if (!state.ok) return state.error
    throw new Error('expected a task to fail')
  }

  /** Looks until what it sees is of that kind. */
  async function seen(kind: Look['kind'], by = cluster.provider): Promise<Look> {
    const untilSeen = async () => {
      for (;;) {
        const look = await by.look(vm)
        if (look.kind === kind) return look
        await cluster.pause()
      }
    }
    return cluster.run(untilSeen())
  }

  async function make(clone = linked): Promise<void> {
    expect(await cluster.ended(await cluster.run(cluster.provider.clone(clone)))).toEqual(done)
  }

  test('leads a VM through its whole life with the least privileges', async () => {
    const { provider, run, ended, sim } = cluster
    expect(await run(provider.version())).toMatchObject({ major: version })
    expect(await run(provider.nodesOnline())).toEqual(['pve1', 'pve2', 'pve3'])
    expect(await run(provider.isFree(101))).toBe(true)
    expect(await run(provider.look(vm))).toEqual({ kind: 'absent' })
    // The token may clone the template, but not read it.
    expect(await run(provider.templateAt('pve1', 9000))).toEqual({ kind: 'hidden' })

    const cloning = await run(provider.clone(full))
    expect(await ended(cloning)).toEqual(done)
    expect(await run(provider.isFree(101))).toBe(false)
    expect(await run(provider.locate(101))).toMatchObject({ vmid: 101, node: 'pve1', type: 'qemu' })

    const uploaded = await run(provider.upload({ ...iso, bytes: Buffer.alloc(61_440, 1) }))
    expect(await ended(uploaded)).toEqual(done)

    const made = await run(provider.look(vm))
    if (made.kind !== 'vm') throw new Error(`looks like ${made.kind}`)
    expect(made.config).toMatchObject({
      name: 'egress-a',
      description: 'mark',
      agent: true,
      bootDisk: { slot: 'scsi0' },
    })
    const { digest, bootDisk } = made.config
    await run(
      provider.configure(vm, {
        digest,
        set: {
          cores: 2,
          memory: 1024,
          net0: `virtio=${mac},bridge=vmbr0`,
          ide2: 'local:iso/egress-a.iso,media=cdrom',
          boot: 'order=scsi0',
          tags: 'egress;Lab',
          onboot: true,
        },
      }),
    )
    const resizing = await run(provider.resize(vm, { disk: bootDisk?.slot ?? '', bytes: 3 * 2 ** 30 }))
    expect(await ended(resizing ?? '')).toEqual(done)
    expect(await run(provider.look(vm))).toMatchObject({
      config: {
        cores: 2,
        memoryMiB: 1024,
        onboot: true,
        boot: 'order=scsi0',
        tags: new Set(['egress', 'lab']),
        net0: { model: 'virtio', mac, bridge: 'vmbr0' },
        bootDisk: { sizeBytes: 3 * 2 ** 30 },
        cdroms: [{ slot: 'ide2', volume: 'local:iso/egress-a.iso' }],
      },
    })

    expect(await run(provider.status(vm))).toMatchObject({ running: false, qmp: 'stopped' })
    expect(await ended(await run(provider.start(vm)))).toEqual(done)
    expect(await run(provider.status(vm))).toMatchObject({ running: true, qmp: 'running' })
    expect(await run(provider.interfaces(vm))).toContainEqual({
      name: 'eth0',
      mac,
      addresses: [{ address: '10.0.0.5', family: 'ipv4', prefix: 24 }],
    })

    expect(await ended(await run(provider.stop(vm)))).toEqual(done)
    const deleting = await run(provider.deleteVolume({ ...iso, volume: 'local:iso/egress-a.iso' }))
    expect(await ended(deleting ?? '')).toEqual(done)
    expect(await ended(await run(provider.destroy(vm, { unreferencedDisks: true })))).toEqual(done)
    expect(await run(provider.look(vm))).toEqual({ kind: 'absent' })
    expect(await run(provider.volumesOf({ node: 'pve1', storage: 'vmdata', vmid: 101 }))).toEqual([])
    expect(sim.volumes().filter(({ volid }) => /101|egress-a/.test(volid))).toEqual([])
  })

  test('knows a number that is taken, on the same node and on another', async () => {
    const { provider } = cluster
    await make()
    expect(await refusal(provider.clone(linked))).toMatchObject({ code: 'AlreadyExists', ambiguous: false })
    const elsewhere = { ...linked, template: { node: 'pve2', vmid: 9001 } }
    expect(await failure(provider.clone(elsewhere))).toMatchObject({ code: 'AlreadyExists' })
  })

  test('finds a VM whose node it was told wrongly', async () => {
    const { provider, run } = cluster
    await make()
    expect(await run(provider.look({ ...vm, node: 'pve2' }))).toMatchObject({ kind: 'vm', node: 'pve1' })
  })

  test('is refused what would hurt a running or protected VM', async () => {
    const { provider, run, ended } = cluster
    await make()
    await ended(await run(provider.start(vm)))
    expect(await failure(provider.start(vm))).toMatchObject({ code: 'AlreadyRunning' })
    expect(await refusal(provider.destroy(vm, { unreferencedDisks: true }))).toMatchObject({
      code: 'Running',
    })
    expect(await ended(await run(provider.stop(vm)))).toEqual(done)
    expect(await ended(await run(provider.stop(vm)))).toEqual(done)
    await run(provider.configure(vm, { set: { protection: true } }))
    expect(await refusal(provider.destroy(vm, { unreferencedDisks: true }))).toMatchObject({
      code: 'Protected',
    })
  })

  test('is refused a change made from an outdated configuration', async () => {
    const { provider, run } = cluster
    await make()
    const change = { set: { cores: 2 }, digest: '0'.repeat(40) }
    expect(await refusal(provider.configure(vm, change))).toMatchObject({
      code: 'DigestMismatch',
      status: 500,
    })
    expect(await run(provider.look(vm))).toMatchObject({ config: { cores: 1 } })
  })

  test('is refused what the request itself gets wrong', async () => {
    const { provider } = cluster
    expect(await refusal(provider.clone({ ...linked, name: 'a_b' }))).toMatchObject({
      code: 'Rejected',
      status: 400,
      detail: { name: expect.stringContaining('DNS name') },
    })
    await make()
    expect(await failure(provider.resize(vm, { disk: 'scsi0', bytes: 1 }).then(String))).toMatchObject({
      code: 'Rejected',
    })
    expect(await refusal(provider.isos({ node: 'pve1', storage: 'nowhere' }))).toMatchObject({
      code: 'Forbidden',
    })
  })

  test('reads the lock of a VM that something else works on', async () => {
    const { provider, client, sim, world, run } = cluster
    await make()
    sim.qm('pve1', ['set', '101', '--lock', 'backup'])
    expect(await run(provider.look(vm))).toMatchObject({ config: { lock: 'backup' } })
    expect(await refusal(provider.configure(vm, { set: { cores: 2 } }))).toMatchObject({
      code: 'VmLocked',
      lock: 'backup',
    })
    expect(await failure(provider.start(vm))).toMatchObject({ code: 'VmLocked', lock: 'backup' })
    const admin = client({ token: { get: async () => [world.tokens.admin] } })
    expect(await run(admin.locate(101))).toMatchObject({ lock: 'backup', pool: 'egress' })
  })

  test('says which privilege is missing, and where', async () => {
    const { provider } = cluster
    expect(await refusal(provider.isos({ node: 'pve1', storage: 'local' }))).toMatchObject({
      code: 'Forbidden',
      path: '/storage/local',
      privilege: 'Datastore.Audit|Datastore.AllocateSpace',
    })
    expect(await refusal(provider.clusterStatus())).toMatchObject({
      code: 'Forbidden',
      path: '/',
      privilege: 'Sys.Audit',
    })
  })

  test('reports a start whose seed is gone by the volume’s name', async () => {
    const { provider, run, ended } = cluster
    await make()
    await ended(await run(provider.upload({ ...iso, bytes: Buffer.from('x') })))
    await run(provider.configure(vm, { set: { ide2: 'local:iso/egress-a.iso,media=cdrom' } }))
    await ended((await run(provider.deleteVolume({ ...iso, volume: 'local:iso/egress-a.iso' }))) ?? '')
    expect(await failure(provider.start(vm))).toMatchObject({
      code: 'VolumeMissing',
      volume: 'local:iso/egress-a.iso',
    })
  })

  test('deletes a seed that is gone already', async () => {
    const { provider, run, ended } = cluster
    const upid = await run(provider.deleteVolume({ ...iso, volume: 'local:iso/egress-a.iso' }))
    expect(await ended(upid ?? '')).toEqual(done)
  })

  // Report: Telmate/terraform-provider-proxmox#851
  test('goes round an endpoint that is down, and tells a node that is', async () => {
    const { provider, run, sim } = cluster
    sim.setNode('pve1', 'down')
    expect(await run(provider.isFree(101))).toBe(true)
    expect(await refusal(provider.clone(linked))).toMatchObject({
      code: 'Unreachable',
      node: 'pve1',
      sent: 'no',
      ambiguous: false,
    })
    sim.setNode('pve1', 'up')
    await make()
  })

  test('does not believe a cluster without quorum', async () => {
    const { provider, sim, run } = cluster
    for (const node of ['pve1', 'pve2', 'pve3']) sim.setNode(node, 'no-quorum')
    expect(await refusal(provider.isFree(101))).toMatchObject({ code: 'NoQuorum' })
    expect(await refusal(provider.clone(linked))).toMatchObject({ code: 'NoQuorum', ambiguous: false })
    expect(await run(provider.look(vm))).toEqual({ kind: 'unknown', reason: 'no quorum' })
  })

  test('believes the quorate part of a cluster that lost a node', async () => {
    const { provider, sim, run } = cluster
    sim.setNode('pve1', 'no-quorum')
    expect(await run(provider.isFree(101))).toBe(true)
  })

  test('says that a call may run when Proxmox gave up waiting for it, and it does', async () => {
    const { provider, sim } = cluster
    sim.faults.add({
      match: { method: 'POST', path: '/clone$' },
      times: 1,
      effect: { kind: 'answer', answer: { status: 596, reason: 'Connection timed out' }, runAfterMs: 5 },
    })
    expect(await refusal(provider.clone(linked))).toMatchObject({
      code: 'Unreachable',
      status: 596,
      ambiguous: true,
    })
    expect(await seen('vm')).toMatchObject({ config: { name: 'egress-a' } })
  })

  test('says that a call may run when the connection broke after it was sent', async () => {
    const { provider, sim } = cluster
    sim.faults.add({
      match: { method: 'POST', path: '/clone$' },
      times: 1,
      effect: { kind: 'connection', code: 'ECONNRESET', sent: true, runAfterMs: 0 },
    })
    expect(await refusal(provider.clone(linked))).toMatchObject({
      code: 'Unreachable',
      sent: 'maybe',
      ambiguous: true,
    })
  })

  // What follows takes Proxmox seconds, or must meet a clone under way: only the moved clock has time for it.
  if (door === 'over HTTPS') return

  test('goes on with the second stored token when the first was withdrawn', async () => {
    const { client, run, world, sim } = cluster
    const old = `${world.tokens.egress}x`
    const provider = client({ token: { get: async () => [old, world.tokens.egress] } })
    expect(await run(provider.isFree(101))).toBe(true)
    expect(sim.calls().filter(({ status }) => status === 401)).toHaveLength(1)
  })

  test('reads the agent’s silence and its errors', async () => {
    const { provider, run, ended, sim } = cluster
    await make()
    expect(await refusal(provider.interfaces(vm))).toMatchObject({ code: 'NotRunning' })
    await ended(await run(provider.start(vm)))
    const path = 'network-get-interfaces'
    sim.faults.add({
      match: { path },
      times: 1,
      effect: { kind: 'agentError', error: { class: 'CommandNotFound', desc: 'disabled' } },
    })
    expect(await refusal(provider.interfaces(vm))).toMatchObject({ code: 'AgentError' })
    sim.faults.add({ match: { path }, times: 1, effect: { kind: 'agentHangs' } })
    expect(await refusal(provider.interfaces(vm))).toMatchObject({ code: 'AgentSilent' })
  })

  test('says which privilege an upload is missing, which stands in the reason phrase alone', async () => {
    const { provider } = cluster
    const file = { node: 'pve1', storage: 'vmdata', filename: 'a.iso', bytes: Buffer.from('x') }
    expect(await refusal(provider.upload(file))).toMatchObject({
      code: 'Forbidden',
      path: '/storage/vmdata',
      privilege: 'Datastore.AllocateTemplate',
    })
  })

  test('lists a node as online no more when its link is cut', async () => {
    const { provider, run, sim } = cluster
    sim.setNode('pve1', 'unreachable')
    expect(await run(provider.nodesOnline())).toEqual(['pve2', 'pve3'])
    expect(await run(provider.isFree(101))).toBe(true)
  })

  test('reads round a node that hangs, and does not know what became of a change sent to it', async () => {
    const { provider, run, sim } = cluster
    await make()
    sim.setNode('pve1', 'hung')
    expect(await refusal(provider.clone({ ...linked, vmid: 102 }))).toMatchObject({
      code: 'Unreachable',
      node: 'pve1',
      ambiguous: true,
    })
    expect(await run(provider.isFree(103))).toBe(true)
    expect(await refusal(provider.status(vm))).toMatchObject({
      code: 'Unreachable',
      node: 'pve1',
      ambiguous: false,
    })
  })

  test('tells a VM it may not see yet from an absent one while it is cloned', async () => {
    const { provider, run, ended } = cluster
    const cloning = await run(provider.clone(full))
    // Nothing is there before the task has begun: only the task tells that something is under way.
    await seen('hidden')
    expect(await run(provider.runningTasks({ node: 'pve1', type: 'qmclone' }))).toMatchObject([
      { upid: cloning },
    ])
    await ended(cloning)
    expect(await run(provider.look(vm))).toMatchObject({ kind: 'vm' })
    expect(await run(provider.runningTasks({ node: 'pve1', type: 'qmclone' }))).toEqual([])
  })

  test('cancels a clone, of which nothing stays', async () => {
    const { provider, run, ended } = cluster
    const cloning = await run(provider.clone(full))
    await run(provider.cancel(cloning))
    expect(await ended(cloning)).toMatchObject({
      ok: false,
      error: { code: 'Interrupted', call: 'task qmclone' },
    })
    await run(provider.cancel(cloning))
    expect(await run(provider.look(vm))).toEqual({ kind: 'absent' })
  })

  test('sees that a clone’s worker was killed, and what it left', async () => {
    const { provider, client, run, ended, sim, world } = cluster
    const cloning = await run(provider.clone(full))
    await seen('hidden')
    sim.killTask(cloning, 'KILL')
    expect(await ended(cloning)).toMatchObject({ ok: false, error: { code: 'TaskLost' } })
    const admin = client({ token: { get: async () => [world.tokens.admin] } })
    expect(await run(admin.look(vm))).toMatchObject({ kind: 'vm', config: { lock: 'clone' } })
    expect(await failure(admin.destroy(vm, { unreferencedDisks: true }), admin)).toMatchObject({
      code: 'VmLocked',
      lock: 'clone',
      vmid: 101,
    })
  })
})
