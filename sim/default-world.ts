import { randomUUID } from 'node:crypto'
import type { World, WorldAcl } from './types.ts'

const giB = 1024 ** 3

/** The least that the whole life of a VM takes, by place. Shown by a recorded run of the real API. */
const least: { path: string; role: string; privileges: (version: 8 | 9) => string[] }[] = [
  {
    path: '/pool/egress',
    role: 'EgressVm',
    privileges: (version) => [
      'VM.Allocate',
      'VM.Audit',
      'VM.PowerMgmt',
      'VM.Config.CDROM',
      'VM.Config.CPU',
      'VM.Config.Cloudinit',
      'VM.Config.Disk',
      'VM.Config.Memory',
      'VM.Config.Network',
      'VM.Config.Options',
      version === 8 ? 'VM.Monitor' : 'VM.GuestAgent.Audit',
    ],
  },
  { path: '/storage/vmdata', role: 'EgressDisks', privileges: () => ['Datastore.AllocateSpace'] },
  {
    path: '/storage/local',
    role: 'EgressSeeds',
    privileges: () => ['Datastore.Allocate', 'Datastore.AllocateTemplate'],
  },
  { path: '/sdn/zones/localnetwork', role: 'EgressNetwork', privileges: () => ['SDN.Use'] },
]

export type DefaultWorld = World & { tokens: { egress: string; admin: string } }

/**
 * A cluster "lab": nodes pve1, pve2, …, on each a template, ISO storage `local` and image storage `vmdata`; pool `egress`
 * and the token `egress@pve!ctl` with just the privileges it takes. `tokens` are the whole values of the header.
 */
export function defaultWorld({
  version = 9 as 8 | 9,
  nodes = 3,
  secret = randomUUID() as string,
  adminSecret = randomUUID() as string,
} = {}): DefaultWorld {
  const names = Array.from({ length: nodes }, (_, index) => `pve${index + 1}`)
  const templates = names.map((node, index) => ({ node, vmid: 9000 + index }))
  const roles = Object.fromEntries(least.map(({ role, privileges }) => [role, privileges(version)]))
  const places = [
    ...least.map(({ path, role }) => ({ path, role })),
    ...templates.map(({ vmid }) => ({ path: `/vms/${vmid}`, role: 'EgressTemplate' })),
  ]
  const acl: WorldAcl[] = [
    ...places.flatMap(({ path, role }) =>
      ['egress@pve', 'egress@pve!ctl'].map((ugid) => ({ path, ugid, role, propagate: true })),
    ),
    { path: '/', ugid: 'admin@pve', role: 'Administrator', propagate: true },
  ]
  return {
    version,
    cluster: 'lab',
    nodes: names.map((name) => ({
      name,
      cpus: 8,
      memoryMiB: 32 * 1024,
      bridges: [{ iface: 'vmbr0', ports: 'eno1' }],
    })),
    storages: [
      {
        storage: 'local',
        type: 'dir',
        path: '/var/lib/vz',
        content: ['iso', 'vztmpl', 'backup', 'snippets'],
      },
      { storage: 'vmdata', type: 'dir', path: '/var/lib/vmdata', content: ['images'], totalBytes: 512 * giB },
    ],
    volumes: templates.map(({ node, vmid }) => ({
      storage: 'vmdata',
      node,
      name: `${vmid}/base-${vmid}-disk-0.qcow2`,
      sizeBytes: 2 * giB,
      usedBytes: 600 * 1024 ** 2,
    })),
    vms: templates.map(({ node, vmid }) => ({ vmid, node, config: templateConfig(vmid) })),
    pools: [{ poolid: 'egress', comment: 'forward proxies' }],
    users: [
      { userid: 'root@pam' },
      { userid: 'egress@pve', tokens: [{ id: 'ctl', secret, privsep: true }] },
      { userid: 'admin@pve', tokens: [{ id: 'test', secret: adminSecret, privsep: false }] },
    ],
    roles: { ...roles, EgressTemplate: ['VM.Clone'] },
    acl,
    tokens: { egress: `egress@pve!ctl=${secret}`, admin: `admin@pve!test=${adminSecret}` },
  }
}

function templateConfig(vmid: number): Record<string, string | number> {
  return {
    agent: '1',
    boot: 'order=scsi0',
    cores: 1,
    memory: '512',
    meta: 'creation-qemu=10.0.2,ctime=1767225600',
    name: 'debian-12',
    net0: 'virtio,bridge=vmbr0',
    ostype: 'l26',
    scsi0: `vmdata:${vmid}/base-${vmid}-disk-0.qcow2,size=2G`,
    scsihw: 'virtio-scsi-pci',
    serial0: 'socket',
    smbios1: `uuid=7c9e6679-7425-40de-944b-e07fc1f9${vmid}`,
    template: 1,
    vmgenid: `0ef6183f-26f5-417d-a4f2-0a1bc6d3${vmid}`,
  }
}
