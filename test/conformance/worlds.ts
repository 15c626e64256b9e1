import type { World, WorldAcl, WorldUser } from '../../sim/index.ts'

/** The cluster the recordings were made on: one node, a template, four storages; its users and what they may. */

const mib = 1024 ** 2
const totalBytes = 270_553_174_016

export const runnerPrivileges = (version: 8 | 9): string[] => [
  'Datastore.Allocate',
  'Datastore.AllocateSpace',
  'Datastore.AllocateTemplate',
  'Datastore.Audit',
  'Pool.Allocate',
  'Pool.Audit',
  'SDN.Use',
  'Sys.Audit',
  'VM.Allocate',
  'VM.Audit',
  'VM.Clone',
  'VM.Config.CDROM',
  'VM.Config.CPU',
  'VM.Config.Cloudinit',
  'VM.Config.Disk',
  'VM.Config.HWType',
  'VM.Config.Memory',
  'VM.Config.Network',
  'VM.Config.Options',
  'VM.PowerMgmt',
  version === 8 ? 'VM.Monitor' : 'VM.GuestAgent.Audit',
]

const poolPrivileges = (version: 8 | 9): string[] =>
  runnerPrivileges(version).filter(
    (name) => name === 'Pool.Audit' || (name.startsWith('VM.') && name !== 'Pool.Allocate'),
  )

const secrets: Record<string, string> = {
  'root@pam!adm': '11111111-1111-4111-8111-111111111111',
  'runner@pve!ctl': '22222222-2222-4222-8222-222222222222',
  'runner@pve!full': '33333333-3333-4333-8333-333333333333',
  'runner@pve!old': '44444444-4444-4444-8444-444444444444',
  'runner@pve!bare': '55555555-5555-4555-8555-555555555555',
  'none@pve!tok': '66666666-6666-4666-8666-666666666666',
  'off@pve!tok': '77777777-7777-4777-8777-777777777777',
  'pooler@pve!tok': '99999999-9999-4999-8999-999999999999',
  'life@pve!tok': '<uuid>',
}

const onEach = (path: string, role: string, ...ugids: string[]): WorldAcl[] =>
  ugids.map((ugid) => ({ path, ugid, role, propagate: true }))

/** Users `no-<privilege>@pve` have everything of the runner but one. */
function lacking(version: 8 | 9) {
  const users: WorldUser[] = []
  const roles: Record<string, string[]> = {}
  const acl: WorldAcl[] = []
  for (const privilege of runnerPrivileges(version)) {
    const userid = `no-${privilege.toLowerCase()}@pve`
    users.push({
      userid,
      tokens: [{ id: 'tok', secret: '88888888-8888-4888-8888-888888888888', privsep: true }],
    })
    roles[`No${privilege}`] = runnerPrivileges(version).filter((name) => name !== privilege)
    acl.push(...onEach('/', `No${privilege}`, userid, `${userid}!tok`))
  }
  return { users, roles, acl }
}

function users(version: 8 | 9): Required<Pick<World, 'users' | 'roles' | 'acl'>> {
  const less = lacking(version)
  const token = (id: string, name: string, more: object = {}) => ({
    id,
    secret: secrets[`${name}!${id}`] ?? '',
    ...more,
  })
  const life = {
    LifePool: [
      'VM.Allocate',
      'VM.Audit',
      'VM.PowerMgmt',
      'VM.Config.Options',
      'VM.Config.CDROM',
      'VM.Config.Disk',
      version === 8 ? 'VM.Monitor' : 'VM.GuestAgent.Audit',
    ],
    LifeSeeds: ['Datastore.AllocateTemplate', 'Datastore.Allocate'],
  }
  return {
    users: [
      { userid: 'root@pam', tokens: [token('adm', 'root@pam', { privsep: false })] },
      {
        userid: 'runner@pve',
        tokens: [
          token('ctl', 'runner@pve'),
          token('full', 'runner@pve', { privsep: false }),
          token('bare', 'runner@pve'),
          token('old', 'runner@pve', { expireSeconds: 1 }),
        ],
      },
      { userid: 'none@pve', tokens: [token('tok', 'none@pve', { privsep: false })] },
      { userid: 'off@pve', enabled: false, tokens: [token('tok', 'off@pve', { privsep: false })] },
      { userid: 'pooler@pve', tokens: [token('tok', 'pooler@pve', { privsep: false })] },
      { userid: 'life@pve', tokens: [token('tok', 'life@pve')] },
      ...less.users,
    ],
    roles: {
      Runner: runnerPrivileges(version),
      Pooler: poolPrivileges(version),
      PoolerTemplate: ['VM.Audit', 'VM.Clone'],
      PoolerStorage: ['Datastore.Audit', 'Datastore.AllocateSpace', 'Datastore.AllocateTemplate'],
      Disks: ['Datastore.AllocateSpace'],
      Clone: ['VM.Clone'],
      Net: ['SDN.Use'],
      ...life,
      ...less.roles,
    },
    acl: [
      ...onEach('/', 'Runner', 'runner@pve', 'runner@pve!ctl'),
      ...onEach('/pool/runners', 'Pooler', 'pooler@pve'),
      ...onEach('/vms/9000', 'PoolerTemplate', 'pooler@pve'),
      ...onEach('/storage/local', 'PoolerStorage', 'pooler@pve'),
      ...onEach('/storage/vmdata', 'PoolerStorage', 'pooler@pve'),
      ...onEach('/sdn/zones/localnetwork', 'Net', 'pooler@pve', 'life@pve', 'life@pve!tok'),
      ...onEach('/pool/runners', 'LifePool', 'life@pve', 'life@pve!tok'),
      ...onEach('/vms/9000', 'Clone', 'life@pve', 'life@pve!tok'),
      ...onEach('/storage/vmdata', 'Disks', 'life@pve', 'life@pve!tok'),
      ...onEach('/storage/local', 'LifeSeeds', 'life@pve', 'life@pve!tok'),
      ...less.acl,
    ],
  }
}

const fingerprint = Array.from({ length: 2 }, () => 'AA:BB:CC:DD:EE:FF:00:11:22:33:44:55:66:77:88:99').join(
  ':',
)

export function templateConfig(version: 8 | 9, more: Record<string, string | number> = {}) {
  return {
    agent: '1',
    boot: 'order=scsi0',
    cores: 1,
    memory: '128',
    meta: version === 8 ? 'creation-qemu=9.2.0,ctime=1796088010' : 'creation-qemu=10.2.1,ctime=1796089494',
    name: 'tmpl',
    net0: 'virtio=BC:24:11:C1:70:38,bridge=vmbr0',
    ostype: 'l26',
    scsi0: 'vmdata:9000/base-9000-disk-0.qcow2,size=96M',
    scsihw: 'virtio-scsi-pci',
    serial0: 'socket',
    smbios1: 'uuid=d87b088e-d25a-43b1-a987-c5915ba5c07a',
    template: 1,
    vmgenid: 'c3cdfa05-7129-4261-a96f-cfdd3d66f4d5',
    ...more,
  }
}

export function labWorld(
  version: 8 | 9,
  template: Record<string, string | number> = {},
): World & { vms: NonNullable<World['vms']> } {
  return {
    version,
    nodes: [
      {
        name: 'pve1',
        ip: '10.99.0.1',
        cpus: 2,
        memoryMiB: 25_276_502_016 / mib,
        rootGiB: 6,
        bridges: [{ iface: 'vmbr0', ports: '', cidr: '10.99.0.1/24' }],
        fingerprint,
      },
    ],
    storages: [
      { storage: 'bkonly', type: 'dir', path: '/var/lib/vz', content: ['backup'], totalBytes },
      { storage: 'vmdata', type: 'dir', path: '/var/lib/vmdata', content: ['images'], totalBytes },
      { storage: 'off', type: 'dir', path: '/var/lib/off', content: ['images', 'iso'], disable: true },
      {
        storage: 'local',
        type: 'dir',
        path: '/var/lib/vz',
        content: ['snippets', 'backup', 'vztmpl', 'images', 'iso', 'import'],
        totalBytes,
      },
    ],
    volumes: [
      { storage: 'vmdata', name: '9000/base-9000-disk-0.qcow2', sizeBytes: 96 * mib, usedBytes: 50_597_888 },
    ],
    vms: [{ vmid: 9000, node: 'pve1', config: templateConfig(version, template) }],
    pools: [{ poolid: 'runners', comment: 'runner pool' }],
    ...users(version),
  }
}

/** A linked clone as it stood there already when a recording began. */
export function linkedClone(
  world: ReturnType<typeof labWorld>,
  vmid: number,
  name: string,
  more: Record<string, string | number> = {},
  extra: object = {},
): void {
  const { template: _, ...config } = templateConfig(
    world.version,
    world.vms[0]?.config.tags === undefined ? {} : { tags: world.vms[0].config.tags },
  )
  const disk = `9000/base-9000-disk-0.qcow2/${vmid}/vm-${vmid}-disk-0.qcow2`
  world.volumes?.push({
    storage: 'vmdata',
    name: disk,
    sizeBytes: 96 * mib,
    usedBytes: 200_704,
    parent: '../9000/base-9000-disk-0.qcow2',
  })
  world.vms.push({
    vmid,
    node: 'pve1',
    config: {
      ...config,
      name,
      net0: `virtio=BC:24:11:00:00:${String(vmid).slice(-2)},bridge=vmbr0`,
      scsi0: `vmdata:${disk},size=96M`,
      ...more,
    },
    ...extra,
  })
}
