import type { Disks, Durations, GuestFactory, SimClock } from '../types.ts'
import type { Blobs } from './blobs.ts'
import type { Faults } from './faults.ts'
import type { GuestHouse } from './guests.ts'
import type { Locks } from './locks.ts'
import type { Node, State, Vm } from './state.ts'
import type { Tasks } from './tasks.ts'
import type { Workers } from './workers.ts'

/** All that a handler or a task may touch: the state, and the machinery around it. */
export type Cluster = {
  state: State
  clock: SimClock
  random: () => number
  durations: Durations
  locks: Locks
  blobs: Blobs
  faults: Faults
  guests: GuestHouse
  workers: Workers
  tasks: Tasks
  guestFactory: GuestFactory
  /** Of guests with real machines. */
  disks?: Disks
  /** The options a VM's config may have. */
  options: Set<string>
  /** A number of its own for each call that takes a lock. */
  nextCall(): number
  /** To be called before anything that pvestatd would tell changes. */
  catchUp(): void
  /** Puts the state on disk, when there is a place for it. */
  commit(): void
  closed(): boolean
  onReachability(listener: (node: string) => void): () => void
}

export function nodeOf(cluster: Cluster, name: string): Node {
  const node = cluster.state.nodes.find((candidate) => candidate.name === name)
  if (!node) throw new Error(`no such node in the simulated cluster: ${name}`)
  return node
}

/** A VM on that node; a container or one on another node is as good as none. */
export function vmOn(cluster: Cluster, node: string, vmid: number): Vm | undefined {
  const vm = cluster.state.vms[vmid]
  return vm && vm.node === node && !vm.container ? vm : undefined
}

export function poolOfVm(cluster: Cluster, vmid: number): string | undefined {
  return Object.entries(cluster.state.pools).find(([, pool]) => pool.vmids.includes(vmid))?.[0]
}

/** Whether the node may write to /etc/pve. */
export function isQuorate(cluster: Cluster, name: string): boolean {
  const { nodes, expectedVotes } = cluster.state
  if (nodeOf(cluster, name).state === 'no-quorum') return false
  return visibleFrom(cluster, name).length * 2 > (expectedVotes ?? nodes.length)
}

/** The nodes whose cluster file system talks with that of the given one. A node that hangs in its API still votes. */
export function visibleFrom(cluster: Cluster, name: string): Node[] {
  const cut = (node: Node) => node.state === 'unreachable' || node.state === 'no-quorum'
  const self = nodeOf(cluster, name)
  if (cut(self)) return [self]
  return cluster.state.nodes.filter((node) => node === self || !cut(node))
}

export const confPath = (node: string, vmid: number): string => `nodes/${node}/qemu-server/${vmid}.conf`
export const confMissing = (node: string, vmid: number): string =>
  `Configuration file '${confPath(node, vmid)}' does not exist`
export const vmLock = (vmid: number): string => `/var/lock/qemu-server/lock-${vmid}.conf`
/** File locks are per node. */
export const lockOn = (node: string, path: string): string => `${node}:${path}`
export const lockTimeout = (path: string): string => `can't lock file '${path}' - got timeout`
