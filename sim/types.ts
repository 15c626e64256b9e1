/** The words shared by the rooms of the simulator: its front, its engine and its guests. */

/** One HTTP request as it reaches pveproxy of a node. `path` with its query; header names in lower case; `body` the raw bytes. */
export type SimRequest = {
  method: string
  path: string
  headers: Record<string, string>
  body?: Uint8Array
}

/** What pveproxy sends back: the status line, the headers as sent, and the body as text. */
export type SimAnswer = {
  status: number
  reason: string
  headers: Record<string, string>
  body: string
}

/** The connection itself failed. `code` is Node's (ECONNREFUSED, ECONNRESET, EHOSTUNREACH, ETIMEDOUT); `sent`: the request had reached the server. */
export class SimConnectionError extends Error {
  code: string
  sent: boolean
  constructor(code: string, sent: boolean, message = code) {
    super(message)
    this.name = 'SimConnectionError'
    this.code = code
    this.sent = sent
  }
}

export type ParamValue = string | number | boolean | string[]

/** Front → engine: a decoded request. `path` is below /api2/json, its segments still escaped; `params` are query over body. */
export type EngineCall = {
  node: string
  method: string
  path: string
  params: Record<string, ParamValue>
  authorization?: string
  cookie?: string
  upload?: { filename: string; bytes: Uint8Array }
}

/** Engine → front. `message` carries all its lines; `reason` overrides the first line of it; `emptyBody`: made before the formatter. */
export type EngineResult = {
  status: number
  data?: unknown
  total?: number
  message?: string
  errors?: Record<string, string>
  reason?: string
  emptyBody?: boolean
  close?: boolean
}

export type Engine = {
  /** Authentication and everything after it. Rejects with SimConnectionError when the node itself cannot be reached. */
  call(call: EngineCall): Promise<EngineResult>
  /** What pveproxy checks of an upload once its headers are there: a 401 or 403 before the body is read, else undefined. */
  precheckUpload(call: EngineCall): Promise<EngineResult | undefined>
  /** Whether pveproxy of that node can be reached; the front closes or mutes its port by it. */
  reachability(node: string): 'up' | 'down' | 'unreachable' | 'hung'
  /** Told after each change of a node's reachability. Returns the function that ends it. */
  onReachability(listener: (node: string) => void): () => void
  nodes(): string[]
  version: 8 | 9
  clock: SimClock
}

export type SimClock = {
  /** Milliseconds since 1970. */
  now(): number
  sleep(ms: number): Promise<void>
  /** Runs `what` once, so long from now. Returns the function that calls it off. */
  after(ms: number, what: () => void): () => void
}

export type VirtualClock = SimClock & {
  /** Runs everything due within the next `ms`, in order. */
  advance(ms: number): Promise<void>
  /** Jumps from sleeper to sleeper until none is left or `limitMs` has gone by. */
  runUntilIdle(limitMs?: number): Promise<void>
  /** Advances until the promise is settled, and returns it. */
  until<T>(promise: Promise<T>, limitMs?: number): Promise<T>
}

/** Engine → guest: `cdroms` are the bytes of the attached images in slot order. */
export type GuestSpec = {
  vmid: number
  node: string
  name: string
  mac: string
  bridge: string
  cdroms: Uint8Array[]
  memoryMiB: number
  cores: number
  /** Keys of its disks, as `Disks` knows them, the one to boot from first. */
  disks: string[]
  firstBoot: boolean
  agentEnabled: boolean
}

export type AgentAddress = { 'ip-address': string; 'ip-address-type': 'ipv4' | 'ipv6'; prefix: number }

export type AgentInterface = {
  name: string
  'hardware-address'?: string
  'ip-addresses'?: AgentAddress[]
  statistics?: Record<string, number>
}

/**
 * `undefined` from `interfaces`: booting, or no agent. An error stands for what the agent itself refuses inside a 200. What is
 * optional, only a guest with a real machine below it has.
 */
export type Guest = {
  interfaces(): AgentInterface[] | undefined
  close(): Promise<void>
  /** What the agent itself answers to a question without arguments; `undefined`: nothing, in time. */
  ask?(command: string): Promise<unknown>
  /** QEMU's own name for the state it is in. */
  qmpstatus?(): string
  /** Asks the guest to shut down, which it does or not. */
  shutDown?(): Promise<void>
  /** Grows a disk while the guest runs. */
  resize?(disk: string, bytes: number): Promise<void>
  /** Resolves when the machine is off, whoever did it. */
  ended?: Promise<void>
}

/** Where the bytes of disks lie, when there are any. Each call is done when it returns, as a stage of a task is one change. */
export type Disks = {
  /** A template's disk, that the world begins with. */
  begin(disk: string): void
  clone(disk: string, of: string, how: 'linked' | 'full'): void
  resize(disk: string, bytes: number): void
  remove(disk: string): void
}

export type GuestFactory = (spec: GuestSpec) => Promise<Guest>

/** The world as it is before the first request: plain JSON. */
export type World = {
  version: 8 | 9
  /** Without a name the nodes are not clustered (there may then be one only). */
  cluster?: string
  nodes: WorldNode[]
  storages: WorldStorage[]
  volumes?: WorldVolume[]
  vms?: WorldVm[]
  pools?: { poolid: string; comment?: string }[]
  users?: WorldUser[]
  /** Own roles beside the built-in ones. */
  roles?: Record<string, string[]>
  acl?: WorldAcl[]
  datacenter?: {
    nextId?: { lower?: number; upper?: number }
    tagStyle?: { caseSensitive?: boolean; ordering?: 'config' | 'alphabetical' }
    registeredTags?: string[]
    userTagAccess?: 'free' | 'existing' | 'list' | 'none'
  }
}

export type WorldNode = {
  name: string
  ip?: string
  cpus?: number
  memoryMiB?: number
  rootGiB?: number
  /** How long it is up already; pvestatd makes its rounds of 10 s from then on. */
  uptimeSeconds?: number
  bridges?: { iface: string; ports?: string; cidr?: string }[]
  fingerprint?: string
  /** By how much its own clock is ahead. */
  clockSkewMs?: number
  /** When its certificate ends, in ms since 1970. */
  certificateEndsMs?: number
}

export type WorldStorage = {
  storage: string
  type: 'dir' | 'nfs' | 'lvmthin' | 'lvm' | 'rbd'
  path?: string
  vgname?: string
  thinpool?: string
  content: string[]
  /** One place for all nodes; else each node has its own. */
  shared?: boolean
  nodes?: string[]
  disable?: boolean
  totalBytes?: number
  /** The activation fails, with this text. */
  offline?: string
  /** … on these nodes alone. */
  offlineOn?: string[]
  readOnly?: boolean
  pool?: string
}

export type WorldVolume = {
  storage: string
  node?: string
  /** As in a volume id, after the colon: `iso/x.iso`, `9000/base-9000-disk-0.qcow2`. */
  name: string
  sizeBytes: number
  usedBytes?: number
  parent?: string
  vmid?: number
  format?: string
  /** Base64 of the bytes, for images a guest reads. */
  content?: string
  ctimeSeconds?: number
}

export type WorldVm = {
  vmid: number
  node: string
  /** Raw options as they stand in the file (description without the leading #). */
  config: Record<string, string | number>
  /** Snapshot sections, by name. */
  snapshots?: Record<string, Record<string, string | number>>
  pool?: string
  running?: boolean
  /** A container instead of a VM: only its number and name count. */
  container?: boolean
}

export type WorldUser = {
  userid: string
  enabled?: boolean
  expireSeconds?: number
  /** Value of a PVEAuthCookie that stands for a login. */
  ticket?: string
  tokens?: { id: string; secret: string; privsep?: boolean; expireSeconds?: number; comment?: string }[]
}

export type WorldAcl = { path: string; ugid: string; role: string; propagate?: boolean }

/** How long things take, in ms. */
export type Durations = {
  /** A full clone of one disk, or per GiB of it when `clonePerGiBMs` is above zero. */
  cloneMs: number
  clonePerGiBMs: number
  linkedCloneMs: number
  /** How long an allocation holds the storage lock. */
  storageLockMs: number
  uploadMs: number
  deleteVolumeMs: number
  startMs: number
  stopMs: number
  shutdownMs: number
  destroyMs: number
  resizeMs: number
  configMs: number
  /** From forking a worker until it runs. */
  forkMs: number
}

export type Daemon = 'pveproxy' | 'pvedaemon' | 'pvestatd'

export type NodeState = 'up' | 'down' | 'unreachable' | 'hung' | 'no-quorum'

export type FaultAnswer = {
  status: number
  reason?: string
  message?: string
  errors?: Record<string, string>
  data?: unknown
}

/** What goes wrong, where and how often. The first rule that matches a call wins. */
export type FaultRule = {
  id?: string
  match: {
    method?: string
    /** Source of a RegExp over the path below /api2/json. */
    path?: string
    /** The node that received the request. */
    node?: string
    /** Source of a RegExp over the parameters as JSON. */
    params?: string
    /** For task faults: type and id of the task. */
    taskType?: string
    taskId?: string
  }
  /** Lets so many matching calls pass first. */
  skip?: number
  /** How often it strikes; for ever without. */
  times?: number
  effect:
    | {
        kind: 'answer'
        answer: FaultAnswer /** The call runs all the same, so long after the answer. */
        runAfterMs?: number /** How long the answer takes. */
        afterMs?: number
      }
    | { kind: 'connection'; code: string; sent: boolean; runAfterMs?: number; afterMs?: number }
    | { kind: 'delay'; ms: number }
    | { kind: 'hang' /** The call runs, only its answer never comes. */; run?: boolean }
    | {
        kind: 'taskFails'
        exitText: string /** `none`: fails before doing anything; `all`: after everything was done. */
        effects: 'none' | 'all'
      }
    | { kind: 'taskKilled' /** So long after it began. */; afterMs: number }
    | { kind: 'agentError'; error: { class: string; desc: string } }
    | { kind: 'agentHangs' }
}

export type SimVm = {
  vmid: number
  node: string
  name?: string
  config: Record<string, string | number>
  running: boolean
  qmpstatus: string
  pool?: string
  lock?: string
  template: boolean
}

export type SimVolume = {
  volid: string
  storage: string
  node?: string
  name: string
  sizeBytes: number
  vmid?: number
  content: string
  format: string
}

export type SimTask = {
  upid: string
  node: string
  type: string
  id: string
  user: string
  status: 'running' | 'stopped'
  exitstatus?: string
  startMs: number
  endMs?: number
  log: string[]
}

export type SimCall = {
  atMs: number
  node: string
  method: string
  path: string
  status?: number
  tookMs?: number
  connection?: string
  fault?: string
}

export type SimOptions = {
  world: World
  /** Where all state lives on disk; a simulator opened again there goes on. */
  stateDir?: string
  /** On reopening: the hosts were reset, running tasks are dead. */
  hostReset?: boolean
  clock?: SimClock
  guests?: GuestFactory
  /** For guests that boot from real disks. */
  disks?: Disks
  durations?: Partial<Durations>
  random?: () => number
}

/** What a command said, and the task that it began, which goes on. */
export type ShellResult = { exitCode: number; stdout: string; stderr: string; upid?: string }

export type Sim = {
  /** The door without sockets. Rejects with SimConnectionError. */
  request(node: string, request: SimRequest): Promise<SimAnswer>
  listen(options?: {
    host?: string
    ports?: Record<string, number>
  }): Promise<{ endpoints: { node: string; url: string; fingerprint: string }[]; ca: string }>
  faults: {
    add(rule: FaultRule): string
    remove(id: string): void
    list(): (FaultRule & { id: string; struck: number })[]
    clear(): void
  }
  nodes(): { name: string; state: NodeState }[]
  setNode(name: string, state: NodeState): void
  /** Stops or starts one daemon of a node. */
  setDaemon(node: string, daemon: Daemon, running: boolean): void
  /** Takes a storage away, with the text its activation fails with, on every node or on some, or brings it back. */
  setStorage(storage: string, state: { offline?: string; on?: string[] }): void
  /** Ends a worker process: TERM lets it clean up, KILL does not; `tool` hits the copying program only, with SIGKILL or that signal. */
  killTask(upid: string, how: 'TERM' | 'KILL' | 'tool', signal?: number): void
  /** What a guest factory keeps of no VM: puts a state of QEMU (`io-error`, `paused`, …) on a running one. */
  setQemu(vmid: number, qmpstatus: string): void
  hostReset(name: string): void
  /** `qm` as root of a host would type it, without the word `qm`. */
  qm(node: string, argv: string[]): ShellResult
  /** The same for whatever program, its name first. */
  root(node: string, argv: string[]): ShellResult
  vms(): SimVm[]
  volumes(): SimVolume[]
  tasks(): SimTask[]
  /** The last requests seen, a bounded list. */
  calls(): SimCall[]
  clock: SimClock
  version: 8 | 9
  close(): Promise<void>
}
