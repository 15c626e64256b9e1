import type { Api } from './api.ts'
import type { ProxmoxError } from './errors.ts'
import { createFinder } from './finder.ts'
import { createInspection } from './inspection.ts'
import { createMachines } from './machines.ts'
import { createProveHolding, readClusterStatus } from './quorum.ts'
import { createTasks } from './tasks.ts'
import type { Upid } from './upid.ts'
import type { AgentInterface, ListedVm, Look, TemplateLook, Vm, VmStatus } from './vm.ts'
import { createVolumes } from './volumes.ts'

export type Volume = {
  /** `storage:path`, as drives name it. */
  volid: string
  content: string
  format: string
  sizeBytes: number
  vmid?: number
}

export type Storage = {
  storage: string
  type: string
  content: ReadonlySet<string>
  enabled: boolean
  active: boolean
  shared: boolean
  totalBytes: number
  availableBytes: number
}

export type RunningTask = { upid: Upid; node: string; type: string; id: string; startedAtMs: number }

/** Where a task stands. A failed one carries its error; a node that does not answer throws instead. */
export type TaskState =
  | { running: true }
  | { running: false; ok: true; warnings: number }
  | { running: false; ok: false; error: ProxmoxError }

export type Clone = {
  template: Vm
  vmid: number
  name: string
  description: string
  pool?: string
  full: boolean
  /** Only sent for a full clone: Proxmox refuses both for a linked one. */
  storage?: string
  format?: 'raw' | 'qcow2' | 'vmdk'
}

export type Change = {
  set?: Readonly<Record<string, string | number | boolean>>
  delete?: readonly string[]
  /** Of the configuration the change was made from. */
  digest?: string
}

export type ClusterStatus = {
  /** False for a node that stands alone, which is its own quorum. */
  clustered: boolean
  quorate: boolean
  nodes: readonly NodeState[]
}

export type NodeState = { name: string; online: boolean }

export type Version = { version: string; major: number }

/** `vnet`: of the software-defined network, so in a zone of its own. */
export type Bridge = { name: string; vnet: boolean; active: boolean }

/** A certificate that a node keeps, by the name of its file: `pveproxy-ssl.pem` is served where there is one, else `pve-ssl.pem`. */
export type Certificate = { file: string; fingerprint?: string; expiresAtMs?: number }

/** When a token ends, or its user; absent is never. */
export type Expiry = { tokenAtMs?: number; userAtMs?: number }

/** Proxmox in the steps' language. Whatever Proxmox or the way to it does wrong is thrown as a ProxmoxError. */
export type Provider = {
  /** Where the cluster's list shows the VMID. Not being there proves nothing: what we may not see is left out. */
  locate(vmid: number): Promise<ListedVm | undefined>
  /** Every VM and container that the token may see. */
  listVms(): Promise<ListedVm[]>
  /**
   * What is at the VMID, wherever it is now: read at the node last known, followed when it moved. Who expects nothing there
   * gets the proof of it first: the same proof, and the configuration is not asked for in vain.
   */
  look(at: Vm, expecting?: 'nothing'): Promise<Look>
  /** True when nothing in the cluster holds the VMID, proven at a quorate endpoint. @throws {ProxmoxError} NoQuorum */
  isFree(vmid: number): Promise<boolean>
  nodesOnline(): Promise<string[]>
  /** Every node of the cluster, as the endpoint that was asked sees it. */
  nodes(): Promise<NodeState[]>
  templateAt(node: string, vmid: number): Promise<TemplateLook>
  /** Disk volumes on the storage that carry the VMID, referenced by a configuration or not. */
  volumesOf(at: { node: string; storage: string; vmid: number }): Promise<Volume[]>
  /** Disk volumes of all VMs on the storage. Without Datastore.Allocate there, those of VMs we may not change are left out. */
  disks(at: { node: string; storage: string }): Promise<Volume[]>
  isos(at: { node: string; storage: string }): Promise<Volume[]>
  storages(node: string): Promise<Storage[]>

  /**
   * Starts a clone; a repetition to the same VMID is refused by Proxmox. Until the task has begun its work, the number
   * still counts as free. @throws {ProxmoxError} AlreadyExists; VmMissing for the template
   */
  clone(clone: Clone): Promise<Upid>
  /** @throws {ProxmoxError} NoSuchTask; Unreachable when the task's node is down */
  task(upid: Upid): Promise<TaskState>
  /** Tells a task to stop; one that has ended is left alone, and so is one of a token that was replaced since. */
  cancel(upid: Upid): Promise<void>
  /** Tasks of our token that run on the node. */
  runningTasks(filter: { node: string; vmid?: number; type?: string }): Promise<RunningTask[]>

  /**
   * Puts an ISO on the storage, over one of the same name. The task runs on the node that took the upload. `secrets` are the
   * parts of the file that no error may quote.
   */
  upload(file: {
    node: string
    storage: string
    filename: string
    bytes: Uint8Array
    secrets?: readonly string[]
  }): Promise<Upid>
  /** Deletes a volume; one that is gone already is no error. Undefined when it was done at once. */
  deleteVolume(at: { node: string; storage: string; volume: string }): Promise<Upid | undefined>

  /** Changes options at once; of a request that failed a part may be done, so read again. @throws {ProxmoxError} DigestMismatch, VmLocked */
  configure(vm: Vm, change: Change): Promise<void>
  /** Grows a disk to an absolute size. Undefined on PVE 7, where it is done at once. */
  resize(vm: Vm, to: { disk: string; bytes: number; digest?: string }): Promise<Upid | undefined>
  status(vm: Vm): Promise<VmStatus>
  /** The same, at the node last known; undefined where the VM is not plainly to be seen there, so that one has to look for it. */
  glance(vm: Vm): Promise<VmStatus | undefined>
  /** Starting a running VM ends in the task with AlreadyRunning. */
  start(vm: Vm): Promise<Upid>
  /** Pulls the plug. Stopping a stopped VM is a task that ends well. */
  stop(vm: Vm): Promise<Upid>
  /** @throws {ProxmoxError} Running, Protected, VmMissing */
  destroy(vm: Vm, options: { unreferencedDisks: boolean }): Promise<Upid>
  /** The guest's own view of its interfaces. @throws {ProxmoxError} AgentSilent, AgentError, AgentOff, NotRunning */
  interfaces(vm: Vm): Promise<AgentInterface[]>

  version(): Promise<Version>
  /** Privileges our token holds on an ACL path. */
  permissions(path: string): Promise<ReadonlySet<string>>
  clusterStatus(): Promise<ClusterStatus>
  /** Undefined when the token may not see it. */
  expiryOf(tokenId: string): Promise<Expiry | undefined>
  /** @throws {ProxmoxError} Forbidden for a pool that is there and may not be seen */
  hasPool(pool: string): Promise<boolean>
  /** The node's own clock, in whole seconds as epoch milliseconds. @throws {ProxmoxError} Forbidden */
  clockOf(node: string): Promise<number>
  /** Those that the token may use or see. */
  bridgesOf(node: string): Promise<Bridge[]>
  certificatesOf(node: string): Promise<Certificate[]>
}

/**
 * The provider over one set of calls; `doors` are the same calls, each bound to one endpoint. What `proveHolding` learns of
 * the token outlasts an invocation when it is given.
 */
export function createProvider(
  api: Api,
  doors: () => readonly Api[],
  proveHolding = createProveHolding(),
): Provider {
  const nodes = async () =>
    (await api.nodes()).map(({ node, status }) => ({ name: node, online: status === 'online' }))
  return {
    ...createFinder(api, doors, proveHolding),
    ...createTasks(api),
    ...createVolumes(api),
    ...createMachines(api),
    ...createInspection(api),
    nodesOnline: async () => (await nodes()).filter(({ online }) => online).map(({ name }) => name),
    nodes,
    version: async () => {
      const { version } = await api.version()
      return { version, major: Number.parseInt(version, 10) }
    },
    permissions: async (path) => new Set(Object.keys((await api.permissions({ path }))[path] ?? {})),
    clusterStatus: async () => readClusterStatus(await api.clusterStatus()),
  }
}
