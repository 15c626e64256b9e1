import { inspect } from 'node:util'
import { describe, expect, test } from 'vitest'
import { createProxmox } from '../../../lib/proxmox/index.ts'
import {
  answer,
  broken,
  fakeCluster,
  forbidden,
  ok,
  pve1,
  pve2,
  pve3,
  refused,
  rejection,
  token,
  upid,
} from './fake-exchange.ts'

const vm = { node: 'pve2', vmid: 101 }
const clone = {
  template: { node: 'pve1', vmid: 9000 },
  vmid: 101,
  name: 'a',
  description: 'b=c;d&e é',
  full: false,
}
const version = ok({ version: '9.2.11', release: '9.2' })

describe('transport: requests', () => {
  test('puts a form into the body, escaped, and booleans as digits', async () => {
    const { provider, sent } = fakeCluster(() => ok(upid()))
    await provider.clone(clone)
    expect(sent[0]).toMatchObject({
      method: 'POST',
      path: '/nodes/pve1/qemu/9000/clone',
      query: '',
      body: 'newid=101&name=a&description=b%3Dc%3Bd%26e+%C3%A9&full=0',
      headers: {
        authorization: `PVEAPIToken=${token}`,
        'content-type': 'application/x-www-form-urlencoded',
      },
    })
  })

  test('puts the parameters of a DELETE into the query and sends no body', async () => {
    const { provider, sent } = fakeCluster(() => ok(upid('qmdestroy', '101')))
    await provider.destroy(vm, { unreferencedDisks: true })
    expect(sent[0]).toMatchObject({
      method: 'DELETE',
      path: '/nodes/pve2/qemu/101',
      query: 'purge=1&destroy-unreferenced-disks=1',
      body: '',
    })
    expect(sent[0]?.headers).not.toHaveProperty('content-type')
  })

  // Report: danitso/terraform-provider-proxmox#43
  test.each([-1, 0, 99, 1_000_000_000, 1.5, Number.NaN])('sends nothing about the VMID %s', async (vmid) => {
    const { provider, sent } = fakeCluster(() => ok(upid()))
    const there = { node: 'pve1', vmid }
    await expect(provider.start(there)).rejects.toThrow(`${vmid} is no VMID`)
    await expect(provider.clone({ ...clone, vmid })).rejects.toThrow(`${vmid} is no VMID`)
    await expect(provider.volumesOf({ node: 'pve1', storage: 'vmdata', vmid })).rejects.toThrow(
      `${vmid} is no VMID`,
    )
    expect(sent).toEqual([])
  })

  test('uploads the fields in the one order that Proxmox takes, the file last', async () => {
    const { provider, sent } = fakeCluster(() => ok(upid('imgcopy', '')))
    await provider.upload({ node: 'pve1', storage: 'local', filename: 'a.iso', bytes: Buffer.from('seed') })
    const names = [...(sent[0]?.body ?? '').matchAll(/name="([^"]+)"/g)].map((match) => match[1])
    expect(names).toEqual(['content', 'checksum-algorithm', 'checksum', 'filename', 'a.iso'])
    expect(sent[0]?.body).toContain('19b25856e1c150ca834cffc8b59b23adbd0ec0389e58eb22b3b64768098d002b')
    expect(sent[0]?.body).toMatch(/\r\n\r\nseed\r\n--egress-[0-9a-f-]+--\r\n$/)
  })

  test.each(['a b.iso', '../x.iso', 'a"; x.iso', 'a.img', '.iso', `${'a'.repeat(252)}.iso`])(
    'refuses to upload under the name %j, which Proxmox would change',
    async (filename) => {
      const { provider, sent } = fakeCluster(() => ok(upid('imgcopy', '')))
      const error = await rejection(
        provider.upload({ node: 'pve1', storage: 'local', filename, bytes: Buffer.of() }),
      )
      expect(error).toMatchObject({ code: 'Rejected', sent: 'no', detail: { filename: expect.any(String) } })
      expect(sent).toEqual([])
    },
  )

  test.each(['..', '.', ''])('never lets %j climb out of the path', async (storage) => {
    const { provider, sent } = fakeCluster(() => ok([]))
    await expect(provider.isos({ node: 'pve1', storage })).rejects.toThrow('bad {storage}')
    expect(sent).toEqual([])
  })
})

describe('transport: answers', () => {
  test('names where an answer has another shape', async () => {
    const { provider } = fakeCluster(() => ok([{ node: 5 }]))
    expect(await rejection(provider.nodesOnline())).toMatchObject({
      code: 'Unexpected',
      ambiguous: false,
      message: expect.stringContaining('data.0.node'),
    })
  })

  test('takes a change that was answered in another shape for one that may run', async () => {
    const { provider } = fakeCluster(() => ok('not a upid'))
    expect(await rejection(provider.start(vm))).toMatchObject({ code: 'Unexpected', ambiguous: true })
  })

  test.each([
    ['HTML', answer(200, 'OK', '<html>')],
    ['nothing', answer(200, 'OK', '')],
    ['a redirection', answer(301, 'Moved', '')],
  ])('takes %s for an unexpected answer', async (_, raw) => {
    const { provider } = fakeCluster(() => raw)
    expect(await rejection(provider.version())).toMatchObject({ code: 'Unexpected' })
  })

  test('reads the reason phrase of a host that puts its words nowhere else', async () => {
    const { provider } = fakeCluster(() => answer(500, 'VM is locked (backup)', { data: null }))
    expect(await rejection(provider.start(vm))).toMatchObject({
      code: 'VmLocked',
      lock: 'backup',
      status: 500,
      call: 'POST /nodes/{node}/qemu/{vmid}/status/start',
      node: 'pve2',
      vmid: 101,
      sent: 'yes',
      ambiguous: false,
    })
  })

  test('lists what Proxmox says of each field', async () => {
    const { provider } = fakeCluster(() =>
      refused(400, 'Parameter verification failed.', {
        name: 'invalid format\n',
        newid: 'property is missing',
      }),
    )
    expect(await rejection(provider.clone(clone))).toMatchObject({
      code: 'Rejected',
      detail: { name: 'invalid format\n', newid: 'property is missing' },
      message:
        'POST /nodes/{node}/qemu/{vmid}/clone (pve1/9000): Parameter verification failed.; name: invalid format; newid: property is missing',
    })
  })

  test('keeps a message to one line of bounded length', async () => {
    const { provider } = fakeCluster(() => refused(500, `a\u001b[31m\r\n${'b'.repeat(5_000)}`))
    const error = await rejection(provider.version())
    expect(error).toMatchObject({ code: 'Unknown' })
    expect(String(error)).toMatch(/^[^\p{Cc}]{1,640}$/u)
  })
})

describe('transport: endpoints', () => {
  const endpoints = [pve1, pve2, pve3]

  test('asks the endpoint of the call’s node first', async () => {
    const { provider, sent } = fakeCluster(() => ok({ status: 'running' }), { endpoints })
    await provider.status({ node: 'pve3', vmid: 101 })
    expect(sent.map(({ node }) => node)).toEqual(['pve3'])
  })

  // Report: Telmate/terraform-provider-proxmox#851
  test('goes on to the next endpoint with a change that was surely not sent', async () => {
    const { provider, sent } = fakeCluster(
      ({ node }) => (node === 'pve1' ? broken('ECONNREFUSED', false) : ok(upid())),
      { endpoints },
    )
    await provider.clone(clone)
    expect(sent.map(({ node }) => node)).toEqual(['pve1', 'pve2'])
  })

  test('goes on after a 595, which is certain not to have run', async () => {
    const { provider, sent } = fakeCluster(
      ({ node }) => (node === 'pve2' ? answer(595, 'Connection refused') : ok(upid('qmstart', '101'))),
      { endpoints },
    )
    await provider.start(vm)
    expect(sent.map(({ node }) => node)).toEqual(['pve2', 'pve1'])
  })

  // Report: hashicorp/packer#8476
  test.each([
    ['596', answer(596, 'Connection timed out')],
    ['597', answer(597, 'Connection reset by peer')],
    ['599', answer(599, 'Garbled response headers')],
    ['a gateway’s 502', answer(502, 'Bad Gateway', '<html>')],
    ['a cut connection', broken('ECONNRESET', true)],
    ['our own time-out', broken('TIMEOUT', true)],
    ['an upload closed unanswered', broken('UND_ERR_SOCKET', true)],
    ['a failure that does not say', new Error('?')],
  ])('sends a change once only when it ends in %s, and says that it may run', async (_, reply) => {
    const { provider, sent } = fakeCluster(() => reply, { endpoints })
    expect(await rejection(provider.clone(clone))).toMatchObject({
      code: 'Unreachable',
      sent: 'maybe',
      ambiguous: true,
      node: 'pve1',
      vmid: 9000,
    })
    expect(sent).toHaveLength(1)
  })

  test.each([
    ['596', answer(596, 'Connection timed out')],
    ['our own time-out', broken('TIMEOUT', true)],
  ])('asks another endpoint when reading ends in %s', async (_, reply) => {
    const { provider, sent } = fakeCluster(({ node }) => (node === 'pve1' ? reply : version), { endpoints })
    expect(await provider.version()).toEqual({ version: '9.2.11', major: 9 })
    expect(sent.map(({ node }) => node)).toEqual(['pve1', 'pve2'])
  })

  test('reads once more where the connection was cut, since a kept one may close just as it is used', async () => {
    let cuts = 1
    const { provider, sent } = fakeCluster(() => (cuts-- > 0 ? broken('UND_ERR_SOCKET', true) : version))
    await provider.version()
    expect(sent).toHaveLength(2)
  })

  test('does not go on when Proxmox itself refuses', async () => {
    const { provider, sent } = fakeCluster(() => refused(500, 'VM is locked (backup)'), { endpoints })
    await rejection(provider.start(vm))
    expect(sent).toHaveLength(1)
  })

  test('tells of every endpoint when none answers', async () => {
    const { provider } = fakeCluster(() => broken('ECONNREFUSED', false), { endpoints })
    const error = await rejection(provider.version())
    expect(error).toMatchObject({ code: 'Unreachable', sent: 'no', ambiguous: false })
    for (const host of ['pve1.test:8006', 'pve2.test:8006', 'pve3.test:8006'])
      expect(String(error)).toContain(host)
  })

  test('tries an endpoint that failed last for 30 s', async () => {
    let nowMs = 0
    let down = true
    const { provider, sent } = fakeCluster(
      ({ node }) => (node === 'pve1' && down ? broken('ECONNREFUSED', false) : version),
      { endpoints, now: () => nowMs },
    )
    await provider.version()
    await provider.version()
    down = false
    nowMs = 30_001
    await provider.version()
    expect(sent.map(({ node }) => node)).toEqual(['pve1', 'pve2', 'pve2', 'pve1'])
  })

  test.each([
    ['a 595 about another node', () => answer(595, 'No route to host')],
    ['a 596 about another node', () => answer(596, 'Connection timed out')],
    ['a time-out on another node', () => broken('TIMEOUT', true)],
  ])('does not hold %s against the endpoint', async (_, reply) => {
    const { provider, sent } = fakeCluster(
      ({ node, path }) => {
        if (path === '/version') return version
        return node === 'pve1' ? reply() : ok({ status: 'stopped' })
      },
      { endpoints: [pve1, pve3] },
    )
    await provider.status(vm)
    expect(sent.map(({ node }) => node)).toEqual(['pve1', 'pve3'])
    await provider.version()
    expect(sent.at(-1)?.node).toBe('pve1')
  })

  // Report: rcourtman/Pulse#1117
  test.each([
    ["Configuration file 'nodes/pve1/qemu-server/101.conf' does not exist"],
    ['VM is locked (migrate)'],
    ["can't lock file '/var/lock/qemu-server/lock-101.conf' - got timeout"],
  ])('does not hold against the endpoint what Proxmox says of a VM: %s', async (words) => {
    const { provider, sent } = fakeCluster(
      ({ path }) => (path === '/version' ? version : refused(500, words)),
      { endpoints },
    )
    await rejection(provider.start({ node: 'pve1', vmid: 101 }))
    await provider.version()
    expect(sent.map(({ node }) => node)).toEqual(['pve1', 'pve1'])
  })

  test('does not hold against the endpoint that a guest says too much', async () => {
    const { provider, sent } = fakeCluster(
      ({ path }) => (path === '/version' ? version : broken('TOO_LARGE', true)),
      { endpoints: [pve1, pve3] },
    )
    expect(await rejection(provider.interfaces({ ...vm, node: 'pve1' }))).toMatchObject({
      code: 'Unexpected',
    })
    await provider.version()
    expect(sent.map(({ node }) => node)).toEqual(['pve1', 'pve1'])
  })

  test('holds a time-out on its own node against the endpoint', async () => {
    const { provider, sent } = fakeCluster(
      ({ node }) => (node === 'pve1' ? broken('TIMEOUT', true) : ok({ status: 'stopped', version: '8' })),
      { endpoints: [pve1, pve3] },
    )
    await provider.status({ ...vm, node: 'pve1' })
    await provider.version()
    expect(sent.map(({ node }) => node)).toEqual(['pve1', 'pve3', 'pve3'])
  })

  test('stops going on when twice the patience is spent', async () => {
    let nowMs = 0
    const { provider, sent } = fakeCluster(
      () => {
        nowMs += 1_000
        return broken('TIMEOUT', true)
      },
      { endpoints, now: () => nowMs, timeouts: { readMs: 1_000 } },
    )
    await rejection(provider.version())
    expect(sent).toHaveLength(2)
  })

  test.each([
    ['http://pve1:8006', undefined],
    ['pve1:8006', undefined],
    ['https://root:secret@pve1:8006', undefined],
    ['https://pve1:8006', 'AA:BB'],
  ])('refuses to be made with %s and fingerprint %s', (url, fingerprint) => {
    const make = () =>
      createProxmox({
        endpoints: [{ url, ...(fingerprint ? { fingerprint } : {}) }],
        token: { get: async () => [] },
      })
    expect(make).toThrow(TypeError)
    expect(make).not.toThrow('secret')
  })
})

describe('transport: tokens', () => {
  const no = answer(401, 'Authentication failed!')

  function rotation(valid: (token: string) => boolean, cached: string[], stored: string[]) {
    const reads: (boolean | undefined)[] = []
    const used: string[] = []
    const clock = { nowMs: 0 }
    const { provider } = fakeCluster(
      ({ headers }) => {
        const given = headers.authorization?.replace('PVEAPIToken=', '') ?? ''
        used.push(given)
        return valid(given) ? version : no
      },
      {
        now: () => clock.nowMs,
        token: {
          get: async (options) => {
            reads.push(options?.fresh)
            return options?.fresh ? stored : cached
          },
        },
      },
    )
    return { provider, reads, used, clock }
  }

  // Report: k8s-proxmox/cluster-api-provider-proxmox#140
  test('reads the token afresh after a refusal', async () => {
    const { provider, used, reads } = rotation((given) => given === 'a=new', ['a=old'], ['a=new'])
    await provider.version()
    expect(used).toEqual(['a=old', 'a=new'])
    expect(reads).toEqual([undefined, true])
  })

  // Report: Caprox-eu/Proxmox-Kubernetes-Engine#27
  test('tries the second stored token when the first stays refused', async () => {
    const { provider, used } = rotation((given) => given === 'b=2', ['a=1', 'b=2'], ['a=1', 'b=2'])
    await provider.version()
    await provider.version()
    expect(used).toEqual(['a=1', 'b=2', 'b=2'])
  })

  test('pays for a refusal once in 30 s', async () => {
    const { provider, used, clock } = rotation(() => false, ['a=1', 'b=2'], ['a=1', 'b=2'])
    expect(await rejection(provider.version())).toMatchObject({ code: 'Unauthorized', status: 401 })
    expect(await rejection(provider.version())).toMatchObject({ code: 'Unauthorized', sent: 'no' })
    expect(used).toEqual(['a=1', 'b=2'])
    clock.nowMs = 30_001
    await rejection(provider.version())
    expect(used).toHaveLength(4)
  })

  test('asks after a task with the token that began it, while that is stored', async () => {
    const used: string[] = []
    const stored = ['a@pve!new=1', 'a@pve!old=2']
    const { provider } = fakeCluster(
      ({ headers }) => {
        used.push(headers.authorization ?? '')
        return ok({ status: 'running' })
      },
      { token: { get: async () => stored } },
    )
    const upid = (user: string) => `UPID:pve1:0003A2F1:00A1B2C3:66AABBCC:qmclone:101:${user}:`
    await provider.task(upid('a@pve!old'))
    await provider.task(upid('a@pve!older'))
    expect(used).toEqual(['PVEAPIToken=a@pve!old=2', 'PVEAPIToken=a@pve!new=1'])
  })

  test('sends a token without the newline at the end of its file', async () => {
    const { provider, used } = rotation(() => true, ['a=1\n'], [])
    await provider.version()
    expect(used).toEqual(['a=1'])
  })

  test('reports a token that cannot be read', async () => {
    const { provider } = fakeCluster(() => version, {
      token: { get: () => Promise.reject(new Error('throttled')) },
    })
    expect(await rejection(provider.version())).toMatchObject({
      code: 'Unauthorized',
      sent: 'no',
      cause: { message: 'throttled' },
    })
  })

  test.each([
    ['an answer that quotes it', () => answer(500, `bad ${token}`, `Authorization: PVEAPIToken=${token}`)],
    ['a gateway’s page', () => answer(502, 'Bad', `<pre>${token}</pre>`)],
    [
      'a connection error that quotes it',
      () => broken(`E`, true) && Object.assign(new Error(token), { code: 'E', sent: true }),
    ],
    ['a refusal', () => answer(401, `No ticket ${token}`)],
    ['an unexpected answer', () => answer(200, 'OK', `"${token}"`)],
  ])('shows no token after %s', async (_, reply) => {
    const { provider, log } = fakeCluster(reply, { endpoints: [pve1, pve2] })
    const error = await rejection(provider.version())
    const shown = inspect(error, { depth: Number.POSITIVE_INFINITY, showHidden: true })
    expect(shown + JSON.stringify(log)).not.toContain('canary-1111')
  })
})

describe('transport: time', () => {
  test('starts nothing once the signal fired', async () => {
    const { within, sent } = fakeCluster(() => version)
    const provider = within({ signal: AbortSignal.abort() })
    expect(await rejection(provider.version())).toMatchObject({ code: 'Aborted', sent: 'no' })
    expect(await rejection(provider.start(vm))).toMatchObject({
      code: 'Aborted',
      sent: 'no',
      ambiguous: false,
    })
    expect(sent).toEqual([])
  })

  test('starts no change after its limit, but still reads', async () => {
    const { within, sent } = fakeCluster(() => version, { now: () => 1_000 })
    const provider = within({ mutateUntilMs: 1_000 })
    expect(await rejection(provider.start(vm))).toMatchObject({ code: 'Aborted', sent: 'no' })
    await provider.version()
    expect(sent.map(({ path }) => path)).toEqual(['/version'])
  })

  test('does not start a change elsewhere when the signal fires in between', async () => {
    const stop = new AbortController()
    const { within, sent } = fakeCluster(
      () => {
        stop.abort()
        return broken('ECONNREFUSED', false)
      },
      { endpoints: [pve1, pve2] },
    )
    expect(await rejection(within({ signal: stop.signal }).start(vm))).toMatchObject({ code: 'Aborted' })
    expect(sent).toHaveLength(1)
  })

  test('says of a change that was cut off by the signal that it may run', async () => {
    const { provider } = fakeCluster(() => broken('ABORTED', true))
    expect(await rejection(provider.start(vm))).toMatchObject({ code: 'Aborted', ambiguous: true })
  })
})

test('transport: writes one line a call', async () => {
  let nowMs = 0
  const { provider, log } = fakeCluster(
    ({ path }) => {
      nowMs += 7
      return path.endsWith('clone') ? ok(upid()) : forbidden('/vms/101', 'VM.PowerMgmt')
    },
    { now: () => nowMs },
  )
  await provider.clone(clone)
  await rejection(provider.start(vm))
  expect(log).toEqual([
    {
      call: 'POST /nodes/{node}/qemu/{vmid}/clone',
      endpoint: pve1.url,
      node: 'pve1',
      vmid: 9000,
      status: 200,
      ms: 7,
      upid: upid(),
    },
    {
      call: 'POST /nodes/{node}/qemu/{vmid}/status/start',
      endpoint: pve1.url,
      node: 'pve2',
      vmid: 101,
      status: 403,
      code: 'Forbidden',
      ms: 7,
    },
  ])
})
