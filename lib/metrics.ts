/** CloudWatch's namespace for all that we measure. */
export const NAMESPACE = 'egress-proxies'

/** What a measurement is told apart by, besides its deployment. Each value of each is a metric that AWS charges for: none is a uid. */
export type Dimension = 'queue' | 'step' | 'why' | 'code'

type Metric = { unit: 'Count' | 'Seconds'; by: readonly Dimension[]; when: string }

/**
 * Everything that we measure: the one list of names. docs/operations.md shows it as it is; alarms and the dashboard may use
 * no other. `when` says when a value is written, and what it means.
 */
export const METRICS = {
  ProxyReady: { unit: 'Count', by: [], when: 'a proxy was announced as ready' },
  TimeToReady: {
    unit: 'Seconds',
    by: [],
    when: 'with ProxyReady: since the request of this generation was accepted',
  },
  ProxyFailed: { unit: 'Count', by: ['code'], when: 'a proxy was given up, and reported as failed' },
  ProxyDeleted: { unit: 'Count', by: [], when: 'nothing is left of a proxy (of an orphan: not counted)' },
  TimeInStep: {
    unit: 'Seconds',
    by: ['step'],
    when: 'a step was done and left for the next; outages and waits with a patience of their own are left out',
  },
  Waits: { unit: 'Count', by: ['why'], when: 'a step said wait, as is normal; see below for why' },
  Retries: {
    unit: 'Count',
    by: ['code'],
    when: 'a step, or AWS, failed in passing, and the queue brings the message back',
  },
  EventsRefused: { unit: 'Count', by: ['code'], when: 'a message went to the dead letters as it came' },
  LeaseHeld: {
    unit: 'Count',
    by: ['queue'],
    when: 'a message found its row in the hands of another, and goes back',
  },
  LostRaces: { unit: 'Count', by: [], when: 'a row could not be saved: another had saved it meanwhile' },
  MessageAge: {
    unit: 'Seconds',
    by: ['queue'],
    when: 'a message was taken out of its queue: since it was sent, its delay and earlier tries included',
  },
  Lateness: {
    unit: 'Seconds',
    by: ['queue'],
    when: 'a row’s next message was taken: since it was due. It grows when the functions do not keep up',
  },
  GcRuns: { unit: 'Count', by: [], when: 'a run of gc came to its end (a plan is none)' },
  Orphans: {
    unit: 'Count',
    by: [],
    when: 'each run of gc: machines without a row that it has deleted, could not, or left for a later run (`limits.maxDeletions`)',
  },
  StalledRows: {
    unit: 'Count',
    by: [],
    when: 'each run of gc: rows that stood still, and were kicked or left for a later run',
  },
  CheckFailures: { unit: 'Count', by: [], when: 'each round of check, for each cluster: its failures' },
  CheckWarnings: { unit: 'Count', by: [], when: 'each round of check, for each cluster: its warnings' },
  ReadyProxies: { unit: 'Count', by: [], when: 'each round of check: all that are ready' },
} as const satisfies Record<string, Metric>

export type MetricName = keyof typeof METRICS

/** Why a step waits. */
export const WAIT_REASONS = {
  task: 'a task of Proxmox is running',
  place: 'for a place in the queue of a storage, or in a zone',
  lock: 'the VM is locked: a backup, a migration, a snapshot',
  agent: 'the guest agent does not answer yet',
  unsettled: 'a call that was not answered may still run',
  step: 'anything else: the guest boots, the proxy does not answer yet',
} as const
export type WaitReason = keyof typeof WAIT_REASONS

/** One value of a metric. */
export type Measurement = {
  name: MetricName
  value: number
  by: Readonly<Partial<Record<Dimension, string>>>
}

/** Takes what was measured at one moment. */
export type Measure = (measurements: readonly Measurement[]) => void

type DimensionsOf<N extends MetricName> = Record<(typeof METRICS)[N]['by'][number], string>

/** A value with the dimensions of its metric, and no other. `value` is in the metric's unit. */
export function measured<N extends MetricName>(name: N, value: number, by: DimensionsOf<N>): Measurement {
  const given: Partial<Record<Dimension, string>> = by
  // Whatever else the object holds is left out: a reason, say, would be a metric of its own each time.
  return {
    name,
    value,
    by: Object.fromEntries(METRICS[name].by.map((dimension) => [dimension, given[dimension]])),
  }
}
