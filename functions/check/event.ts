import * as z from 'zod'

/** Where the reports lie in the table of claims: one a cluster, and `latest`, which counts them all. */
export const REPORTS = 'check-report' as const
export const reportKey = (cluster: string) => `cluster#${cluster}`

export const Level = z.enum(['ok', 'warning', 'failure'])
export type Level = z.infer<typeof Level>

/** What a finding is about. `proxies` is what lives on one node, taken together. */
const Target = z.enum(['cluster', 'token', 'endpoint', 'node', 'proxies', 'proxy'])

/** Everything a round can find; the level says how bad it is. */
export const FindingCode = z.enum([
  'Fine',
  /** Our token may not see it, or it was not looked at; nothing is wrong with it that we know of. */
  'NotSeen',
  // of a cluster
  'NoEndpoint',
  'NoQuorum',
  'PoolMissing',
  'PrivilegeMissing',
  'VersionUnsupported',
  'VmidsShort',
  // of a token
  'TokenExpires',
  'TokenMissing',
  'TokenRefused',
  // of an endpoint
  'CertificateExpires',
  'Unreachable',
  'Untrusted',
  // of a node
  'BridgeInactive',
  'BridgeMissing',
  'ClockSkew',
  'CloudInitDrive',
  'ContentMissing',
  'ForeignTags',
  'LinkedCloneImpossible',
  'NodeOffline',
  'NodeSilent',
  'NodeUnknown',
  'NoSpace',
  'NotShared',
  'NotATemplate',
  'SilentAgent',
  'StorageInactive',
  'StorageMissing',
  'TemplateAgentOff',
  'TemplateLocked',
  'TemplateMissing',
  'TemplateProtected',
  'TemplateUnfit',
  // of a proxy
  'AddressChanged',
  'Broken',
  'Gone',
  'Held',
  'Hidden',
  'Locked',
  'MarkDoubtful',
  'MarkLost',
  'Misconfigured',
  'Paused',
  'Silent',
  'Stopped',
  'TurnedAway',
  'Unknown',
  /** The round itself went wrong there. */
  'Unexpected',
])
export type FindingCode = z.infer<typeof FindingCode>

export const Finding = z.object({
  level: Level,
  target: Target,
  /** The target's name: `lab`, `pve1`, `https://pve1:8006`, a uid. */
  where: z.string(),
  /** The node whose part of the round saw it. */
  node: z.string().optional(),
  code: FindingCode,
  /** What is wrong, or what is there. */
  text: z.string(),
  /** What to type, and where. */
  line: z.string().optional(),
  /** What the round did about it. */
  done: z.string().optional(),
})
export type Finding = z.infer<typeof Finding>

export const Counts = z.object({ ok: z.int(), warning: z.int(), failure: z.int() })
export type Counts = z.infer<typeof Counts>

/** How the ready proxies of a cluster were found, each counted once. */
export const ProxyCounts = z.object({
  ready: z.int(),
  fine: z.int(),
  drifted: z.int(),
  /** On a silent node, or not to be judged now. */
  unknown: z.int(),
  /** The round's time was over before: the next round begins with them. */
  unseen: z.int(),
  /** Taken up again by a message of this round. */
  resumed: z.int(),
})
export type ProxyCounts = z.infer<typeof ProxyCounts>

/** What one round saw of one cluster. */
export const Report = z.object({
  cluster: z.string(),
  startedAt: z.iso.datetime(),
  ms: z.int(),
  counts: Counts,
  proxies: ProxyCounts,
  findings: z.array(Finding),
  /** Findings that there was no room for; what is worst is kept. */
  leftOff: z.int().optional(),
  /** Rounds in a row in which a proxy did not answer. */
  silent: z.record(z.string(), z.int()),
  /** The last proxy that was looked at on each node whose round was cut short. */
  cursors: z.record(z.string(), z.string()),
})
export type Report = z.infer<typeof Report>

/** All clusters of one round, counted. */
export const Summary = z.object({
  startedAt: z.iso.datetime(),
  ms: z.int(),
  clusters: z.array(z.string()),
  counts: Counts,
  proxies: ProxyCounts,
})
export type Summary = z.infer<typeof Summary>

/** What a round returns to whoever asked for it. */
export const Round = z.object({ summary: Summary, reports: z.array(Report) })
export type Round = z.infer<typeof Round>
