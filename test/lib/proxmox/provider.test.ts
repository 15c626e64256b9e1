import { describe, expect, test } from 'vitest'
import {
  answer,
  broken,
  fakeCluster,
  forbidden,
  missing,
  ok,
  pve1,
  pve2,
  refused,
  rejection,
  type Sent,
  taken,
  upid,
} from './fake-exchange.ts'

const at = { node: 'pve1', vmid: 101 }
const vm = { ...at, node: 'pve2' }
const free = ok('101')
const found = ok({ digest: 'd', name: 'egress-a' })
const quorate = (quorum: 0 | 1) =>
  ok([
    { type: 'cluster', name: 'lab', quorate: quorum, nodes: 3 },
    { type: 'node', name: 'pve1', online: 1 },
    { type: 'node', name: 'pve2', online: quorum },
  ])
const noAudit = forbidden('/', 'Sys.Audit')
const nodes = (...states: string[]) =>
  ok(states.map((status, index) => ({ node: `pve${index + 1}`, status })))
const listed = (...vms: { vmid: number; node: string; type?: string; lock?: string; tags?: string }[]) =>
  ok(vms.map((entry) => ({ type: 'qemu', status: 'unknown', name: 'an earlier VM', ...entry })))
const hidden = forbidden('/vms/101', 'VM.Audit')

type Reply = ReturnType<typeof ok> | Error
const isConfig = (path: string, node: string) => path === `/nodes/${node}/qemu/101/config`

/** A cluster of which only what decides about a VMID is played; a function may answer by endpoint. */
function world(play: {
  pve1?: Reply
  pve2?: Reply
  list?: Reply
  next?: Reply | ((request: Sent) => Reply)
  status?: Reply | ((request: Sent) => Reply)
  nodes?: Reply
}) {
  const by = (part: Reply | ((request: Sent) => Reply) | undefined, request: Sent, otherwise: Reply) =>
    typeof part === 'function' ? part(request) : (part ?? otherwise)
  return fakeCluster(
    (request) => {
      const { path } = request
      if (isConfig(path, 'pve1')) return play.pve1 ?? missing(101)
      if (isConfig(path, 'pve2')) return play.pve2 ?? missing(101, 'pve2')
      if (path === '/cluster/resources') return play.list ?? listed()
      if (path === '/cluster/nextid') return by(play.next, request, free)
      if (path === '/cluster/status') return by(play.status, request, quorate(1))
      if (path === '/nodes') return play.nodes ?? nodes('online')
      throw new Error(`not played: ${request.method} ${path}`)
    },
    { endpoints: [pve1, pve2] },
  )
}

const paths = (sent: Sent[]) => sent.map(({ node, path }) => `${node} ${path}`)

describe('provider: look', () => {
  test('sees the VM where it was last', async () => {
    const { provider, sent } = world({ pve1: found })
    expect(await provider.look(at)).toMatchObject({ kind: 'vm', node: 'pve1', config: { name: 'egress-a' } })
    expect(sent).toHaveLength(1)
  })

  test('follows it to where it moved', async () => {
    const { provider } = world({ list: listed({ vmid: 101, node: 'pve2' }), pve2: found })
    expect(await provider.look(at)).toMatchObject({ kind: 'vm', node: 'pve2' })
  })

  test('finds it on another node when its own is down', async () => {
    const { provider } = world({
      pve1: answer(595, 'No route to host'),
      list: listed({ vmid: 101, node: 'pve2' }),
      pve2: found,
    })
    expect(await provider.look(at)).toMatchObject({ kind: 'vm', node: 'pve2' })
  })

  test('passes on that its node is down while it still stands there', async () => {
    const { provider } = world({
      pve1: answer(595, 'No route to host'),
      list: listed({ vmid: 101, node: 'pve1' }),
      next: taken(101),
    })
    expect(await rejection(provider.look(at))).toMatchObject({
      code: 'Unreachable',
      node: 'pve1',
      status: 595,
    })
  })

  // Report: theforeman/foreman_fog_proxmox#368
  test('proves absence by the number being free in a quorate cluster, not by the list', async () => {
    const { provider, sent } = world({})
    expect(await provider.look(at)).toEqual({ kind: 'absent' })
    expect(paths(sent).slice(-2)).toEqual(['pve1 /cluster/status', 'pve1 /cluster/nextid'])
  })

  test('does not take a missing VM for absent while the number is taken', async () => {
    const { provider } = world({ next: taken(101) })
    expect(await provider.look(at)).toMatchObject({
      kind: 'unknown',
      reason: expect.stringContaining('taken'),
    })
  })

  test('believes the number over a list that still shows the VM', async () => {
    const { provider } = world({ list: listed({ vmid: 101, node: 'pve2' }) })
    expect(await provider.look(at)).toEqual({ kind: 'absent' })
  })

  test('does not believe an endpoint without quorum that the number is free', async () => {
    const { provider } = world({ status: quorate(0) })
    expect(await provider.look(at)).toEqual({ kind: 'unknown', reason: 'no quorum' })
  })

  test('asks the next endpoint when the first is cut off, number and quorum at the same one', async () => {
    const { provider, sent } = world({ status: ({ node }) => quorate(node === 'pve2' ? 1 : 0) })
    expect(await provider.look(at)).toEqual({ kind: 'absent' })
    expect(paths(sent).slice(-3)).toEqual([
      'pve1 /cluster/status',
      'pve2 /cluster/status',
      'pve2 /cluster/nextid',
    ])
  })

  test('asks both again elsewhere when the endpoint dies between the two', async () => {
    const { provider, sent } = world({
      next: ({ node }) => (node === 'pve1' ? broken('ECONNREFUSED', false) : free),
    })
    expect(await provider.look(at)).toEqual({ kind: 'absent' })
    expect(paths(sent).slice(-2)).toEqual(['pve2 /cluster/status', 'pve2 /cluster/nextid'])
  })

  test.each([
    [['online'], 'absent'],
    [['online', 'online', 'offline'], 'absent'],
    [['online', 'offline'], 'unknown'],
    [['online', 'online', 'offline', 'unknown'], 'unknown'],
  ])('without Sys.Audit takes nodes that are %j for %s', async (states, kind) => {
    const { provider } = world({ status: noAudit, nodes: nodes(...states) })
    expect(await provider.look(at)).toMatchObject({ kind })
  })

  test('takes a node that stands alone for quorate', async () => {
    const { provider } = world({ status: ok([{ type: 'node', name: 'pve1', online: 1 }]) })
    expect(await provider.look(at)).toEqual({ kind: 'absent' })
  })

  test('tells a VM it may not see from one that is gone', async () => {
    expect(await world({ pve1: hidden, next: taken(101) }).provider.look(at)).toEqual({ kind: 'hidden' })
    expect(await world({ pve1: hidden }).provider.look(at)).toEqual({ kind: 'absent' })
    expect(await world({ pve1: hidden, status: quorate(0) }).provider.look(at)).toMatchObject({
      kind: 'unknown',
    })
  })

  test('sees that a container has the number', async () => {
    const { provider } = world({ list: listed({ vmid: 101, node: 'pve2', type: 'lxc' }), next: taken(101) })
    expect(await provider.look(at)).toEqual({ kind: 'container', node: 'pve2' })
  })

  test('passes on what it cannot judge', async () => {
    const { provider } = world({ pve1: refused(500, 'something else') })
    expect(await rejection(provider.look(at))).toMatchObject({ code: 'Unknown' })
  })
})

describe('provider: look, expecting nothing', () => {
  test('takes the proof alone', async () => {
    const { provider, sent } = world({})
    expect(await provider.look(at, 'nothing')).toEqual({ kind: 'absent' })
    expect(paths(sent)).toEqual(['pve1 /cluster/status', 'pve1 /cluster/nextid'])
  })

  test.each([
    ['the VM stands there', { pve1: found, next: taken(101) }],
    ['it moved', { list: listed({ vmid: 101, node: 'pve2' }), pve2: found, next: taken(101) }],
    ['it is hidden', { pve1: hidden, next: taken(101) }],
    ['a container has it', { list: listed({ vmid: 101, node: 'pve2', type: 'lxc' }), next: taken(101) }],
    ['it is taken and not to be found', { next: taken(101) }],
    ['it may not be seen, and is free', { pve1: hidden }],
    ['there is no quorum', { status: quorate(0) }],
    ['there is no quorum, and the VM is seen', { pve1: found, status: quorate(0) }],
    ['only the second endpoint is quorate', { status: ({ node }: Sent) => quorate(node === 'pve2' ? 1 : 0) }],
  ] satisfies [string, Parameters<typeof world>[0]][])('finds the same where %s', async (_, play) => {
    const found = await world(play).provider.look(at)
    expect(await world(play).provider.look(at, 'nothing')).toEqual(found)
  })
})

describe('provider: numbers and nodes', () => {
  test('knows free from taken numbers', async () => {
    expect(await world({}).provider.isFree(101)).toBe(true)
    expect(await world({ next: taken(101) }).provider.isFree(101)).toBe(false)
  })

  test('does not call a number free without quorum', async () => {
    const { provider } = world({ status: quorate(0) })
    expect(await rejection(provider.isFree(101))).toMatchObject({ code: 'NoQuorum', vmid: 101 })
  })

  test('lists guests with what is true of them at once', async () => {
    const { provider } = world({
      list: ok([
        { id: 'qemu/101', type: 'qemu', vmid: '101', node: 'pve1', lock: 'clone', tags: 'A;b', name: 'old' },
        { id: 'lxc/102', type: 'lxc', vmid: 102, node: 'pve2', pool: 'egress' },
        { id: 'thing/1', type: 'thing' },
      ]),
    })
    expect(await provider.listVms()).toEqual([
      { type: 'qemu', vmid: 101, node: 'pve1', lock: 'clone', tags: new Set(['a', 'b']) },
      { type: 'lxc', vmid: 102, node: 'pve2', pool: 'egress', tags: new Set() },
    ])
    expect(await provider.locate(102)).toMatchObject({ node: 'pve2' })
    expect(await provider.locate(103)).toBeUndefined()
  })

  test('lists the nodes that are online', async () => {
    const { provider } = world({ nodes: nodes('online', 'offline', 'online') })
    expect(await provider.nodesOnline()).toEqual(['pve1', 'pve3'])
  })

  test.each([
    ['a template', ok({ digest: 'd', template: 1 }), 'template'],
    ['a VM', ok({ digest: 'd' }), 'vm'],
    ['nothing', missing(101), 'missing'],
    ['what it may not see', hidden, 'hidden'],
  ])('sees %s where the template should be', async (_, reply, kind) => {
    expect(await world({ pve1: reply }).provider.templateAt('pve1', 101)).toMatchObject({ kind })
  })

  test('does not take a node that is down for one without the template', async () => {
    const { provider } = world({ pve1: answer(595, 'Connection refused') })
    expect(await rejection(provider.templateAt('pve1', 101))).toMatchObject({ code: 'Unreachable' })
  })
})

describe('provider: machines', () => {
  const clone = {
    template: { node: 'pve1', vmid: 9000 },
    vmid: 101,
    name: 'a',
    description: 'd',
    pool: 'egress',
  }
  const target = { storage: 'vmdata', format: 'qcow2' } as const

  test('sends storage and format with a full clone only', async () => {
    const { provider, sent } = fakeCluster(() => ok(upid()))
    await provider.clone({ ...clone, ...target, full: true })
    await provider.clone({ ...clone, ...target, full: false })
    expect(sent.map(({ body }) => body)).toEqual([
      'newid=101&name=a&description=d&pool=egress&full=1&storage=vmdata&format=qcow2',
      'newid=101&name=a&description=d&pool=egress&full=0',
    ])
  })

  test('changes options in one PUT', async () => {
    const { provider, sent } = fakeCluster(() => ok(null))
    await provider.configure(vm, { set: { cores: 2, onboot: true }, delete: ['ide0', 'ide3'], digest: 'd' })
    expect(sent).toMatchObject([{ method: 'PUT', body: 'cores=2&onboot=1&delete=ide0%2Cide3&digest=d' }])
  })

  test('sends nothing when there is nothing to change', async () => {
    const { provider, sent } = fakeCluster(() => ok(null))
    await provider.configure(vm, { digest: 'd' })
    expect(sent).toEqual([])
  })

  test('resizes to an absolute size, and knows PVE 7’s way of having done it', async () => {
    const { provider, sent } = fakeCluster(({ node }) =>
      node === 'pve1' ? ok(upid('resize', '101')) : ok(null),
    )
    expect(await provider.resize(vm, { disk: 'scsi0', bytes: 2 ** 31 })).toBe(upid('resize', '101'))
    expect(sent[0]?.body).toBe('disk=scsi0&size=2147483648')
    const seven = fakeCluster(() => ok(null))
    expect(await seven.provider.resize(vm, { disk: 'scsi0', bytes: 1 })).toBeUndefined()
  })

  test.each([
    [
      { status: 'running', qmpstatus: 'running' },
      { running: true, qmp: 'running' },
    ],
    [
      { status: 'running', qmpstatus: 'paused' },
      { running: false, qmp: 'paused' },
    ],
    [
      { status: 'running', qmpstatus: 'prelaunch', lock: 'backup' },
      { running: false, qmp: 'prelaunch', lock: 'backup' },
    ],
    [
      { status: 'stopped', qmpstatus: 'stopped' },
      { running: false, qmp: 'stopped' },
    ],
    [{ status: 'stopped' }, { running: false, qmp: 'stopped' }],
  ])('reads the status %j', async (given, status) => {
    expect(await fakeCluster(() => ok(given)).provider.status(vm)).toEqual(status)
    expect(await fakeCluster(() => ok(given)).provider.glance(vm)).toEqual(status)
  })

  test.each([
    ['is gone, or moved', missing(101)],
    ['may not be seen', forbidden('/vms/101', 'VM.Audit')],
    ['is on a node that is down', answer(595, 'No route to host')],
  ])('at a glance says nothing of a VM that %s', async (_, reply) => {
    expect(await fakeCluster(() => reply).provider.glance(vm)).toBeUndefined()
  })

  test('at a glance passes on what it cannot judge', async () => {
    const { provider } = fakeCluster(() => refused(500, 'something else'))
    expect(await rejection(provider.glance(vm))).toMatchObject({ code: 'Unknown' })
  })
})

describe('provider: interfaces', () => {
  const asked = (result: unknown) => fakeCluster(() => ok({ result })).provider.interfaces(vm)
  const address = { 'ip-address': '10.0.0.5', 'ip-address-type': 'ipv4', prefix: 24 }

  // Report: xezpeleta/Ansible-Proxmox-inventory#27
  test('reads what the guest lists', async () => {
    const result = [
      { name: 'lo' },
      { name: 'eth0', 'hardware-address': '02:AB:00:00:00:01', 'ip-addresses': [address] },
    ]
    expect(await asked(result)).toEqual([
      { name: 'lo', addresses: [] },
      {
        name: 'eth0',
        mac: '02:ab:00:00:00:01',
        addresses: [{ address: '10.0.0.5', family: 'ipv4', prefix: 24 }],
      },
    ])
  })

  test('leaves out what a guest makes up', async () => {
    const result = [
      null,
      { name: 5 },
      { name: 'a', 'ip-addresses': 'none' },
      {
        name: 'b',
        'hardware-address': {},
        'ip-addresses': [{ ...address, 'ip-address': 'x'.repeat(65) }, address],
      },
    ]
    expect(await asked(result)).toEqual([
      { name: 'a', addresses: [] },
      { name: 'b', addresses: [{ address: '10.0.0.5', family: 'ipv4', prefix: 24 }] },
    ])
  })

  test('looks at 64 interfaces with 64 addresses at most', async () => {
    const many = Array.from({ length: 100 }, () => ({ name: 'a', 'ip-addresses': Array(100).fill(address) }))
    const read = await asked(many)
    expect(read).toHaveLength(64)
    expect(read[63]?.addresses).toHaveLength(64)
  })

  test('throws the agent’s own error, which comes inside a success', async () => {
    const error = { class: 'CommandNotFound', desc: 'Command guest-network-get-interfaces has been disabled' }
    expect(await rejection(asked({ error }))).toMatchObject({
      code: 'AgentError',
      vmid: 101,
      message: expect.stringMatching(
        /: the agent says: Command guest-network-get-interfaces has been disabled$/,
      ),
    })
  })

  test.each([
    ['QEMU guest agent is not running', 'AgentSilent'],
    ["VM 101 qga command 'guest-network-get-interfaces' failed - got timeout", 'AgentSilent'],
    ['No QEMU guest agent configured', 'AgentOff'],
    ['VM 101 is not running', 'NotRunning'],
  ])('reads %j', async (message, code) => {
    const { provider } = fakeCluster(() => refused(500, message))
    expect(await rejection(provider.interfaces(vm))).toMatchObject({ code })
  })
})

describe('provider: tasks', () => {
  const ended = (exitstatus: string, id = upid()) =>
    fakeCluster(() => ok({ status: 'stopped', exitstatus })).provider.task(id)

  // Report: ansible-collections/community.proxmox#222
  // Report: bpg/terraform-provider-proxmox#521
  test('asks the node in the UPID', async () => {
    const { provider, sent } = fakeCluster(() => ok({ status: 'running' }), { endpoints: [pve1, pve2] })
    expect(await provider.task(upid('imgcopy', '', 'pve2'))).toEqual({ running: true })
    expect(sent[0]).toMatchObject({
      node: 'pve2',
      path: expect.stringMatching(/^\/nodes\/pve2\/tasks\/UPID%3A/),
    })
  })

  test.each([
    ['OK', 0],
    ['WARNINGS: 2', 2],
  ])('knows success: %s', async (exitstatus, warnings) => {
    expect(await ended(exitstatus)).toEqual({ running: false, ok: true, warnings })
  })

  test('gives the end of a task its code, call, node and number', async () => {
    expect(await ended('VM is locked (backup)', upid('qmstart', '101'))).toMatchObject({
      running: false,
      ok: false,
      error: {
        code: 'VmLocked',
        lock: 'backup',
        call: 'task qmstart',
        node: 'pve1',
        vmid: 101,
        ambiguous: false,
      },
    })
  })

  test('takes a killed worker, and one without a last word, for lost', async () => {
    expect(await ended('unexpected status')).toMatchObject({ error: { code: 'TaskLost' } })
    const { provider } = fakeCluster(() => ok({ status: 'stopped' }))
    expect(await provider.task(upid())).toMatchObject({ ok: false, error: { code: 'TaskLost' } })
  })

  test('knows the target’s lock of a clone from the template’s', async () => {
    const lock = (vmid: number) => `can't lock file '/var/lock/qemu-server/lock-${vmid}.conf' - got timeout`
    expect(await ended(lock(101))).toMatchObject({ error: { code: 'AlreadyExists' } })
    expect(await ended(lock(9000))).toMatchObject({ error: { code: 'Locked' } })
    expect(await ended(lock(102), upid('qmstart', '101'))).toMatchObject({ error: { code: 'Locked' } })
  })

  test('tells a task nobody knows from a node that is down', async () => {
    const unknown = refused(400, 'Parameter verification failed.', { upid: 'no such task' })
    expect(await rejection(fakeCluster(() => unknown).provider.task(upid()))).toMatchObject({
      code: 'NoSuchTask',
    })
    const down = answer(595, 'No route to host')
    expect(await rejection(fakeCluster(() => down).provider.task(upid()))).toMatchObject({
      code: 'Unreachable',
      node: 'pve1',
    })
  })

  test('cancels, and finds nothing wrong with a task that is gone', async () => {
    const { provider, sent } = fakeCluster(() => ok(null))
    await provider.cancel(upid())
    expect(sent[0]).toMatchObject({
      method: 'DELETE',
      path: expect.stringContaining('/nodes/pve1/tasks/UPID'),
    })
    const unknown = refused(400, 'Parameter verification failed.', { upid: 'no such task' })
    await fakeCluster(() => unknown).provider.cancel(upid())
  })

  test('leaves a task alone that the token may not stop: one that was replaced since began it', async () => {
    const refusal = forbidden('/nodes/pve1', 'Sys.Modify')
    await fakeCluster(() => refusal).provider.cancel(upid())
  })

  test('refuses a handle that is none, without asking', async () => {
    const { provider, sent } = fakeCluster(() => ok(null))
    expect(await rejection(provider.task('UPID:nonsense'))).toMatchObject({ code: 'Rejected', sent: 'no' })
    expect(sent).toEqual([])
  })

  test('lists what still runs', async () => {
    const entry = { node: 'pve1', type: 'qmclone', id: '9000', starttime: 1_796_090_784 }
    const { provider, sent } = fakeCluster(() =>
      ok([
        { ...entry, upid: upid(), status: 'RUNNING' },
        { ...entry, upid: upid('qmclone', '9001'), status: 'OK', endtime: 1_796_090_787 },
      ]),
    )
    expect(await provider.runningTasks({ node: 'pve1', vmid: 9000, type: 'qmclone' })).toEqual([
      { upid: upid(), node: 'pve1', type: 'qmclone', id: '9000', startedAtMs: 1_796_090_784_000 },
    ])
    expect(sent[0]?.query).toBe('source=active&limit=500&vmid=9000&typefilter=qmclone')
  })
})

describe('provider: volumes', () => {
  const place = { node: 'pve1', storage: 'local' }

  test('lists a VM’s disks, not its backups', async () => {
    const volume = {
      volid: 'vmdata:101/vm-101-disk-0.qcow2',
      format: 'qcow2',
      content: 'images',
      size: '4096',
      vmid: '101',
    }
    const { provider, sent } = fakeCluster(() => ok([volume]))
    expect(await provider.volumesOf({ ...place, vmid: 101 })).toEqual([
      { volid: volume.volid, format: 'qcow2', content: 'images', sizeBytes: 4096, vmid: 101 },
    ])
    expect(sent[0]?.query).toBe('vmid=101&content=images')
  })

  test('lists ISOs', async () => {
    const { provider, sent } = fakeCluster(() =>
      ok([{ volid: 'local:iso/a.iso', format: 'iso', content: 'iso', size: 5 }]),
    )
    expect(await provider.isos(place)).toEqual([
      { volid: 'local:iso/a.iso', format: 'iso', content: 'iso', sizeBytes: 5 },
    ])
    expect(sent[0]?.query).toBe('content=iso')
  })

  test('deletes a volume by a name that is one segment of the path', async () => {
    const { provider, sent } = fakeCluster(() => ok(upid('imgdel', 'local')))
    expect(await provider.deleteVolume({ ...place, volume: 'local:iso/a.iso' })).toBe(upid('imgdel', 'local'))
    expect(sent[0]?.path).toBe('/nodes/pve1/storage/local/content/local%3Aiso%2Fa.iso')
    expect(await fakeCluster(() => ok(null)).provider.deleteVolume({ ...place, volume: 'x' })).toBeUndefined()
  })

  // Report: ionos-cloud/cluster-api-provider-proxmox#569
  test('uploads to the endpoint on the node when there is one, else to any with that node in the path', async () => {
    const file = { storage: 'local', filename: 'a.iso', bytes: Buffer.from('x') }
    const { provider, sent } = fakeCluster(() => ok(upid('imgcopy', '')), { endpoints: [pve1, pve2] })
    await provider.upload({ ...file, node: 'pve2' })
    await provider.upload({ ...file, node: 'pve3' })
    expect(paths(sent)).toEqual([
      'pve2 /nodes/pve2/storage/local/upload',
      'pve1 /nodes/pve3/storage/local/upload',
    ])
  })

  // Report: siderolabs/omni-infra-provider-proxmox#22
  test('reads storages, of which an inactive one has no sizes', async () => {
    const { provider } = fakeCluster(() =>
      ok([
        {
          storage: 'vmdata',
          type: 'dir',
          content: 'images,iso',
          enabled: 1,
          active: 1,
          shared: 0,
          total: '10',
          avail: 4,
        },
        { storage: 'nfs', type: 'nfs', content: 'images', enabled: 0 },
      ]),
    )
    expect(await provider.storages('pve1')).toEqual([
      {
        storage: 'vmdata',
        type: 'dir',
        content: new Set(['images', 'iso']),
        enabled: true,
        active: true,
        shared: false,
        totalBytes: 10,
        availableBytes: 4,
      },
      {
        storage: 'nfs',
        type: 'nfs',
        content: new Set(['images']),
        enabled: false,
        active: false,
        shared: false,
        totalBytes: 0,
        availableBytes: 0,
      },
    ])
  })
})

describe('provider: looking around', () => {
  test('reads the privileges on one path', async () => {
    const { provider, sent } = fakeCluster(() => ok({ '/vms/101': { 'VM.Audit': 1, 'VM.Clone': 0 } }))
    expect(await provider.permissions('/vms/101')).toEqual(new Set(['VM.Audit', 'VM.Clone']))
    expect(sent[0]?.query).toBe('path=%2Fvms%2F101')
    expect(await fakeCluster(() => ok({})).provider.permissions('/')).toEqual(new Set())
  })

  test('reads the cluster’s state', async () => {
    expect(await fakeCluster(() => quorate(0)).provider.clusterStatus()).toEqual({
      clustered: true,
      quorate: false,
      nodes: [
        { name: 'pve1', online: true },
        { name: 'pve2', online: false },
      ],
    })
  })

  test('reads when a token and its user end, of which 0 is never', async () => {
    const user = (expire: number, ends: number) => ({
      userid: 'egress@pve',
      expire,
      tokens: [{ tokenid: 'ctl', expire: ends, privsep: 1 }],
    })
    const expiry = (...users: object[]) => fakeCluster(() => ok(users)).provider.expiryOf('egress@pve!ctl')
    expect(await expiry({ userid: 'root@pam' }, user(0, 1_800_000_000))).toEqual({
      tokenAtMs: 1_800_000_000_000,
    })
    expect(await expiry(user(1_800_000_001, 0))).toEqual({ userAtMs: 1_800_000_001_000 })
    expect(await expiry(user(0, 0))).toEqual({})
    expect(await expiry()).toBeUndefined()
    expect(await expiry({ userid: 'egress@pve', expire: 0 })).toBeUndefined()
  })

  test.each([
    ['shown', ok([{ poolid: 'egress' }]), true],
    [
      'not there, told by the check before the handler',
      refused(403, "Permission check failed (pool 'egress' does not exist)"),
      false,
    ],
    ['not there, told by the handler', refused(500, "pool 'egress' does not exist"), false],
  ])('knows of a pool that is %s', async (_, reply, there) => {
    const { provider, sent } = fakeCluster(() => reply)
    expect(await provider.hasPool('egress')).toBe(there)
    expect(sent[0]).toMatchObject({ path: '/pools', query: 'poolid=egress' })
  })

  test('passes on that a pool may not be seen', async () => {
    const { provider } = fakeCluster(() => forbidden('/pool/egress', 'Pool.Audit'))
    expect(await rejection(provider.hasPool('egress'))).toMatchObject({
      code: 'Forbidden',
      privilege: 'Pool.Audit',
    })
  })

  test('reads a node’s clock, bridges and certificates', async () => {
    const { provider, sent } = fakeCluster(({ path }) => {
      if (path.endsWith('/time')) return ok({ timezone: 'UTC', time: '1796090784', localtime: 1 })
      if (path.endsWith('/network'))
        return ok([
          { iface: 'vmbr0', type: 'bridge', active: 1 },
          { iface: 'net1', type: 'vnet', active: '1' },
          { iface: 'vmbr1', type: 'OVSBridge' },
        ])
      return ok([
        { filename: 'pve-root-ca.pem' },
        { filename: 'pve-ssl.pem', fingerprint: 'AA', notafter: 5 },
      ])
    })
    expect(await provider.clockOf('pve1')).toBe(1_796_090_784_000)
    expect(await provider.bridgesOf('pve1')).toEqual([
      { name: 'vmbr0', vnet: false, active: true },
      { name: 'net1', vnet: true, active: true },
      { name: 'vmbr1', vnet: false, active: false },
    ])
    expect(await provider.certificatesOf('pve1')).toEqual([
      { file: 'pve-root-ca.pem' },
      { file: 'pve-ssl.pem', fingerprint: 'AA', expiresAtMs: 5000 },
    ])
    expect(sent.map(({ query }) => query)).toEqual(['', 'type=any_bridge', ''])
  })
})
