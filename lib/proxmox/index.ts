export { type Administration, createAdministration, type Grant, type TokenEntry } from './administration.ts'
export { type CallName, type CallSpec, calls, type Need } from './calls.ts'
export type { ErrorClass, ProxmoxErrorCode, ProxmoxErrorFields, Sent } from './errors.ts'
export { errorClass, isProxmoxError, ProxmoxError } from './errors.ts'
export type {
  CallLog,
  Endpoint,
  Exchange,
  Invocation,
  Proxmox,
  ProxmoxOptions,
  RawAnswer,
  RawRequest,
  Timeouts,
  TokenSource,
} from './options.ts'
export type {
  Bridge,
  Certificate,
  Change,
  Clone,
  ClusterStatus,
  Expiry,
  NodeState,
  Provider,
  RunningTask,
  Storage,
  TaskState,
  Version,
  Volume,
} from './provider.ts'
export { createProxmox } from './proxmox.ts'
export { leastOf, needsOf, type Role, rolesFor } from './roles.ts'
export type { Upid, UpidParts } from './upid.ts'
export { parseUpid } from './upid.ts'
export type {
  AgentAddress,
  AgentInterface,
  Cdrom,
  Disk,
  ListedVm,
  Look,
  Nic,
  TemplateLook,
  Vm,
  VmConfig,
  VmStatus,
} from './vm.ts'
