import type { ProxmoxErrorCode } from './errors.ts'
import type { Provider } from './provider.ts'
import type { Upid } from './upid.ts'

/** One door to the cluster: a node's pveproxy, `https://pve1.example:8006`. */
export type Endpoint = {
  url: string
  /** The node it is; lets calls for that node go straight there. */
  node?: string
  /** SHA-256 of its certificate, with or without colons. Then no CA is asked. */
  fingerprint?: string
}

/** Hands out API tokens (`user@realm!id=secret`), best first. `fresh` means: not from a cache, the last one was refused. */
export type TokenSource = { get(options?: { fresh?: boolean }): Promise<readonly string[]> }

export type RawRequest = {
  method: string
  path: string
  headers: Readonly<Record<string, string>>
  body?: Uint8Array
  signal: AbortSignal
  timeoutMs: number
  maxBodyBytes: number
}

export type RawAnswer = {
  status: number
  reason: string
  headers: Readonly<Record<string, string>>
  body: string
}

/** Carries one request to one endpoint and its answer back. @throws {ExchangeError} */
export type Exchange = (endpoint: Endpoint, request: RawRequest) => Promise<RawAnswer>

/** How long a call may take, in milliseconds. */
export type Timeouts = {
  readMs: number
  /** Beyond the 30 s after which pveproxy itself gives up with 596. */
  changeMs: number
  uploadMs: number
  agentMs: number
}

/** One line a call: what the debug log shows. */
export type CallLog = {
  call: string
  endpoint: string
  node?: string
  vmid?: number
  status?: number
  code?: ProxmoxErrorCode
  ms: number
  upid?: Upid
}

export type ProxmoxOptions = {
  endpoints: readonly Endpoint[]
  /** PEM of the CA that signed the endpoints' certificates; without it and without a fingerprint the system's CAs count. */
  ca?: string
  token: TokenSource
  timeouts?: Partial<Timeouts>
  exchange?: Exchange
  now?: () => number
  onCall?: (entry: CallLog) => void
}

/** What bounds the calls of one invocation. */
export type Invocation = {
  /** Cuts calls in flight; no call starts after it fired. */
  signal: AbortSignal
  /** Epoch milliseconds after which no call that changes something starts. */
  mutateUntilMs?: number
}

export type Proxmox = {
  /** The provider for one invocation: nothing outlives its signal. */
  with(invocation: Invocation): Provider
  /** Closes idle connections. */
  close(): Promise<void>
}
