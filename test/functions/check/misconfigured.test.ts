import { afterEach, describe, expect, it } from 'vitest'
import type { Finding, FindingCode, Round } from '../../../functions/check/event.ts'
import { rolesFor } from '../../../lib/proxmox/index.ts'
import { type DefaultWorld, defaultWorld, type FaultRule } from '../../../sim/index.ts'
import {
  allFindings,
  type CheckLab,
  type CheckOptions,
  found,
  openCheckLab,
  withAuditRoles,
  wrong,
} from './check-lab.ts'

let lab: CheckLab
afterEach(() => lab?.close())

/** A cluster as the setup page leaves it, optional roles included, with whatever a test spoils. */
const seenWhole = (version: 8 | 9 = 9) => withAuditRoles(defaultWorld({ version }))
async function open(options: CheckOptions = {}): Promise<CheckLab> {
  lab = await openCheckLab({ world: seenWhole(), ...options })
  return lab
}

/** Types what a finding says on the node that it names, as far as a shell of a host would take it. */
function follow({ line = '', node = 'pve1' }: Finding): void {
  for (const command of (line.split(' # ')[0] ?? '').split(' && ')) {
    const argv = [...command.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, plain = '']) => quoted ?? plain)
    const typed = lab.sim.root(node, argv)
    expect({ command, ...typed }).toMatchObject({ exitCode: 0 })
  }
}

/** The one thing that is wrong. */
function only(round: Round): Finding {
  const [first, ...others] = wrong(round)
  if (!first || others.length > 0)
    throw new Error(`not one finding: ${JSON.stringify(wrong(round), null, 1)}`)
  return first
}

const onPve1 = (
  world: DefaultWorld,
  spoil: (node: DefaultWorld['nodes'][number]) => object,
): DefaultWorld => ({
  ...world,
  nodes: world.nodes.map((node) => (node.name === 'pve1' ? { ...node, ...spoil(node) } : node)),
})
const storage = (world: DefaultWorld, id: string, spoil: object): DefaultWorld => ({
  ...world,
  storages: world.storages.map((one) => (one.storage === id ? { ...one, ...spoil } : one)),
})
const template = (
  options: Record<string, string | number | undefined>,
  world = seenWhole(),
): DefaultWorld => ({
  ...world,
  vms: (world.vms ?? []).map((vm) => {
    const config = Object.entries({ ...vm.config, ...(vm.vmid === 9000 ? options : {}) })
    // An option set to `undefined` is not there.
    return {
      ...vm,
      config: Object.fromEntries(config.filter(([, value]) => value !== undefined)) as typeof vm.config,
    }
  }),
})
const user = (world: DefaultWorld, spoil: object, tokenToo: object = {}): DefaultWorld => ({
  ...world,
  users: (world.users ?? []).map((one) =>
    one.userid === 'egress@pve'
      ? { ...one, ...spoil, tokens: one.tokens?.map((token) => ({ ...token, ...tokenToo })) ?? [] }
      : one,
  ),
})
const answering = (
  path: string,
  answer: (FaultRule['effect'] & { kind: 'answer' })['answer'],
): FaultRule => ({
  match: { path },
  effect: { kind: 'answer', answer },
})
const GIB = 1024 ** 3
const filled = (world: DefaultWorld, usedBytes: number): DefaultWorld => ({
  ...world,
  volumes: (world.volumes ?? []).map((volume) => ({ ...volume, usedBytes })),
})
/** Disks are logical volumes, so their names are others. */
const onLvm = (world: DefaultWorld): DefaultWorld => ({
  ...storage(world, 'vmdata', { type: 'lvm', vgname: 'vg' }),
  volumes: (world.volumes ?? []).map((volume) => ({
    ...volume,
    name: volume.name.replace(/^\d+\/|\.qcow2$/g, ''),
  })),
  vms: (world.vms ?? []).map((vm) => ({
    ...vm,
    config: { ...vm.config, scsi0: `vmdata:base-${vm.vmid}-disk-0,size=2G` },
  })),
})
const inSeconds = (iso: string) => Date.parse(iso) / 1000

describe.each([8, 9] as const)('a cluster of PVE %i that is set up as the page says', (version) => {
  it('has nothing wrong, and every target says so', async () => {
    await open({ world: seenWhole(version) })
    const round = await lab.round()
    expect(wrong(round)).toEqual([])
    const fine = found(round, 'Fine').map(({ target, where }) => `${target} ${where}`)
    expect(fine).toEqual([
      'endpoint https://pve1:8006',
      'endpoint https://pve2:8006',
      'endpoint https://pve3:8006',
      'token lab, egress@pve!ctl',
      'cluster lab',
      'node pve1',
      'node pve2',
      'node pve3',
    ])
    expect(round.summary).toMatchObject({ clusters: ['lab'], counts: { failure: 0, warning: 0 } })
    // All but the privilege to delete left-over disks, which is a choice.
    expect(found(round, 'NotSeen').map(({ text }) => text)).toEqual([
      'only for looking around, and not granted: Datastore.Allocate on /storage/vmdata',
    ])
  })

  it('with the least privileges has nothing wrong either, and says what it could not see', async () => {
    await open({ world: defaultWorld({ version }) })
    const round = await lab.round()
    expect(wrong(round)).toEqual([])
    const unseen = found(round, 'NotSeen').map(({ text }) => text)
    for (const part of [
      'its clock',
      'storage local',
      'template 9000',
      'pool egress',
      'when it ends',
      'Sys.Audit on /',
    ])
      expect(unseen.join('\n')).toContain(part)
    expect(found(round, 'NotSeen').every(({ line }) => line === 'egress check --role')).toBe(true)
  })
})

type Case = [
  what: string,
  options: () => CheckOptions,
  level: Finding['level'],
  code: FindingCode,
  words: RegExp,
]

describe('a round finds', () => {
  it.each<Case>([
    [
      'a template that is not there',
      () => ({ world: { ...seenWhole(), vms: seenWhole().vms?.filter(({ vmid }) => vmid !== 9000) ?? [] } }),
      'failure',
      'TemplateMissing',
      /template 9000 \(debian-12\) is not on pve1/,
    ],
    [
      'a template that may not be read and is not there',
      () => {
        const world = defaultWorld()
        return { world: { ...world, vms: world.vms?.filter(({ vmid }) => vmid !== 9000) ?? [] } }
      },
      'failure',
      'TemplateMissing',
      /template 9000/,
    ],
    [
      'a template that is none',
      () => ({ world: template({ template: undefined }) }),
      'failure',
      'NotATemplate',
      /ordinary VM/,
    ],
    // Report: ionos-cloud/cluster-api-provider-proxmox#506
    [
      'a template without agent',
      () => ({ world: template({ agent: '0' }) }),
      'warning',
      'TemplateAgentOff',
      /guest agent/,
    ],
    [
      'a template that is protected',
      () => ({ world: template({ protection: 1 }) }),
      'warning',
      'TemplateProtected',
      /protected/,
    ],
    [
      'a template with tags',
      () => ({ world: template({ tags: 'prod;web' }) }),
      'warning',
      'ForeignTags',
      /prod, web/,
    ],
    [
      'a template that is locked',
      () => ({ world: template({ lock: 'backup' }) }),
      'failure',
      'TemplateLocked',
      /backup/,
    ],
    [
      'a template with a disk where the seed goes',
      () => ({ world: template({ ide2: 'vmdata:9000/base-9000-disk-1.qcow2' }) }),
      'failure',
      'TemplateUnfit',
      /ide2/,
    ],
    [
      'a template without a disk',
      () => ({ world: template({ scsi0: undefined }) }),
      'failure',
      'TemplateUnfit',
      /no disk/,
    ],
    [
      'linked clones of a template on another storage',
      () => ({ world: template({ scsi0: 'other:9000/base-9000-disk-0.qcow2' }) }),
      'failure',
      'LinkedCloneImpossible',
      /on other, not on vmdata/,
    ],
    [
      'linked clones on a storage that only copies',
      () => ({ world: onLvm(seenWhole()) }),
      'failure',
      'LinkedCloneImpossible',
      /type lvm/,
    ],
    [
      'a storage that is not active',
      () => ({ world: storage(seenWhole(), 'vmdata', { offline: 'storage is not online' }) }),
      'failure',
      'StorageInactive',
      /vmdata is not active/,
    ],
    [
      'a storage that is disabled',
      () => ({ world: storage(seenWhole(), 'local', { disable: true }) }),
      'failure',
      'StorageInactive',
      /local is disabled/,
    ],
    [
      'a storage that is not on a node',
      () => ({ world: storage(seenWhole(), 'vmdata', { nodes: ['pve2', 'pve3'] }) }),
      'failure',
      'StorageMissing',
      /no storage vmdata/,
    ],
    // Report: Telmate/terraform-provider-proxmox#1196
    [
      'a storage without ISO images',
      () => ({ world: storage(seenWhole(), 'local', { content: ['vztmpl'] }) }),
      'failure',
      'ContentMissing',
      /ISO images/,
    ],
    [
      'a storage without disk images',
      () => ({ world: storage(seenWhole(), 'vmdata', { content: ['rootdir'] }) }),
      'failure',
      'ContentMissing',
      /disk images/,
    ],
    [
      'a storage that is shared against the configuration',
      () => ({ world: storage(seenWhole(), 'local', { shared: true }) }),
      'failure',
      'NotShared',
      /is shared/,
    ],
    [
      'a storage that is not shared as the configuration has it',
      () => ({ cluster: { isoStorageShared: true } }),
      'failure',
      'NotShared',
      /not shared/,
    ],
    // Report: hashicorp/packer-plugin-proxmox#104
    [
      'no room for seeds',
      () => ({ world: storage(seenWhole(), 'local', { totalBytes: 10 * 1024 ** 2 }) }),
      'failure',
      'NoSpace',
      /10 MiB of storage local/,
    ],
    [
      'little room for seeds',
      () => ({ world: storage(seenWhole(), 'local', { totalBytes: 100 * 1024 ** 2 }) }),
      'warning',
      'NoSpace',
      /100 MiB of storage local/,
    ],
    [
      'little room for disks',
      () => ({ world: filled(storage(seenWhole(), 'vmdata', { totalBytes: 20 * GIB }), 18.5 * GIB) }),
      'warning',
      'NoSpace',
      /of storage vmdata/,
    ],
    [
      'a bridge that is missing',
      () => ({ world: onPve1(seenWhole(), () => ({ bridges: [{ iface: 'vmbr7' }] })) }),
      'failure',
      'BridgeMissing',
      /no bridge vmbr0/,
    ],
    [
      'a clock that is wrong',
      () => ({ world: onPve1(seenWhole(), () => ({ clockSkewMs: 60_000 })) }),
      'warning',
      'ClockSkew',
      /60 s ahead/,
    ],
    [
      'a clock that is very wrong',
      () => ({ world: onPve1(seenWhole(), () => ({ clockSkewMs: -3600_000 })) }),
      'failure',
      'ClockSkew',
      /behind/,
    ],
    [
      'a certificate that ends',
      () => ({ world: onPve1(seenWhole(), () => ({ certificateEndsMs: Date.UTC(2026, 0, 5) })) }),
      'warning',
      'CertificateExpires',
      /ends 2026-01-05/,
    ],
    [
      'a token that ends',
      () => ({ world: user(seenWhole(), {}, { expireSeconds: inSeconds('2026-01-09') }) }),
      'warning',
      'TokenExpires',
      /the token ends 2026-01-09/,
    ],
    [
      'a user that ends',
      () => ({ world: user(seenWhole(), { expireSeconds: inSeconds('2026-01-08') }) }),
      'warning',
      'TokenExpires',
      /its user egress@pve ends 2026-01-08/,
    ],
    [
      'a pool that is missing',
      () => ({ world: { ...seenWhole(), pools: [] } }),
      'failure',
      'PoolMissing',
      /no pool egress/,
    ],
    [
      'a pool that is missing and could not be seen',
      () => ({ world: { ...defaultWorld(), pools: [] } }),
      'failure',
      'PoolMissing',
      /no pool egress/,
    ],
    [
      'few VMIDs',
      () => ({
        cluster: { vmids: { from: 5000, to: 5001 } },
        world: {
          ...seenWhole(),
          vms: [
            ...(seenWhole().vms ?? []),
            { vmid: 5000, node: 'pve2', config: { name: 'x' }, pool: 'egress' },
            { vmid: 5001, node: 'pve2', config: { name: 'y' }, pool: 'egress' },
          ],
        },
      }),
      'failure',
      'VmidsShort',
      /0 of 2 VMIDs/,
    ],
    // Report: rgl/terraform-proxmox-talos#2
    [
      'a node that the cluster does not have',
      () => ({
        config: { zones: { 'lab-1': { cluster: 'lab', nodes: ['pve1', 'pve9'] } } },
        cluster: { images: { 'debian-12': { pve1: 9000, pve9: 9001 } } },
      }),
      'failure',
      'NodeUnknown',
      /no node of this name/,
    ],
  ])('%s', async (_, options, level, code, words) => {
    await open(options())
    const round = await lab.round()
    const findings = found(round, code)
    expect(findings, JSON.stringify(wrong(round), null, 1)).not.toEqual([])
    expect(findings[0]).toMatchObject({
      level,
      code,
      text: expect.stringMatching(words),
      line: expect.stringMatching(/./),
    })
    expect(wrong(round).filter((one) => one.code !== code)).toEqual([])
  })

  it('a template with a cloud-init drive, and the privilege to take it off clones when it lacks', async () => {
    const drive = { ide0: 'vmdata:9000/vm-9000-cloudinit.qcow2,media=cdrom' }
    const world = template(drive)
    await open({ world })
    expect(only(await lab.round())).toMatchObject({ level: 'warning', code: 'CloudInitDrive', node: 'pve1' })
    await lab.close()
    const roles = Object.entries(world.roles ?? {}).map(([role, list]) => [
      role,
      list.filter((privilege) => privilege !== 'VM.Config.Cloudinit'),
    ])
    await open({ world: { ...world, roles: Object.fromEntries(roles) } })
    const [missing] = found(await lab.round(), 'PrivilegeMissing')
    expect(missing?.text).toContain('VM.Config.Cloudinit')
    if (missing) follow(missing)
    expect(found(await lab.round(), 'PrivilegeMissing')).toEqual([])
  })

  it('a token with privilege separation that has nothing of what its user has, and the lines grant to it as well', async () => {
    const world = seenWhole()
    await open({ world: { ...world, acl: world.acl?.filter(({ ugid }) => ugid !== 'egress@pve!ctl') ?? [] } })
    const missing = found(await lab.round(), 'PrivilegeMissing')
    expect(missing.length).toBeGreaterThan(0)
    for (const finding of missing) {
      expect(finding.line).toContain("--tokens 'egress@pve!ctl'")
      follow(finding)
    }
    expect(found(await lab.round(), 'PrivilegeMissing')).toEqual([])
  })

  it.each([
    ['7.4-16', 'failure'],
    ['10.0.1', 'warning'],
  ] as const)('a version that is not supported: %s', async (version, level) => {
    await open()
    lab.sim.faults.add(
      answering('^/version$', { status: 200, data: { version, release: version.slice(0, 3) } }),
    )
    const round = await lab.round()
    expect(found(round, 'VersionUnsupported')).toHaveLength(3)
    expect(found(round, 'VersionUnsupported')[0]).toMatchObject({
      level,
      text: expect.stringContaining(version),
    })
  })

  // Report: community-scripts/ProxmoxVE#5278
  it('that there is no quorum, whether the token may see the cluster or not', async () => {
    for (const world of [seenWhole(), defaultWorld()]) {
      await open({ world })
      lab.sim.setNode('pve1', 'no-quorum')
      const round = await lab.round()
      const lost = found(round, 'NoQuorum')
      // What the minority believes of the others counts for nothing, though it answers first.
      const nodes = allFindings(round).filter(({ target, code }) => target === 'node' && code !== 'NotSeen')
      expect(nodes.map(({ where, code }) => `${where} ${code}`)).toEqual([
        'pve1 NodeOffline',
        'pve2 Fine',
        'pve3 Fine',
      ])
      expect(lost.map(({ where, level }) => [where, level])).toEqual([['https://pve1:8006', 'failure']])
      await lab.close()
    }
  })

  it('a certificate that is not the trusted one, and goes on through the other endpoints', async () => {
    const wire: CheckOptions['wire'] = (exchange) => async (endpoint, request) => {
      if (endpoint.node !== 'pve1') return exchange(endpoint, request)
      const impostor = new Error('the certificate does not have the pinned fingerprint')
      throw Object.assign(impostor, { code: 'ERR_CERT_PIN', sent: false })
    }
    await open({ wire })
    const finding = only(await lab.round())
    expect(finding).toMatchObject({ level: 'failure', code: 'Untrusted', where: 'https://pve1:8006' })
    expect(finding.line).toContain('openssl s_client -connect pve1:8006')
  })

  it('a token that is refused, by its name and never by its secret', async () => {
    const world = user(seenWhole(), { enabled: false })
    await open({ world })
    const round = await lab.round()
    expect(found(round, 'TokenRefused').filter(({ target }) => target === 'token')).toEqual([
      expect.objectContaining({ level: 'failure', where: 'lab, egress@pve!ctl' }),
    ])
    expect(found(round, 'NoEndpoint')).toHaveLength(1)
    expect(JSON.stringify(round)).not.toContain(world.tokens.egress.split('=')[1])
  })

  it('of two tokens the bad one, as a warning while the other does', async () => {
    const stale = 'egress@pve!old=11111111-2222-3333-4444-555555555555'
    const world = seenWhole()
    const read = async (source: { file: string } | { ssm: string }) =>
      'file' in source && source.file.endsWith('old') ? stale : world.tokens.egress
    await open({
      world,
      cluster: { token: [{ file: 'old' }, { file: 'token' }] },
      ports: ({ secrets }) => ({ secrets: { ...secrets, read } }),
    })
    const refused = only(await lab.round())
    expect(refused).toMatchObject({ level: 'warning', code: 'TokenRefused', where: 'lab, egress@pve!old' })
  })

  it.each([
    ['nothing', undefined, /there is no token in file .*token/],
    ['a bare secret', '11111111-2222-3333-4444-555555555555', /does not hold user@realm!name=secret/],
  ])('that %s is kept where the token should be', async (_, kept, words) => {
    await open({ ports: ({ secrets }) => ({ secrets: { ...secrets, read: async () => kept } }) })
    const round = await lab.round()
    expect(found(round, 'TokenMissing')).toEqual([
      expect.objectContaining({ level: 'failure', text: expect.stringMatching(words) }),
    ])
    expect(JSON.stringify(round)).not.toContain('11111111')
  })

  it('that proxies live on a cluster which is not configured any more', async () => {
    await open({
      ports: (ports) => ({
        rows: async (phase) =>
          (await ports.rows(phase)).map((row) => ({
            ...row,
            ...(row.place && { place: { ...row.place, cluster: 'mars' } }),
          })),
      }),
    })
    lab.request('alpha')
    await lab.run()
    const round = await lab.round()
    expect(found(round, 'Misconfigured')).toEqual([
      expect.objectContaining({ level: 'failure', where: 'mars', text: expect.stringContaining('1 ready') }),
    ])
    expect(round.summary.proxies).toMatchObject({ ready: 1, unknown: 1, resumed: 0 })
    expect(round.summary.clusters).toEqual(['lab', 'mars'])
  })
})

describe.each([8, 9] as const)('on PVE %i', (version) => {
  const needed = rolesFor(version).filter((role) => role.needed)
  const privileges = needed.flatMap(({ name, privileges: list }) => list.map((one) => [name, one] as const))

  // Report: Telmate/terraform-provider-proxmox#1378
  it.each(privileges)('a role %s without %s is named, and its line mends it', async (_, privilege) => {
    const world = seenWhole(version)
    const roles = Object.entries(world.roles ?? {}).map(([role, list]) => [
      role,
      role.startsWith('EgressCheck') ? list : list.filter((one) => one !== privilege),
    ])
    await open({ world: { ...world, roles: Object.fromEntries(roles) } })
    const before = found(await lab.round(), 'PrivilegeMissing')
    expect(before.map(({ text }) => text).join('\n')).toContain(`lacks ${privilege} on `)
    for (const finding of before) {
      expect(finding).toMatchObject({ level: 'failure', target: 'cluster', where: 'lab' })
      expect(finding.line).toContain("--tokens 'egress@pve!ctl'")
      follow(finding)
    }
    expect(found(await lab.round(), 'PrivilegeMissing')).toEqual([])
  })

  // Report: bpg/terraform-provider-proxmox#1285
  it.each(needed.map(({ name }) => name))(
    'a role %s that was not given is named, and its lines mend it',
    async (role) => {
      const world = seenWhole(version)
      await open({ world: { ...world, acl: world.acl?.filter((entry) => entry.role !== role) ?? [] } })
      const before = found(await lab.round(), 'PrivilegeMissing')
      expect(before.length).toBeGreaterThan(0)
      for (const finding of before) follow(finding)
      const round = await lab.round()
      expect(found(round, 'PrivilegeMissing')).toEqual([])
      expect(allFindings(round).filter(({ level }) => level === 'failure')).toEqual([])
    },
  )
})
