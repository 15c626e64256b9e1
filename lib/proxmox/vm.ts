/** A VM by where it stands. The node may change (migration), the number does not. */
export type Vm = { node: string; vmid: number }

/** `net0: virtio=AA:BB:…,bridge=vmbr0,tag=5` taken apart; `options` holds what has no field of its own. */
export type Nic = { model: string; mac: string; bridge?: string; options: Readonly<Record<string, string>> }

export type Disk = {
  slot: string
  volume: string
  sizeBytes?: number
  options: Readonly<Record<string, string>>
}

/** A cdrom drive; without `volume` it is empty. `cloudInit` marks PVE's own generated drive. */
export type Cdrom = { slot: string; volume?: string; cloudInit: boolean }

/** A VM's configuration, read. A VM in the making shows only `lock`, `digest` and a placeholder description. */
export type VmConfig = {
  name?: string
  description?: string
  lock?: string
  /** SHA-1 of the raw file: sent back with a change, the change is refused when another came first. */
  digest: string
  protection: boolean
  template: boolean
  onboot: boolean
  /** The agent is configured, which does not mean that it answers. */
  agent: boolean
  /** Lower case: Proxmox compares tags without case. */
  tags: ReadonlySet<string>
  /** Per socket, as Proxmox counts. */
  cores: number
  memoryMiB: number
  boot?: string
  net0?: Nic
  /** The first disk of the boot order, else of Proxmox's own order. */
  bootDisk?: Disk
  disks: readonly Disk[]
  cdroms: readonly Cdrom[]
  /** Every option as text, as Proxmox stores it. */
  raw: Readonly<Record<string, string>>
}

/** What is known about a VMID. Only `absent` is a proof that nothing is there. */
export type Look =
  | { kind: 'vm'; node: string; config: VmConfig }
  | { kind: 'absent' }
  /** Something holds the number, and our token may not see it. */
  | { kind: 'hidden' }
  | { kind: 'container'; node: string }
  | { kind: 'unknown'; reason: string }

/** The fields of the cluster's list that are true at once; names and states in it lag and lie. */
export type ListedVm = {
  vmid: number
  node: string
  type: 'qemu' | 'lxc'
  lock?: string
  tags: ReadonlySet<string>
  pool?: string
}

export type TemplateLook =
  | { kind: 'template'; config: VmConfig }
  | { kind: 'vm'; config: VmConfig }
  | { kind: 'missing' }
  /** Our token may clone it perhaps, but not read it. */
  | { kind: 'hidden' }

export type VmStatus = {
  /** Running as a whole: both the process and the machine inside it. */
  running: boolean
  /** QEMU's run state (`running`, `paused`, `prelaunch`, `io-error`, …) or `stopped`. */
  qmp: string
  lock?: string
}

export type AgentAddress = { address: string; family: 'ipv4' | 'ipv6'; prefix: number }

/** A network interface as the guest sees it; the MAC is in lower case. */
export type AgentInterface = { name: string; mac?: string; addresses: readonly AgentAddress[] }
