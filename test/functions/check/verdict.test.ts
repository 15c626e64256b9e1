import { describe, expect, it } from 'vitest'
import type { Finding } from '../../../functions/check/event.ts'
import type {
  ClusterFacts,
  EndpointFacts,
  Fact,
  NodeFacts,
  TokenFacts,
} from '../../../functions/check/facts.ts'
import { type Around, judgeNode } from '../../../functions/check/node-verdict.ts'
import { pathsOf, wantedPrivileges } from '../../../functions/check/privileges.ts'
import { judgeCluster } from '../../../functions/check/verdict.ts'
import type { ProxmoxErrorCode, Storage } from '../../../lib/proxmox/index.ts'
import { aConfig } from '../../lib/a-config.ts'
import { NOW } from '../../lib/a-row.ts'

const DAY = 86_400_000
const { lab } = aConfig().clusters
if (!lab) throw new Error('the configuration has no cluster lab')

const is = <T>(value: T): Fact<T> => ({ known: true, value })
const fails = (code: ProxmoxErrorCode, reason = `it is ${code}`): Fact<never> => ({
  known: false,
  code,
  reason,
})

const states = [
  { name: 'pve1', online: true },
  { name: 'pve2', online: true },
]
const endpoint: EndpointFacts = {
  url: 'https://pve1:8006',
  node: 'pve1',
  version: is({ version: '9.2.11', major: 9 }),
  certificates: is([{ file: 'pve-ssl.pem', expiresAtMs: NOW + 300 * DAY }]),
  status: is({ clustered: true, quorate: true, nodes: states }),
  nodes: is(states),
}
const token: TokenFacts = {
  source: 'file token',
  id: 'egress@pve!ctl',
  accepted: is({ version: '9.2.11', major: 9 }),
  expiry: is({}),
}
const everything = new Set(
  wantedPrivileges([8, 9], { cluster: lab, nodes: [] }).flatMap(({ anyOf }) => anyOf),
)
const cluster: ClusterFacts = {
  name: 'lab',
  cluster: lab,
  nodes: ['pve1', 'pve2'],
  endpoints: [endpoint],
  tokens: [token],
  pool: is(true),
  privileges: new Map(
    pathsOf(wantedPrivileges([8, 9], { cluster: lab, nodes: ['pve1', 'pve2'] })).map((path) => [
      path,
      is(everything),
    ]),
  ),
  listed: is([]),
  claimed: [],
  ranges: [{ whose: 'cluster lab', from: 5000, to: 5999 }],
}
const storageOf = (storage: string, content: string): Storage => ({
  storage,
  type: 'dir',
  content: new Set([content]),
  enabled: true,
  active: true,
  shared: false,
  totalBytes: 500 * 1024 ** 3,
  availableBytes: 400 * 1024 ** 3,
})
const node: NodeFacts = {
  node: 'pve1',
  state: { name: 'pve1', online: true },
  clock: is({ node: NOW, askedAt: NOW, answeredAt: NOW + 40 }),
  bridges: is([{ name: 'vmbr0', vnet: false, active: true }]),
  storages: is([storageOf('vmdata', 'images'), storageOf('local', 'iso')]),
  templates: [],
}
const around: Around = { cluster: lab, maySee: () => true, mayUseBridge: true }

const short = (findings: Finding[]) => findings.map(({ level, code }) => `${level} ${code}`)
const wrong = (findings: Finding[]) => findings.filter(({ level }) => level !== 'ok')
const ofCluster = (changes: Partial<ClusterFacts>, nodes: NodeFacts[] = []) =>
  short(wrong(judgeCluster({ ...cluster, ...changes }, nodes, NOW)))
const ofEndpoint = (changes: Partial<EndpointFacts>) =>
  ofCluster({ endpoints: [endpoint, { ...endpoint, ...changes }] })
const ofNode = (changes: Partial<NodeFacts>, by: Partial<Around> = {}) =>
  short(judgeNode({ ...node, ...changes }, { ...around, ...by }))

describe('a cluster', () => {
  it('that is well says so of each target', () => {
    expect(judgeCluster(cluster, [node], NOW).map(({ target, code }) => `${target} ${code}`)).toEqual([
      'endpoint Fine',
      'token Fine',
      'cluster Fine',
    ])
  })

  it('through which no endpoint leads is judged no further', () => {
    const endpoints = [{ ...endpoint, version: fails('Unreachable') }]
    const unasked = { pool: is(false), privileges: new Map(), listed: fails('Unreachable') }
    expect(ofCluster({ ...unasked, endpoints })).toEqual(['failure Unreachable', 'failure NoEndpoint'])
  })

  it.each<[taken: number, verdict: string[]]>([
    [0, []],
    [989, []],
    [990, []],
    [991, ['warning VmidsShort']],
    [999, ['warning VmidsShort']],
    [1000, ['failure VmidsShort']],
  ])('of whose 1000 VMIDs %i are taken', (taken, verdict) => {
    const claimed = Array.from({ length: taken }, (_, index) => 5000 + index)
    expect(ofCluster({ claimed })).toEqual(verdict)
  })

  it('counts a number once that is claimed and bears a VM, and none beyond the range', () => {
    const vm = (vmid: number) => ({ vmid, node: 'pve1', type: 'qemu' as const, tags: new Set<string>() })
    const ranges = [{ whose: 'zone a', from: 5000, to: 5003 }]
    const listed = is([vm(5000), vm(5001), vm(100), vm(9000)])
    expect(ofCluster({ ranges, listed, claimed: [5000, 5001] })).toEqual([])
    expect(ofCluster({ ranges, listed, claimed: [5000, 5001, 5002] })).toEqual(['warning VmidsShort'])
  })

  it('whose network is a vnet of a zone that is not known is not judged by localnetwork', () => {
    const path = '/sdn/zones/localnetwork/vmbr0'
    const privileges = new Map([...cluster.privileges, [path, is<ReadonlySet<string>>(new Set())]])
    const vnet = { ...node, bridges: is([{ name: 'vmbr0', vnet: true, active: true }]) }
    expect(ofCluster({ privileges }, [node])).toEqual(['failure PrivilegeMissing'])
    expect(ofCluster({ privileges }, [vnet])).toEqual([])
  })

  it('whose privileges could not be read is not said to lack any', () => {
    const privileges = new Map([...cluster.privileges.keys()].map((path) => [path, fails('Unreachable')]))
    expect(ofCluster({ privileges })).toEqual(['warning Unexpected'])
  })
})

describe('an endpoint', () => {
  it.each<[what: string, changes: Partial<EndpointFacts>, verdict: string[]]>([
    ['that is cut off', { version: fails('Unreachable') }, ['failure Unreachable']],
    ['that takes too long', { version: fails('Aborted') }, ['failure Unreachable']],
    ['that is somebody else', { version: fails('Untrusted') }, ['failure Untrusted']],
    ['that refuses our tokens', { version: fails('Unauthorized') }, ['warning TokenRefused']],
    ['that answers nonsense', { version: fails('Unexpected') }, ['failure Unexpected']],
    ['of version 7', { version: is({ version: '7.4-16', major: 7 }) }, ['failure VersionUnsupported']],
    ['of version 8', { version: is({ version: '8.0.2', major: 8 }) }, []],
    ['of version 10', { version: is({ version: '10.0', major: 10 }) }, ['warning VersionUnsupported']],
    [
      'without quorum',
      { status: is({ clustered: true, quorate: false, nodes: states }) },
      ['failure NoQuorum'],
    ],
    ['whose quorum may not be seen', { status: fails('Forbidden') }, []],
    [
      'that sees half of its nodes, and no more may be seen',
      {
        status: fails('Forbidden'),
        nodes: is([
          { name: 'pve1', online: true },
          { name: 'pve2', online: false },
        ]),
      },
      ['failure NoQuorum'],
    ],
    ['whose quorum could not be asked', { status: fails('Unreachable') }, ['warning Unexpected']],
    [
      'whose certificate ends in 13 days',
      { certificates: is([{ file: 'pve-ssl.pem', expiresAtMs: NOW + 13 * DAY }]) },
      ['warning CertificateExpires'],
    ],
    [
      'whose certificate has ended, trusted by its fingerprint',
      { certificates: is([{ file: 'pve-ssl.pem', expiresAtMs: NOW - DAY }]) },
      ['failure CertificateExpires'],
    ],
    [
      'that serves another certificate than the one that ends',
      {
        certificates: is([
          { file: 'pve-ssl.pem', expiresAtMs: NOW - DAY },
          { file: 'pveproxy-ssl.pem', expiresAtMs: NOW + 60 * DAY },
        ]),
      },
      [],
    ],
    ['whose authority ends', { certificates: is([{ file: 'pve-root-ca.pem', expiresAtMs: NOW + DAY }]) }, []],
  ])('%s', (_, changes, verdict) => {
    expect(ofEndpoint(changes)).toEqual(verdict)
  })
})

describe('a token', () => {
  const second: TokenFacts = { ...token, id: 'egress@pve!new' }
  it.each<[what: string, tokens: TokenFacts[], verdict: string[]]>([
    ['that is missing', [{ source: 'file token' }], ['failure TokenMissing']],
    ['that is missing, the second', [token, { source: 'file next' }], []],
    ['that is missing, the first of two', [{ source: 'file token' }, second], ['warning TokenMissing']],
    [
      'whose place cannot be read',
      [{ source: 'parameter x', unreadable: 'denied' }],
      ['failure TokenMissing'],
    ],
    ['that is refused', [{ ...token, accepted: fails('Unauthorized') }], ['failure TokenRefused']],
    [
      'that is refused, the other will do',
      [{ ...token, accepted: fails('Unauthorized') }, second],
      ['warning TokenRefused'],
    ],
    ['that was not answered', [{ ...token, accepted: fails('Unreachable') }], ['warning Unexpected']],
    ['that nobody could be asked about', [{ source: 'file token', id: 'a@pve!b' }], []],
    [
      'that ends in 13 days',
      [{ ...token, expiry: is({ tokenAtMs: NOW + 13 * DAY }) }],
      ['warning TokenExpires'],
    ],
    ['that ends in 15 days', [{ ...token, expiry: is({ tokenAtMs: NOW + 15 * DAY }) }], []],
    [
      'that ends with its user',
      [{ ...token, expiry: is({ tokenAtMs: NOW + DAY, userAtMs: NOW + DAY }) }],
      ['warning TokenExpires', 'warning TokenExpires'],
    ],
    ['whose end may not be seen', [{ ...token, expiry: is(undefined) }], []],
    ['whose end could not be asked', [{ ...token, expiry: fails('Unreachable') }], ['warning Unexpected']],
  ])('%s', (_, tokens, verdict) => {
    expect(ofCluster({ tokens })).toEqual(verdict)
  })

  it('that is there for a rotation only is not spoken of, unless the first is in trouble', () => {
    const said = (first: TokenFacts) => {
      const facts = { ...cluster, tokens: [first, { source: 'file next' }] }
      return judgeCluster(facts, [], NOW).filter(({ text }) => text.includes('file next'))
    }
    expect(said(token)).toEqual([])
    expect(said({ ...token, accepted: fails('Unauthorized') })).toMatchObject([
      { level: 'ok', text: 'there is no token in file next: it is only for a rotation' },
    ])
  })
})

describe('a node', () => {
  const clock = (ms: number, took = 40) => ({
    clock: is({ node: NOW + ms, askedAt: NOW, answeredAt: NOW + took }),
  })
  const storages = (changes: Partial<Storage>, id = 'vmdata') => ({
    storages: is(
      (node.storages.known ? node.storages.value : []).map((one) =>
        one.storage === id ? { ...one, ...changes } : one,
      ),
    ),
  })

  it.each<[what: string, changes: Partial<NodeFacts>, by: Partial<Around>, verdict: string[]]>([
    ['that is well', {}, {}, ['ok Fine']],
    ['that the cluster does not have', { state: undefined }, {}, ['failure NodeUnknown']],
    ['that is offline', { state: { name: 'pve1', online: false } }, {}, ['failure NodeOffline']],
    [
      'that does not answer, though its clock was refused before it was asked',
      { clock: fails('Forbidden'), bridges: fails('Unreachable'), storages: fails('Aborted') },
      {},
      ['failure NodeSilent'],
    ],
    ['that answers in part', { bridges: fails('Unreachable') }, {}, ['warning Unexpected']],
    ['whose clock may not be seen', { clock: fails('Forbidden') }, {}, ['ok Fine', 'ok NotSeen']],
    ['10 s ahead', clock(10_000), {}, ['ok Fine']],
    ['11 s ahead', clock(11_000), {}, ['warning ClockSkew']],
    ['11 s ahead, answering after 2 s', clock(11_000, 2000), {}, ['ok Fine']],
    ['11 s behind, a second of which was cut off', clock(-11_000), {}, ['ok Fine']],
    ['12 s behind', clock(-12_000), {}, ['warning ClockSkew']],
    ['301 s ahead', clock(301_000), {}, ['failure ClockSkew']],
    ['without the bridge', { bridges: is([]) }, {}, ['failure BridgeMissing']],
    ['whose bridge may not be used', { bridges: is([]) }, { mayUseBridge: false }, ['ok Fine', 'ok NotSeen']],
    [
      'whose bridge is down',
      { bridges: is([{ name: 'vmbr0', vnet: false, active: false }]) },
      {},
      ['failure BridgeInactive'],
    ],
    ['without storages', { storages: is([]) }, {}, ['failure StorageMissing', 'failure StorageMissing']],
    [
      'whose storages may not be seen',
      { storages: is([]) },
      { maySee: () => false },
      ['ok Fine', 'ok NotSeen', 'ok NotSeen'],
    ],
    ['with a storage that is off', storages({ enabled: false }), {}, ['failure StorageInactive']],
    [
      'with a storage that is away',
      storages({ active: false, totalBytes: 0, availableBytes: 0 }),
      {},
      ['failure StorageInactive'],
    ],
    ['with a tenth of its disks left', storages({ availableBytes: 51 * 1024 ** 3 }), {}, ['ok Fine']],
    ['with less than a tenth left', storages({ availableBytes: 40 * 1024 ** 3 }), {}, ['warning NoSpace']],
    ['with no room for a disk', storages({ availableBytes: 1024 ** 2 }), {}, ['failure NoSpace']],
    ['with 600 MiB for seeds', storages({ availableBytes: 600 * 1024 ** 2 }, 'local'), {}, ['ok Fine']],
    [
      'with 100 MiB for seeds',
      storages({ availableBytes: 100 * 1024 ** 2 }, 'local'),
      {},
      ['warning NoSpace'],
    ],
    ['on iSCSI', storages({ type: 'iscsi' }), {}, ['failure LinkedCloneImpossible']],
    [
      'on iSCSI, with full clones',
      storages({ type: 'iscsi' }),
      { cluster: { ...lab, clone: 'full' } },
      ['ok Fine'],
    ],
    ['on LVM-thin', storages({ type: 'lvmthin' }), {}, ['ok Fine']],
  ])('%s', (_, changes, by, verdict) => {
    expect(ofNode(changes, by)).toEqual(verdict)
  })
})
