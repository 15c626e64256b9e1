import * as z from 'zod'

/**
 * Why a proxy or a message was given up, or why a step could not decide now. Closed: an operator meets each of them in
 * the dead-letter queue. The codes of lib/proxmox's errors pass through under their own names; a test compares the lists.
 */
export const FailureCode = z.enum([
  // of a message
  'InvalidEvent',
  'GenerationReused',
  'RowUnreadable',
  // of a life cycle
  'AddressTaken',
  'AgentNeverUp',
  'Crashing',
  'MarkLost',
  'Misconfigured',
  'NoNode',
  'PasswordMissing',
  'ProbeRefused',
  'ProxyNeverAnswered',
  'RangeExhausted',
  'RetriesExhausted',
  'SeedRefused',
  'StepTimedOut',
  'StuckLock',
  'UserDataLost',
  'VmBroken',
  'VmGone',
  // of Proxmox
  'Aborted',
  'AgentError',
  'AgentOff',
  'AgentSilent',
  'AlreadyExists',
  'AlreadyRunning',
  'CommandFailed',
  'DigestMismatch',
  'Forbidden',
  'InUse',
  'Interrupted',
  'Locked',
  'NoQuorum',
  'NoSpace',
  'NoSuchTask',
  'NoWorker',
  'NodeUnknown',
  'NotRunning',
  'Protected',
  'Rejected',
  'Running',
  'StorageOffline',
  'TaskLost',
  'TemplateProblem',
  'Unauthorized',
  'Unexpected',
  'Unknown',
  'Unreachable',
  'UnsupportedStorage',
  'Untrusted',
  'UploadCorrupt',
  'VmLocked',
  'VmMissing',
  'VolumeExists',
  'VolumeMissing',
])
export type FailureCode = z.infer<typeof FailureCode>

export type FailureClass = 'transient' | 'permanent' | 'wait'

/** What the worker can act on: a code and its class. lib/proxmox's ProxmoxError is one. */
export type Failing = Error & {
  code: FailureCode
  class: FailureClass
  /** A change may still happen although we were told that it failed, or told nothing. */
  ambiguous?: boolean
  hint?: string
}

/** A failure that our own code found: of the configuration, the placement, the secrets. */
export class Failure extends Error implements Failing {
  override readonly name = 'Failure'
  readonly code: FailureCode
  readonly class: FailureClass
  readonly hint?: string
  constructor(
    code: FailureCode,
    message: string,
    options: { class: FailureClass; hint?: string; cause?: unknown },
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.code = code
    this.class = options.class
    if (options.hint !== undefined) this.hint = options.hint
  }
}

/** Anything thrown, as something the worker can act on; what is not known by its code is a transient `Unexpected`. */
export function asFailing(error: unknown): Failing {
  if (error instanceof Error && isFailing(error)) return error
  const message = error instanceof Error ? `${error.name}: ${error.message}` : String(error)
  return new Failure('Unexpected', message, { class: 'transient', cause: error })
}

function isFailing(error: Error & { code?: unknown; class?: unknown }): error is Failing {
  return FailureCode.safeParse(error.code).success && typeof error.class === 'string'
}

const HOUR = 3600
const DAY = 24 * HOUR

const windows: Partial<Record<FailureCode, number>> = {
  NoSpace: HOUR,
  Unauthorized: 15 * 60,
  Unknown: 10 * 60,
  Unexpected: 10 * 60,
}

/** Seconds a transient stretch may last before it becomes `RetriesExhausted`; the longest of all bounds `maxReceiveCount`. */
export function retryWindowSeconds(
  code: FailureCode,
  configured: Partial<Record<FailureCode, number>>,
): number {
  return configured[code] ?? windows[code] ?? DAY
}
