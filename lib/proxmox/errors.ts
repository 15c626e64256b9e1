/** What went wrong, as a closed list. Match on this, never on a message. Source: words.ts and transport.ts, which alone choose it. */
export type ProxmoxErrorCode =
  | 'Unreachable' // no answer that can be believed: refused, cut, timed out, 595 to 599, a gateway's 502 to 504
  | 'Untrusted' // the endpoint's certificate is not the one we were told to trust
  | 'Aborted' // the caller's signal fired or its time for changes is over
  | 'Locked' // a lock file, cfs lock or storage lock timed out
  | 'VmLocked' // `VM is locked (x)`: see `lock`
  | 'NoQuorum'
  | 'StorageOffline' // not mounted, not online, disabled, read-only
  | 'NoWorker' // pvedaemon could not fork the task
  | 'NoSpace'
  | 'NodeUnknown' // the cluster does not (or not yet) know an address for the node
  | 'CommandFailed' // a program on the host failed: QEMU, qemu-img, cp
  | 'Unauthorized'
  | 'Forbidden' // see `privilege` and `path`
  | 'Rejected' // the request itself is wrong: see `detail`
  | 'VmMissing' // no such VM on that node; it may be on another
  | 'AlreadyExists' // the VMID is taken, or being taken by someone else's clone
  | 'AlreadyRunning'
  | 'NotRunning'
  | 'Running' // a running VM cannot be destroyed
  | 'Protected'
  | 'InUse' // a base volume that linked clones still need
  | 'DigestMismatch'
  | 'VolumeMissing'
  | 'VolumeExists' // a left-over volume has the name that a new one must have
  | 'UploadCorrupt' // what arrived is not what was sent
  | 'TaskLost' // the worker was killed: look at the VM
  | 'NoSuchTask'
  | 'Interrupted' // the task was told to stop
  | 'AgentSilent'
  | 'AgentError' // the agent answered, but with an error
  | 'AgentOff' // the VM has no agent configured
  | 'UnsupportedStorage' // the storage is unknown here, or cannot hold or clone such a volume
  | 'TemplateProblem'
  | 'Unexpected' // an answer of another shape
  | 'Unknown'

export type ErrorClass = 'transient' | 'permanent' | 'wait'

/** What a caller does about a code: try again, tell a person, or wait without counting it as a failure. */
export const errorClass: Readonly<Record<ProxmoxErrorCode, ErrorClass>> = {
  Unreachable: 'transient',
  Untrusted: 'transient',
  Aborted: 'transient',
  Locked: 'transient',
  VmLocked: 'wait',
  NoQuorum: 'transient',
  StorageOffline: 'transient',
  NoWorker: 'transient',
  NoSpace: 'transient',
  NodeUnknown: 'transient',
  CommandFailed: 'transient',
  Unauthorized: 'transient',
  Forbidden: 'permanent',
  Rejected: 'permanent',
  // The next six mean that the world moved on: the step that is run again looks first.
  VmMissing: 'transient',
  AlreadyExists: 'transient',
  AlreadyRunning: 'transient',
  NotRunning: 'transient',
  Running: 'transient',
  DigestMismatch: 'transient',
  Protected: 'permanent',
  InUse: 'permanent',
  VolumeMissing: 'transient',
  VolumeExists: 'transient',
  UploadCorrupt: 'transient',
  TaskLost: 'transient',
  NoSuchTask: 'transient',
  Interrupted: 'transient',
  AgentSilent: 'wait',
  AgentError: 'wait',
  AgentOff: 'permanent',
  UnsupportedStorage: 'permanent',
  TemplateProblem: 'permanent',
  Unexpected: 'transient',
  Unknown: 'transient',
}

/** Whether the request reached the code that carries it out: surely not, perhaps, or surely (it answered). */
export type Sent = 'no' | 'maybe' | 'yes'

/** What one reading of Proxmox's words yields. */
export type Reading = {
  code: ProxmoxErrorCode
  lock?: string
  privilege?: string
  path?: string
  volume?: string
}

export type ProxmoxErrorFields = Reading & {
  /** Method and path template, such as `POST /nodes/{node}/qemu/{vmid}/clone`. */
  call: string
  node?: string
  vmid?: number
  /** HTTP status; absent when there was no answer, and for the end of a task. */
  status?: number
  /** Which token was refused, `user@realm!name`: the name of it, not its secret. */
  tokenId?: string
  /** Proxmox's messages by parameter. */
  detail?: Readonly<Record<string, string>>
  sent: Sent
  /** A call that changes something may still run although we were told that it failed, or told nothing. */
  ambiguous: boolean
  cause?: unknown
}

/** The only error this room throws. Holds no secret: neither token nor form values enter it. */
export class ProxmoxError extends Error {
  override readonly name = 'ProxmoxError'
  declare readonly code: ProxmoxErrorCode
  declare readonly call: string
  declare readonly node?: string
  /** The VM that was called; for a clone, its source. */
  declare readonly vmid?: number
  declare readonly status?: number
  declare readonly detail?: Readonly<Record<string, string>>
  /** For VmLocked: Proxmox's lock kind (`clone`, `backup`, …). */
  declare readonly lock?: string
  /** For Forbidden: the privilege that is missing (`A|B` = any of them) … */
  declare readonly privilege?: string
  /** … and the ACL path it is missing on. */
  declare readonly path?: string
  /** … and by whom, `user@realm!name`; for Unauthorized too. */
  declare readonly tokenId?: string
  /** For VolumeMissing the volume, `storage:path`; for VolumeExists as its storage names it. */
  declare readonly volume?: string
  declare readonly sent: Sent
  declare readonly ambiguous: boolean

  constructor(message: string, { cause, ...fields }: ProxmoxErrorFields) {
    super(message, cause === undefined ? undefined : { cause })
    Object.assign(this, fields)
  }

  get class(): ErrorClass {
    return errorClass[this.code]
  }
}

/** True for a ProxmoxError, and when codes are given, for one of those. */
export function isProxmoxError(error: unknown, ...codes: ProxmoxErrorCode[]): error is ProxmoxError {
  return error instanceof ProxmoxError && (codes.length === 0 || codes.includes(error.code))
}
