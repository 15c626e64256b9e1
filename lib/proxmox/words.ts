import type { ProxmoxErrorCode, Reading } from './errors.ts'

/** Where a text was found; without `status` it is the end of a task. */
export type Where = {
  status?: number
  detail?: Readonly<Record<string, string>>
  /** For a clone, the source's VMID: a lock file of any other number is the target's. */
  cloneOf?: number
}

/**
 * Reads Proxmox's words, be they an HTTP message, a reason phrase or the end of a task. A plain `die` in
 * Proxmox's Perl is a 500 whatever it means, so the text is all there is; it is matched from its start only.
 */
export function readWords(text: string, where: Where = {}): Reading {
  const { status } = where
  const words = text.slice(0, LONGEST).trim()
  if (status === undefined || status === 500) return readText(words, where)
  if (status === 403) return readForbidden(words)
  if (status === 400) return readDetail(where)
  return { code: byStatus[status] ?? 'Unknown' }
}

/** Far longer than anything that Proxmox says. Each wrapping takes a few letters off, so this bounds how many there can be. */
const LONGEST = 4096

// AnyEvent::HTTP's 59x, which pveproxy passes on (595: not connected, so not run; the others: who knows),
// the refusals of pve-http-server AnyEvent.pm, and the gateways someone may have put in front.
const byStatus: Readonly<Record<number, ProxmoxErrorCode>> = {
  401: 'Unauthorized',
  501: 'Rejected',
  502: 'Unreachable',
  503: 'Unreachable',
  504: 'Unreachable',
  506: 'Rejected',
  595: 'Unreachable',
  596: 'Unreachable',
  597: 'Unreachable',
  598: 'Unreachable',
  599: 'Unreachable',
}

// pve-access-control RPCEnvironment.pm check, check_any; pve-guest-common GuestHelpers.pm for tags.
function readForbidden(text: string): Reading {
  // A path without a privilege: the pool itself is not there.
  const pool = /^Permission check failed \(pool '([\w./-]+)' does not exist\)/.exec(text)?.[1]
  if (pool !== undefined) return { code: 'Forbidden', path: `/pool/${pool}` }
  const match = /^Permission check failed \((\/[\w./@!-]*), ([A-Za-z.|]+)/.exec(text)
  if (!match) return { code: 'Forbidden' }
  const [, path = '', privilege = ''] = match
  return { code: 'Forbidden', path, privilege }
}

// pve-common Exception.pm raise_param_exc: handlers use the same 400 for what the world refuses, so each
// parameter's text is read too. A 400 without any is not about parameters: pveproxy makes it of every
// message with a carriage return in its first line (AnyEvent.pm), and thereby of any error at all.
function readDetail({ detail = {} }: Where): Reading {
  const texts = Object.values(detail)
  if (texts.length === 0) return { code: 'Unknown' }
  for (const text of texts) {
    const reading = readWords(text)
    if (reading.code !== 'Unknown') return reading
  }
  return { code: 'Rejected' }
}

function readText(text: string, where: Where): Reading {
  // pve-common RESTHandler.pm flattens an exception inside a task to `<status> <message>`.
  const flattened = /^([45]\d\d) (.*)$/s.exec(text)
  if (flattened) return readFlattened(Number(flattened[1]), flattened[2] ?? '', where)
  const inner = wrappings.map((wrapping) => wrapping.exec(text)?.[1]).find((found) => found !== undefined)
  if (inner !== undefined) return readText(inner, where)
  for (const [pattern, code, field] of phrases) {
    const match = pattern.exec(text)
    if (match)
      return field && match[1] !== undefined ? { code, [field]: match[1] } : refine(code, match, where)
  }
  return { code: 'Unknown' }
}

function readFlattened(status: number, text: string, where: Where): Reading {
  if (status === 400) return { code: 'Rejected' }
  return readWords(text, { ...where, status })
}

// qemu-server Qemu.pm clone_vm locks source and target; losing the target's lock means that someone else makes it.
function refine(code: ProxmoxErrorCode, match: RegExpExecArray, { cloneOf }: Where): Reading {
  const locked =
    code === 'Locked' ? /^\/var\/lock\/qemu-server\/lock-(\d+)\.conf$/.exec(match[1] ?? '') : null
  const othersLock = cloneOf !== undefined && locked !== null && Number(locked[1]) !== cloneOf
  return { code: othersLock ? 'AlreadyExists' : code }
}

// Texts that say where it happened before they say what: Qemu.pm clone_vm, pve-storage Status.pm upload,
// pve-guest-common AbstractConfig.pm, pve-access-control for the pool at a clone's end.
const wrappings: readonly RegExp[] = [
  /^clone failed: (.*)$/s,
  /^copy failed: (.*)$/s,
  /^import failed: (.*)$/s,
  /^unable to apply pending change \S+ : (.*)$/s,
  /^can't add VM \d+ to pool '[^']*': (.*)$/s,
]

type Phrase = readonly [RegExp, ProxmoxErrorCode, field?: 'lock' | 'volume']

const phrases: readonly Phrase[] = [
  // AbstractConfig.pm load_config, lock; QemuConfig.pm; Qemu.pm: find_vmid's text is the second.
  [/^Configuration file 'nodes\/[^']+\/qemu-server\/\d+\.conf' does not exist/, 'VmMissing'],
  [/^unable to find configuration file for VM \d+ on node '/, 'VmMissing'],
  [/^VM is locked \(([^)]*)\)/, 'VmLocked', 'lock'],
  [/^checksum mis{1,2}match \(file change by other user\?\)/, 'DigestMismatch'],

  // Who holds a VMID: Qemu.pm, Cluster.pm nextid, pmxcfs memdb.c through AtomicFile.
  [/^unable to create VM \d+: config file already exists/, 'AlreadyExists'],
  [/^VM \d+ already exists/, 'AlreadyExists'],
  [/^close \(rename\) atomic file '\/etc\/pve\/[^']*' failed: File exists/, 'AlreadyExists'],

  // Power and destruction: QemuServer.pm vm_start, vm_stop; Qemu.pm destroy_vm.
  [/^VM \d+ already running/, 'AlreadyRunning'],
  [/^VM \d+ (?:is )?not running/, 'NotRunning'],
  [/^VM \d+ is running - destroy failed/, 'Running'],
  [/^can't remove (?:VM \d+|drive '[^']*') - protection mode enabled/, 'Protected'],
  [/^base volume '[^']*' is still in use by linked clone/, 'InUse'],

  // Locks and quorum: pve-common Tools.pm lock_file, pve-cluster Cluster.pm cfs_lock, check_cfs_quorum.
  [/^can't lock file '([^']*)' - /, 'Locked'],
  [/^cfs-lock '[^']*' error: no quorum!/, 'NoQuorum'],
  [/^cfs-lock '[^']*' error: pve cluster filesystem not online/, 'NoQuorum'],
  [/^cfs-lock '[^']*' error: /, 'Locked'],
  [/^'storage-[^']*'-locked command timed out/, 'Locked'],
  [/^cluster not ready - no quorum\?/, 'NoQuorum'],
  [/^unable to open file '\/etc\/pve\/[^']*' - Permission denied/, 'NoQuorum'],

  // Tasks: pve-common RESTEnvironment.pm fork_worker, Tools.pm upid_read_status; pve-manager Tasks.pm.
  [/^got no worker upid/, 'NoWorker'],
  [/^starting worker failed/, 'NoWorker'],
  [/^unable to fork worker/, 'NoWorker'],
  [/^unexpected status$/, 'TaskLost'],
  [/^unable to get last line from task log/, 'TaskLost'],
  [/^no such task$/, 'NoSuchTask'],

  // Space: what the tools say, the last two being LVM's and ZFS's.
  [/^write to temporary file failed - No space left on device/, 'NoSpace'],
  [/^(?:cp|mkdir|unlink|qemu-img)\b[^\n]*: No space left on device/, 'NoSpace'],
  [/^lvcreate '[^']*' error: .*insufficient free space/s, 'NoSpace'],
  [/^zfs error: .*: out of space/s, 'NoSpace'],

  // Storages that cannot be used now …: pve-storage Storage.pm, Storage/DirPlugin.pm, and a file system gone read-only.
  [/^unable to activate storage '/, 'StorageOffline'],
  [/^can't activate storage '/, 'StorageOffline'],
  [/^storage '[^']*' is (?:not online|disabled)/, 'StorageOffline'],
  [/^(?:cp|mkdir|unlink)\b[^\n]*: ?Read-only file system/, 'StorageOffline'],
  [/^unlink '[^']*' failed - Read-only file system/, 'StorageOffline'],
  // … and storages that cannot serve at all.
  [/^storage '[^']*' (?:does not exist|is not available on node|does not support )/, 'UnsupportedStorage'],
  [/^No such storage\./, 'UnsupportedStorage'],
  [/^can't upload to storage type '/, 'UnsupportedStorage'],
  [/^can't clone (?:to non-shared storage|VM to node) '/, 'UnsupportedStorage'],
  [/^(?:Full|Linked) clone feature is not supported for /, 'TemplateProblem'],
  [/^you can't start a vm if it's a template/, 'TemplateProblem'],

  // Volumes: Storage.pm, Storage/Plugin.pm; Status.pm upload for the checksum.
  [/^volume '([^']*)' does not exist/, 'VolumeMissing', 'volume'],
  [/^volume (\S+) does not exist/, 'VolumeMissing', 'volume'],
  [/^volume_size_info on '([^']*)' failed/, 'VolumeMissing', 'volume'],
  [/^checksum mismatch: got '/, 'UploadCorrupt'],
  // A cloud-init drive has a name of its own, disks take the next free one: alloc_image of Plugin.pm, LVMPlugin.pm, ZFSPoolPlugin.pm, RBDPlugin.pm.
  [/^disk image '([^']*)' already exists/, 'VolumeExists', 'volume'],
  [/^lvcreate '([^']*)' error: .*already exists in volume group/s, 'VolumeExists', 'volume'],
  [/^zfs error: cannot create '([^']*)': dataset already exists/, 'VolumeExists', 'volume'],
  [/^rbd create '([^']*)' error: .*\(17\) File exists/s, 'VolumeExists', 'volume'],

  // The guest agent: Qemu/Agent.pm, QMPClient.pm (9 says qga where 8 says qmp).
  [/^No QEMU guest agent configured/i, 'AgentOff'],
  [/^QEMU guest agent is not running/i, 'AgentSilent'],
  [/^VM \d+ q(?:ga|mp) command 'guest-[^']*' failed - /, 'AgentSilent'],
  [/^unable to open monitor socket/, 'AgentSilent'],

  // Programs on the host: Tools.pm run_command; QemuServer.pm.
  [/^interrupted by signal/, 'Interrupted'],
  [/^command '.*' failed: (?:interrupted by signal|got signal \d+)/s, 'Interrupted'],
  [/^command '.*' failed: /s, 'CommandFailed'],
  [/^start failed: /, 'CommandFailed'],
  [/^mirroring error: /, 'CommandFailed'],
  [/^VM quit\/powerdown failed/, 'CommandFailed'],

  // Other nodes: pve-cluster Cluster.pm remote_node_ip, HTTPServer.pm.
  [/^hostname lookup '[^']*' failed/, 'NodeUnknown'],
  [/^proxy loop detected/, 'Unreachable'],

  // Requests that are wrong in themselves, though Proxmox says 500.
  [/^no options specified/, 'Rejected'],
  [/^only root can /, 'Rejected'],
  [/^parameter '[^']*' not allowed for linked clones/, 'Rejected'],
  [/^no such cluster node '/, 'Rejected'],
  [/^no such file '/, 'Rejected'],
  [/^(?:snapshot|disk|pool) '[^']*' does not exist/, 'Rejected'],
  [/^shrinking disks is not supported/, 'Rejected'],
  [/^you can't resize a cdrom/, 'Rejected'],
  [/^invalid bootorder: /, 'Rejected'],
  [/^unable to parse (?:directory )?volume name '/, 'Rejected'],
  [/^unable to parse worker upid/, 'Rejected'],
  [/^unable to remove VM \d+ - used in HA resources/, 'Rejected'],
  [/^There is a replication job '/, 'Rejected'],
  [/^SSH public key validation error/, 'Rejected'],
  [/^malformed JSON string/, 'Rejected'],
  [/^upload failed at /, 'Rejected'],
  [/^wrong (?:field name|Content-Disposition) '/, 'Rejected'],
]
