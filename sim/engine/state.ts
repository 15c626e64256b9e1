import { createHash } from 'node:crypto'
import type { Daemon, NodeState, World, WorldAcl, WorldStorage, WorldUser } from '../types.ts'

/** The options of one section of a VM's file, by name. */
export type Conf = Record<string, string | number>

export type Running = { pid: number; sinceMs: number; qmpstatus: string }

export type Vm = {
  vmid: number
  node: string
  config: Conf
  pending: { set: Conf; delete: string[] }
  snapshots: Record<string, Conf>
  container: boolean
  run?: Running
  /** How often it was started: the first time the guest is fresh. */
  boots: number
}

export type Volume = {
  storage: string
  /** Absent on shared storage. */
  node?: string
  name: string
  content: string
  format: string
  sizeBytes: number
  usedBytes: number
  ctimeSeconds: number
  vmid?: number
  parent?: string
  /** Name of the blob that holds the bytes, when there are any worth keeping. */
  blob?: string
}

export type LockMode = 'shared' | 'exclusive'

export type Task = {
  upid: string
  node: string
  pid: number
  pstart: number
  startMs: number
  endMs?: number
  type: string
  id: string
  /** The whole token id, when a token called. */
  user: string
  log: string[]
  warnings: number
  exitstatus?: string
  stage: string
  dueMs: number
  data: unknown
  locks: { name: string; mode: LockMode }[]
  waiting?: { name: string; mode: LockMode; untilMs: number; failure: string }
  fault?: { exitText: string; effects: 'none' | 'all' } | { killAtMs: number }
}

/** What pvestatd last told about a guest; kept by VMID alone. */
export type RrdEntry = { atMs: number; fields: Record<string, string | number> }

export type Node = {
  name: string
  ip: string
  cpus: number
  memoryBytes: number
  rootBytes: number
  bridges: { iface: string; ports: string; cidr?: string }[]
  fingerprint: string
  clockSkewMs?: number
  certificateEndsMs?: number
  bootMs: number
  nextPid: number
  state: NodeState
  stateSinceMs: number
  stopped: Daemon[]
  /** The last round of pvestatd that was taken down, counted from 1970. */
  lastRound: number
}

export type State = {
  version: 8 | 9
  cluster?: string
  /** As `pvecm expected` sets it; else every node has a vote. */
  expectedVotes?: number | undefined
  nodes: Node[]
  storages: WorldStorage[]
  volumes: Record<string, Volume>
  vms: Record<string, Vm>
  pools: Record<string, { comment?: string; vmids: number[]; storages: string[] }>
  users: WorldUser[]
  roles: Record<string, string[]>
  acl: WorldAcl[]
  datacenter: NonNullable<World['datacenter']>
  tasks: Record<string, Task>
  rrd: Record<string, RrdEntry>
  /** VMs under HA, by number, and what each is to be. */
  ha?: Record<string, 'started' | 'stopped'>
}

/** The file of a VM as it stands in /etc/pve; its SHA-1 is the digest. Source: qemu-server QemuServer.pm write_vm_config. */
export function confText(vm: Vm): string {
  const section = (conf: Conf): string => {
    const { description, ...rest } = conf
    const comment =
      description === undefined
        ? ''
        : String(description)
            .split('\n')
            .map((line) => `#${escapeComment(line)}\n`)
            .join('')
    return (
      comment +
      Object.entries(rest)
        .sort(byKey)
        .map(([key, value]) => `${key}: ${value}\n`)
        .join('')
    )
  }
  const pending = {
    ...vm.pending.set,
    ...(vm.pending.delete.length ? { delete: vm.pending.delete.join(',') } : {}),
  }
  let text = section(vm.config)
  if (Object.keys(pending).length > 0) text += `\n[PENDING]\n${section(pending)}`
  for (const [name, conf] of Object.entries(vm.snapshots).sort(byKey)) text += `\n[${name}]\n${section(conf)}`
  return text
}

export function digestOf(vm: Vm): string {
  return createHash('sha1').update(confText(vm)).digest('hex')
}

const byKey = (a: [string, unknown], b: [string, unknown]) => (a[0] < b[0] ? -1 : 1)

/** Source: pve-common Tools.pm encode_text: control characters, `%`, `:` and everything beyond ASCII. */
function escapeComment(line: string): string {
  return [...Buffer.from(line, 'utf8')]
    .map((byte) =>
      byte < 0x20 || byte > 0x7e || byte === 0x25 || byte === 0x3a
        ? `%${byte.toString(16).toUpperCase().padStart(2, '0')}`
        : String.fromCharCode(byte),
    )
    .join('')
}

/** The key of a disk's bytes, when there are any. */
export const diskOf = ({ storage, node, name }: Volume): string => volumeKey(storage, node, name)

export function volumeKey(storage: string, node: string | undefined, name: string): string {
  return `${node ?? '*'}/${storage}:${name}`
}
