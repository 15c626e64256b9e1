import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isProxmoxError, type Provider, type RawAnswer } from '../../lib/proxmox/index.ts'
import { parseUpid } from '../../lib/proxmox/upid.ts'
import { readConfig } from '../../lib/proxmox/vm-config.ts'
import { readWords } from '../../lib/proxmox/words.ts'
import { answer, fakeCluster, rejection, token, upid } from '../lib/proxmox/fake-exchange.ts'
import { jsonOf, mangled, mutated, nested } from './mutations.ts'

const vm = { node: 'pve1', vmid: 101 }
const secret = token.slice(token.lastIndexOf('=') + 1)

/** What is asked, and an answer that Proxmox gives to it. */
const questions: Record<string, [ask: (vms: Provider) => Promise<unknown>, data: unknown]> = {
  version: [(vms) => vms.version(), { version: '9.0.3', release: '9.0', repoid: 'x' }],
  listVms: [
    (vms) => vms.listVms(),
    [
      { type: 'qemu', vmid: 101, node: 'pve1', tags: 'egress;egress-test', pool: 'egress', lock: 'clone' },
      { type: 'storage', storage: 'local', node: 'pve1' },
    ],
  ],
  look: [
    (vms) => vms.look(vm),
    {
      digest: 'abc',
      name: 'egress-a',
      description: '{"egress":{}}',
      net0: 'virtio=BC:24:11:00:00:01,bridge=vmbr0,tag=5',
      scsi0: 'vmdata:vm-101-disk-0,size=4G',
      ide2: 'local:iso/a.iso,media=cdrom,size=1M',
      boot: 'order=scsi0;ide2',
      memory: 512,
      cores: '2',
      tags: 'egress',
      agent: 'enabled=1,fstrim_cloned_disks=1',
    },
  ],
  status: [(vms) => vms.status(vm), { status: 'running', qmpstatus: 'running', vmid: 101 }],
  task: [(vms) => vms.task(upid()), { status: 'stopped', exitstatus: 'OK', upid: upid() }],
  runningTasks: [
    (vms) => vms.runningTasks({ node: 'pve1' }),
    [{ upid: upid(), node: 'pve1', type: 'qmclone', id: '101', starttime: 1_700_000_000, status: 'RUNNING' }],
  ],
  isos: [
    (vms) => vms.isos({ node: 'pve1', storage: 'local' }),
    [{ volid: 'local:iso/a.iso', content: 'iso', format: 'iso', size: 61440 }],
  ],
  storages: [
    (vms) => vms.storages('pve1'),
    [{ storage: 'local', type: 'dir', content: 'iso,images', enabled: 1, active: 1, shared: 0, total: '12' }],
  ],
  interfaces: [
    (vms) => vms.interfaces(vm),
    {
      result: [
        {
          name: 'eth0',
          'hardware-address': '02:00:00:00:00:01',
          'ip-addresses': [{ 'ip-address': '10.0.0.5', 'ip-address-type': 'ipv4', prefix: 24 }],
        },
      ],
    },
  ],
  agentError: [
    (vms) => vms.interfaces(vm),
    { result: { error: { class: 'GenericError', desc: 'the guest said so' } } },
  ],
  nodes: [(vms) => vms.nodes(), [{ node: 'pve1', status: 'online' }]],
  clusterStatus: [
    (vms) => vms.clusterStatus(),
    [
      { type: 'cluster', name: 'lab', quorate: 1, nodes: 3 },
      { type: 'node', name: 'pve1', online: 1, local: 1 },
    ],
  ],
  permissions: [(vms) => vms.permissions('/vms'), { '/vms': { 'VM.Clone': 1, 'VM.Audit': 0 } }],
  expiryOf: [
    (vms) => vms.expiryOf('egress@pve!ctl'),
    [{ userid: 'egress@pve', expire: 0, tokens: [{ tokenid: 'ctl', expire: 0 }] }],
  ],
  certificatesOf: [
    (vms) => vms.certificatesOf('pve1'),
    [{ filename: 'pve-ssl.pem', fingerprint: 'AA:BB', notafter: 1_900_000_000 }],
  ],
  clone: [
    (vms) =>
      vms.clone({
        template: { node: 'pve1', vmid: 9000 },
        vmid: 101,
        name: 'a',
        description: 'x',
        full: true,
      }),
    upid(),
  ],
  start: [(vms) => vms.start(vm), upid('qmstart', '101')],
  upload: [
    (vms) => vms.upload({ node: 'pve1', storage: 'local', filename: 'a.iso', bytes: Buffer.from('x') }),
    upid('imgcopy', ''),
  ],
}

/** A value, or one of our errors: short, on a line, and without the token. */
async function settles(ask: (vms: Provider) => Promise<unknown>, reply: RawAnswer): Promise<unknown> {
  const { provider } = fakeCluster(() => reply)
  try {
    return await ask(provider)
  } catch (error) {
    if (!isProxmoxError(error)) throw error
    expect(error.message).toMatch(/^[^\p{Cc}\p{Cf}\u2028\u2029]{1,600}$/u)
    expect(error.call).toMatch(/^(?:GET|POST|PUT|DELETE|task) /)
    expect(JSON.stringify({ ...error }).length).toBeLessThan(100_000)
    return error
  }
}

const status = fc.oneof(
  fc.constantFrom(200, 400, 401, 403, 500, 501, 595, 596, 204, 301, 599),
  fc.nat({ max: 999 }),
)
const phrase = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 60 }),
  fc.constantFrom('OK', 'VM is locked (clone)', 'Permission check failed (/vms/101, VM.Audit)', ''),
)

describe('an answer of Proxmox, whatever it is,', () => {
  it.each(Object.entries(questions))('is a value or one of our errors: %s', async (_, [ask, data]) => {
    const body = fc.oneof(
      { weight: 6, arbitrary: mutated({ data }).map(jsonOf) },
      { weight: 1, arbitrary: mangled(jsonOf({ data })) },
      { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 60 }) },
      {
        weight: 2,
        arbitrary: mutated({ data: null, message: 'no\n', errors: { vmid: 'VM 101 already exists' } }).map(
          jsonOf,
        ),
      },
    )
    await fc.assert(
      fc.asyncProperty(
        fc.oneof({ weight: 2, arbitrary: fc.constant(200) }, { weight: 1, arbitrary: status }),
        phrase,
        body,
        async (code, reason, text) => void (await settles(ask, answer(code, reason, text))),
      ),
      { numRuns: 150 },
    )
  })

  it.each([
    ['data nested without end', 200, `{"data":${nested(200_000)}}`],
    ['a message nested without end', 500, `{"data":null,"message":${nested(100_000)}}`],
    ['errors nested without end', 400, `{"data":null,"errors":{"a":${nested(100_000)}}}`],
    ['errors that are no texts', 400, '{"errors":{"a":{"toString":1,"valueOf":2}}}'],
    ['errors by the hundred thousand', 400, jsonOf({ errors: numbered(100_000) })],
    ['an error of megabytes', 400, jsonOf({ errors: { vmid: 'x'.repeat(4e6) } })],
    ['a message of megabytes', 500, jsonOf({ message: 'x'.repeat(8e6) })],
    ['control characters by the million', 500, `\u0007${'\u001b\u0007'.repeat(2e6)}`],
    ['a failure in a failure in a failure', 500, jsonOf({ message: 'clone failed: '.repeat(100_000) })],
    ['a status in a status in a status', 500, jsonOf({ message: '500 '.repeat(300_000) })],
    [
      'a locked error without end',
      500,
      jsonOf({ message: `can't add VM 1 to pool '${"' ".repeat(1e6)}': x` }),
    ],
    [
      'a command that fails and fails',
      500,
      jsonOf({ message: `command '${"' failed: got signal ".repeat(2e5)}` }),
    ],
  ] as const)('is read at once: %s', async (_, code, body) => {
    expect(isProxmoxError(await settles((vms) => vms.start(vm), answer(code, 'x', body)))).toBe(true)
  })

  it('is not taken for the end of our connection because it is odd', async () => {
    const long = answer(500, 'x', jsonOf({ message: 'clone failed: '.repeat(100_000) }))
    expect(await settles((vms) => vms.start(vm), long)).toMatchObject({ code: 'Unknown', status: 500 })
    const odd = answer(400, 'x', '{"errors":{"a":{"toString":1},"vmid":"VM 101 already exists"}}')
    expect(await settles((vms) => vms.start(vm), odd)).toMatchObject({ code: 'AlreadyExists', status: 400 })
  })

  it('brings no key of its own into what others read', async () => {
    const body = '{"data":{"__proto__":{"digest":"x","template":1},"digest":"y","constructor":"z"}}'
    expect(await settles((vms) => vms.look(vm), answer(200, 'OK', body))).toMatchObject({
      kind: 'vm',
      config: { digest: 'y', template: false },
    })
    expect(({} as Record<string, unknown>).digest).toBeUndefined()
  })
})

describe('the words of Proxmox, whatever they are,', () => {
  it('have a meaning', () => {
    const piece = fc.constantFrom(
      'clone failed: ',
      '500 ',
      '403 ',
      '400 ',
      "can't lock file '",
      "' - got timeout",
      'Permission check failed (',
      "command '",
      "' failed: ",
      "lvcreate '",
      "' error: ",
      'zfs error: ',
      ': out of space',
      "volume '",
      "' does not exist",
      'VM is locked (',
      ')',
      '\n',
      'x',
    )
    const text = fc.oneof(
      fc.array(piece, { maxLength: 60 }).map((parts) => parts.join('')),
      fc.string({ unit: 'binary' }),
    )
    fc.assert(
      fc.property(text, fc.option(status, { nil: undefined }), (words, code) => {
        const reading = readWords(words, code === undefined ? {} : { status: code })
        expect(reading.code).toMatch(/^[A-Z][A-Za-z]+$/)
      }),
      { numRuns: 2000 },
    )
  })

  // A pattern that goes back and forth over its text takes minutes for one of these.
  it.each(['clone failed: ', '500 ', "command '' failed: ", "volume '", ' ', '\n', 'a', "'", ': '])(
    'are read in one go, however often %j stands in them',
    (part) => {
      for (const start of [
        "can't lock file '",
        "lvcreate '",
        'cp ',
        "command '",
        'zfs error: ',
        'volume ',
        '',
      ])
        expect(readWords(start + part.repeat(1e6 / part.length)).code).toBeTypeOf('string')
    },
  )
})

describe('a UPID, whatever it is,', () => {
  it('is taken apart or refused, and its node is always a name', () => {
    fc.assert(
      fc.property(fc.oneof(mangled(upid()), fc.string({ unit: 'binary' })), (text) => {
        const parts = parseUpid(text)
        if (!parts) return
        expect(parts.node).toMatch(/^[a-zA-Z0-9-]+$/)
        expect(text).not.toMatch(/[\s/]/)
        expect(Number.isSafeInteger(parts.startedAtMs)).toBe(true)
      }),
      { numRuns: 2000 },
    )
  })

  it('never leads a call out of its place in the path', async () => {
    await fc.assert(
      fc.asyncProperty(fc.oneof(mangled(upid()), fc.string({ unit: 'binary' })), async (text) => {
        const { provider, sent } = fakeCluster(() => answer(200, 'OK', { data: { status: 'running' } }))
        await provider.task(text).catch((error: unknown) => expect(isProxmoxError(error)).toBe(true))
        for (const { path } of sent) expect(path).toMatch(/^\/nodes\/[A-Za-z0-9-]+\/tasks\/[^/?]+\/status$/)
      }),
      { numRuns: 300 },
    )
  })
})

describe('a configuration of a VM, whatever it holds,', () => {
  const option = fc.oneof(
    mangled('virtio=BC:24:11:00:00:01,bridge=vmbr0,tag=5'),
    mangled('local:iso/a.iso,media=cdrom,size=1M'),
    mangled('order=scsi0;ide2'),
    fc.string({ unit: 'binary', maxLength: 30 }),
    fc.constantFrom(
      ','.repeat(5000),
      '='.repeat(5000),
      'a=b,'.repeat(5000),
      '__proto__=x,a=b',
      '9'.repeat(400),
    ),
  )
  const name = fc.constantFrom(
    'net0',
    'scsi0',
    'ide2',
    'boot',
    'bootdisk',
    'memory',
    'cores',
    'tags',
    'agent',
  )

  it('is read', () => {
    fc.assert(
      fc.property(fc.dictionary(name, option), (options) => {
        const config = readConfig({ ...options, digest: 'x' })
        expect(config.disks.every(({ sizeBytes = 0 }) => sizeBytes >= 0)).toBe(true)
        expect(Object.getPrototypeOf(config.net0 ?? {})).toBe(Object.prototype)
      }),
      { numRuns: 1000 },
    )
  })
})

describe('an answer that quotes what we sent', () => {
  const header = `PVEAPIToken=${token}`
  const forms = {
    plain: header,
    json: JSON.stringify({ authorization: header }),
    percent: encodeURIComponent(header),
    base64: Buffer.from(`Authorization: ${header}\r\n`).toString('base64'),
    'base64, one later': Buffer.from(`x-authorization: ${header}`).toString('base64'),
    'base64, two later': Buffer.from(`xx-authorization: ${header}`).toString('base64'),
    hex: Buffer.from(header).toString('hex'),
  }
  const cores = [
    secret,
    ...[0, 1, 2].map((skip) => base64Core(secret, skip)),
    Buffer.from(secret).toString('hex'),
  ]

  it.each(
    Object.entries(forms).flatMap(([form, text]) => [
      [form, 'a reason phrase', answer(403, text)],
      [form, 'a body', answer(502, 'Bad Gateway', `<pre>${text}</pre>`)],
      [form, 'a message', answer(500, 'x', { data: null, message: text })],
      [form, 'an error', answer(400, 'x', { data: null, errors: { vmid: text, [text.slice(0, 90)]: 'x' } })],
      [form, 'a status', answer(200, 'OK', { data: { status: text } })],
      [form, 'a key', answer(200, 'OK', { data: { [text]: { [text]: 1 }, status: 7 } })],
      [form, 'a value', answer(200, 'OK', { data: { status: 'stopped', lock: text, qmpstatus: text } })],
    ]) as [string, string, RawAnswer][],
  )('gives nothing of the token away: %s in %s', async (_, __, reply) => {
    const seen = await settles((vms) => vms.status(vm), reply)
    for (const core of cores) expect(everything(seen)).not.toContain(core)
  })

  it('gives nothing of the disc away that was uploaded', async () => {
    const secrets = ['hunter2-of-the-proxy', 'curl https://ops:pass@internal/']
    const disc = `BasicAuth ci ${secrets[0]}\n#!/bin/sh\n  ${secrets[1]}\n`
    for (const text of [
      disc,
      jsonOf({ message: disc, errors: { file: disc } }),
      jsonOf({ message: jsonOf(disc) }),
    ]) {
      const { provider } = fakeCluster(() => answer(400, disc.replaceAll('\n', ' '), text))
      const error = await rejection(
        provider.upload({
          node: 'pve1',
          storage: 'local',
          filename: 'a.iso',
          bytes: Buffer.from(disc),
          secrets,
        }),
      )
      for (const one of secrets) expect(everything(error)).not.toContain(one)
      expect(everything(error)).toContain('[secret]')
    }
  })

  it('is read as it was said all the same', async () => {
    const words = "checksum mismatch: got '1' != expect '2'"
    const { provider } = fakeCluster(() => answer(500, words))
    const upload = { node: 'pve1', storage: 'local', filename: 'a.iso', bytes: Buffer.from('x') }
    const error = await rejection(provider.upload({ ...upload, secrets: ['checksum', 'mismatch'] }))
    expect(error).toMatchObject({ code: 'UploadCorrupt' })
  })
})

function numbered(count: number): Record<string, string> {
  return Object.fromEntries(Array.from({ length: count }, (_, index) => [`e${index}`, 'x'.repeat(50)]))
}

/** All that can be seen of an error or a value, its causes too. */
function everything(value: unknown): string {
  if (!(value instanceof Error)) return JSON.stringify(value)
  const { cause } = value
  return [
    value.message,
    value.stack,
    JSON.stringify({ ...value }),
    cause === undefined ? '' : everything(cause),
  ].join('\n')
}

/** The middle of what base64 makes of a text that begins so many bytes late. */
const base64Core = (text: string, skip: number) =>
  Buffer.from('x'.repeat(skip) + text)
    .toString('base64')
    .slice(4, -4)
