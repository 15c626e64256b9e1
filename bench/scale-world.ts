import { describe } from '../lib/mark.ts'
import { macOf, seedFile, tagsOf, vmName } from '../lib/names.ts'
import type { Row } from '../lib/record.ts'
import { type DefaultWorld, defaultWorld } from '../sim/index.ts'
import { NODES } from './instant-config.ts'

const DEPLOYMENT = 'bench'
const GIB = 1024 ** 3

/** So many rows and VMs: of the rows one in ten is Ready, the others tombstones; of the VMs one in ten is ours. */
export function crowd(count: number): { world: DefaultWorld; rows: Row[] } {
  const world = defaultWorld()
  const now = Date.now()
  const ready = Array.from({ length: Math.ceil(count / 10) }, (_, index) => readyRow(index, now))
  const tombstones = Array.from({ length: count - ready.length }, (_, index) => tombstone(index, now))
  const strangers = Array.from({ length: count - ready.length }, (_, index) => ({
    vmid: 200_000 + index,
    node: nodeOf(index),
    config: { name: `theirs-${index}`, memory: '512' },
  }))
  const vms = ready.map((row) => machineOf(row))
  return {
    rows: [...ready, ...tombstones],
    world: {
      ...world,
      vms: [...(world.vms ?? []), ...vms, ...strangers],
      volumes: [...(world.volumes ?? []), ...ready.flatMap(volumesOf)],
      roles: {
        ...world.roles,
        BenchSight: ['Datastore.Allocate', 'Datastore.AllocateSpace', 'Datastore.AllocateTemplate'],
      },
      acl: [
        ...(world.acl ?? []).filter(({ path }) => !path.startsWith('/storage/')),
        // So that the cluster's list shows the VMs of others as well, and the storages what lies on them.
        ...['egress@pve', 'egress@pve!ctl'].flatMap((ugid) => [
          { path: '/vms', ugid, role: 'PVEAuditor', propagate: true },
          { path: '/storage/vmdata', ugid, role: 'BenchSight', propagate: true },
          { path: '/storage/local', ugid, role: 'BenchSight', propagate: true },
        ]),
      ],
    },
  }
}

const nodeOf = (index: number) => NODES[index % NODES.length] ?? 'pve1'

function readyRow(index: number, now: number): Row {
  const uid = `proxy-${index}`
  const node = nodeOf(index)
  const vmid = 10_000 + index
  const address = `10.0.${(index >> 8) & 255}.${index & 255}`
  const steps = ['reserve', 'clone', 'seed', 'configure', 'start', 'address', 'verify'] as const
  return {
    uid,
    wish: 'present',
    generation: 1,
    name: uid,
    spec: {
      zone: 'lab-1',
      image: 'debian-12',
      size: { cores: 1, memoryMiB: 512, diskGiB: 4 },
      proxy: { protocol: 'http', port: 3128, allow: ['10.0.0.0/8'] },
      hasUserData: false,
    },
    specHash: '0'.repeat(64),
    phase: 'Ready',
    turn: 18,
    since: now,
    dueAt: now,
    deliveries: 0,
    lookedAgain: 0,
    probed: 0,
    place: { cluster: 'lab', node, vmid, template: 9000 + (index % NODES.length), storage: 'vmdata' },
    placedOn: `lab/${node}`,
    cloned: true,
    seed: seedOf(uid),
    seededOn: [node],
    mac: macOf(DEPLOYMENT, uid),
    address,
    endpoint: `http://${address}:3128`,
    timeline: steps.map((step) => ({ step, at: now, ms: 1000, outcome: 'next' })),
    createdAt: now - index,
    requestedAt: now,
    readyAt: now,
  }
}

function tombstone(index: number, now: number): Row {
  const {
    place: _,
    placedOn: __,
    seed: ___,
    seededOn: ____,
    address: _____,
    endpoint: ______,
    ...row
  } = readyRow(index, now)
  const uid = `gone-${index}`
  const purgeAt = Math.floor(now / 1000) + 35 * 86_400
  return { ...row, uid, name: uid, wish: 'absent', phase: 'Deleted', purgeAt }
}

const seedOf = (uid: string) => `local:iso/${seedFile(DEPLOYMENT, uid, 1)}`

function machineOf({ uid, place, mac = '', specHash = '', seed = '' }: Row) {
  const { vmid, node } = place ?? { vmid: 0, node: '' }
  const mark = { deployment: DEPLOYMENT, uid, generation: 1, vmid, specHash, seed }
  return {
    vmid,
    node,
    pool: 'egress',
    running: true,
    config: {
      name: vmName({ uid, name: uid }),
      description: describe(mark, uid),
      agent: '1',
      boot: 'order=scsi0',
      memory: '512',
      net0: `virtio=${mac.toUpperCase()},bridge=vmbr0`,
      ide2: `${seed},media=cdrom`,
      scsi0: `vmdata:${vmid}/vm-${vmid}-disk-0.qcow2,size=4G`,
      tags: [...tagsOf(DEPLOYMENT)].join(';'),
      onboot: 1,
    },
  }
}

function volumesOf({ place, seed = '' }: Row) {
  const { vmid, node } = place ?? { vmid: 0, node: '' }
  return [
    { storage: 'vmdata', node, name: `${vmid}/vm-${vmid}-disk-0.qcow2`, sizeBytes: 4 * GIB, vmid },
    { storage: 'local', node, name: seed.replace('local:', ''), sizeBytes: 61_440 },
  ]
}
