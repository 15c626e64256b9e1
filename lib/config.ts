import { dirname, resolve } from 'node:path'
import * as z from 'zod'
import { FailureCode } from './failure.ts'
import { readText } from './read-text.ts'
import { readYaml } from './read-yaml.ts'
import { CREATE_STEPS, DELETE_STEPS } from './record.ts'
import { Labels, ProxySettings, Size } from './spec.ts'
import { type Complaint, complaintLine, namesText, parseWith, Range, wanted } from './wanted.ts'

const NodeName = z.string().regex(/^[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?$/, wanted('a node name'))
const StorageId = z.string().regex(/^[a-zA-Z][a-zA-Z0-9._-]*[a-zA-Z0-9]$/, wanted('a storage id'))
const Vmid = z
  .int()
  .min(100, wanted('a VMID, 100 to 999999999'))
  .max(999_999_999, wanted('a VMID, 100 to 999999999'))
const Seconds = z.int().min(0)

const Vmids = z
  .strictObject({ from: Vmid, to: Vmid })
  .refine(({ from, to }) => from <= to, wanted('`from` not above `to`'))

const Endpoint = z.strictObject({
  url: z.url({ protocol: /^https$/, error: 'wanted an https:// address such as https://pve1.lan:8006' }),
  /** The node this address stands on: uploads for that node go there, and it is asked first about its own VMs. */
  node: NodeName.optional(),
  fingerprint: z
    .string()
    .regex(/^([0-9A-Fa-f]{2}:){31}[0-9A-Fa-f]{2}$/, wanted('a SHA-256 fingerprint, 32 pairs AA:BB:…'))
    .optional(),
})

const FilePath = z.string().regex(/^[^\p{Cc}]+$/u, wanted('the path of a file'))

/** Stands in what the functions are allowed to read, where a star would be all there is. Source: AWS Systems Manager, PutParameter. */
const ParameterName = z.string().regex(/^\/?[\w.-]+(\/[\w.-]+)*$/, wanted('the name of a parameter'))

/** Where a secret is kept: a parameter of AWS Systems Manager, or a file beside the configuration. Two = the second is tried when the first is refused. */
const SecretSource = z.union(
  [z.strictObject({ ssm: ParameterName }), z.strictObject({ file: FilePath })],
  wanted('{ ssm: <parameter name> } or { file: <path> }'),
)

/** How long one call to Proxmox may take. pveproxy itself gives a change up after 30 s, and only its answer says so. */
const CallSeconds = z.strictObject({
  read: Seconds.min(1).max(300).optional(),
  change: Seconds.min(31, wanted('31 or more: pveproxy itself gives up after 30 s')).max(300).optional(),
  upload: Seconds.min(31, wanted('31 or more: pveproxy itself gives up after 30 s')).max(300).optional(),
  agent: Seconds.min(1).max(300).optional(),
})

/** For each image, the template's VMID on each node that has it. */
const Images = z.record(z.string(), z.record(NodeName, Vmid))

const Verifiable = z.object({
  endpoints: z.array(Endpoint).min(1, wanted('at least one endpoint')),
  /** PEM of the authority that signed the nodes' certificates, as a file beside the configuration. */
  caFile: FilePath.optional(),
})

/** A rule over several fields is judged once these have their shape, whatever else is wrong: all complaints come at once. */
const onceShaped = (fields: z.ZodType) => ({
  when: ({ value }: z.core.ParsePayload) => fields.safeParse(value).success,
})

const Cluster = z
  .strictObject({
    ...Verifiable.shape,
    token: z.union(
      [SecretSource, z.array(SecretSource).min(1).max(2)],
      wanted('one source of the API token, or two'),
    ),
    pool: z
      .string()
      .regex(/^[A-Za-z0-9._/-]+$/)
      .optional(),
    storage: StorageId,
    storageShared: z.boolean().default(false),
    isoStorage: StorageId,
    isoStorageShared: z.boolean().default(false),
    clone: z.enum(['full', 'linked']).default('linked'),
    bridge: z.string().regex(/^[A-Za-z][A-Za-z0-9_.-]{0,14}$/, wanted('the name of a bridge or vnet')),
    vlan: z.int().min(1).max(4094).optional(),
    vmids: Vmids,
    /** Only an address in one of these counts as the proxy's; by default any that is neither loopback, link-local nor multicast. */
    addressRanges: z.array(Range).min(1).optional(),
    ipv6: z.boolean().default(false),
    callSeconds: CallSeconds.optional(),
    images: Images,
  })
  .refine(
    ({ endpoints, caFile }) => caFile !== undefined || endpoints.every((endpoint) => endpoint.fingerprint),
    {
      error: 'wanted caFile, or a fingerprint on every endpoint: certificates are always verified',
      ...onceShaped(Verifiable),
    },
  )
export type Cluster = z.infer<typeof Cluster>

const Zone = z.strictObject({
  cluster: z.string(),
  nodes: z.array(NodeName).min(1, wanted('at least one node')),
  vmids: Vmids.optional(),
})
export type Zone = z.infer<typeof Zone>

const Limits = z
  .strictObject({
    /** Clones and destroys that may run at once on one storage (of one node, unless shared). */
    clonesPerStorage: z.int().min(1).default(2),
    proxiesPerZone: z.int().min(1).optional(),
    /** Most deletions one gc run may start. */
    maxDeletions: z.int().min(0).default(20),
  })
  .prefault({})

const Defaults = z.strictObject({
  size: Size,
  proxy: ProxySettings,
  ttlSeconds: z.int().min(60).optional(),
  labels: Labels.optional(),
})

const Verify = z
  .strictObject({
    /** `http`: a request through the proxy to `probeUrl`; `tcp`: a connection to its port; `none`: nothing. */
    probe: z.enum(['http', 'tcp', 'none']).default('http'),
    probeUrl: z.url().default('http://deb.debian.org/'),
    /** Our own addresses, admitted besides `allow`. */
    probeFrom: z.array(Range).default([]),
  })
  .prefault({})

const Timings = z
  .strictObject({
    functionTimeoutSeconds: Seconds.min(15).max(900).default(60),
    maxClockSkewSeconds: Seconds.default(120),
    settleSeconds: Seconds.default(120),
    bootSeconds: Seconds.default(20),
    stallSeconds: Seconds.default(900),
    graceSeconds: Seconds.default(900),
    tombstoneDays: z
      .int()
      .min(35, wanted('at least 35 days: longer than source and dead-letter retention together'))
      .default(35),
    /** How long a step may wait, time left out in which Proxmox did not answer; over those of the steps themselves. */
    deadlineSeconds: z.partialRecord(z.enum([...CREATE_STEPS, ...DELETE_STEPS]), Seconds.min(60)).default({}),
    retryWindowSeconds: z.partialRecord(FailureCode, Seconds).default({}),
  })
  .prefault({})

const Check = z
  .strictObject({
    /** What becomes of a ready proxy whose VM was found stopped: powered on again, made anew, or only reported. */
    stopped: z.enum(['start', 'replace', 'report']).default('start'),
    /** What becomes of one that did not answer in `silentRounds` rounds in a row: made anew, or only reported. */
    silent: z.enum(['replace', 'report']).default('report'),
    silentRounds: z.int().min(1).default(3),
    /** Most proxies that one round takes up again: a cluster that is not the one we think must not cost all of them at once. */
    maxResumes: z.int().min(0).default(20),
  })
  .prefault({})

const Zoned = z.object({
  clusters: z.record(z.string(), z.object({ images: Images })),
  zones: z.record(z.string(), Zone),
})

function zonesHaveTemplates({ clusters, zones }: z.infer<typeof Zoned>, context: z.RefinementCtx): void {
  for (const [name, zone] of Object.entries(zones)) {
    const cluster = Object.hasOwn(clusters, zone.cluster) ? clusters[zone.cluster] : undefined
    if (!cluster) {
      const message = `wanted one of: ${namesText(Object.keys(clusters))}`
      context.addIssue({ code: 'custom', path: ['zones', name, 'cluster'], message })
      continue
    }
    const nodes = new Set(Object.values(cluster.images).flatMap((byNode) => Object.keys(byNode)))
    zone.nodes.forEach((node, index) => {
      if (nodes.has(node)) return
      const message = `wanted a node with a template in clusters.${zone.cluster}.images: ${namesText([...nodes])}`
      context.addIssue({ code: 'custom', path: ['zones', name, 'nodes', index], message })
    })
  }
}

export const Config = z
  .strictObject({
    /** Names this installation in marks, tags and file names. No hyphen, so that the parts of a name can be told apart. */
    deployment: z
      .string()
      .regex(/^[a-z][a-z0-9]{0,19}$/, wanted('1 to 20 of a-z 0-9, a letter first'))
      .refine(
        (name) => name !== 'hold',
        wanted('another name: `egress-hold` is the tag that people keep VMs with'),
      ),
    clusters: z.record(z.string().regex(/^[a-z][a-z0-9-]{0,31}$/), Cluster),
    zones: z.record(z.string(), Zone),
    /** How `reserve` chooses among nodes: by a hash of the uid (no reads), or the node with the fewest rows. */
    placement: z.enum(['hash', 'fewest']).default('hash'),
    /** A label: proxies with the same value of it are put on different nodes, as far as there are nodes. */
    spreadBy: z
      .string()
      .regex(/^[A-Za-z0-9._/-]{1,63}$/, wanted('the name of a label'))
      .optional(),
    limits: Limits,
    defaults: Defaults,
    verify: Verify,
    timings: Timings,
    check: Check,
    /** Where the passwords named by `passwordParameter` are kept. */
    parameters: z
      .union(
        [z.strictObject({ ssm: z.literal(true) }), z.strictObject({ file: FilePath })],
        wanted('{ ssm: true } or { file: <path> }'),
      )
      .default({ ssm: true }),
  })
  .superRefine(zonesHaveTemplates, onceShaped(Zoned))
export type Config = z.infer<typeof Config>

/** The configuration cannot be used; `complaints` names everything that is wrong with it at once. */
export class ConfigError extends Error {
  override name = 'ConfigError' as const
  readonly complaints: Complaint[]
  constructor(source: string, list: Complaint[]) {
    super(
      [`${source} is not a usable configuration:`, ...list.map((one) => `  ${complaintLine(one)}`)].join(
        '\n',
      ),
    )
    this.complaints = list
  }
}

/** Reads and checks a stage's YAML file; paths inside it are relative to it and come back absolute. @throws {UnreadableFile} @throws {ConfigError} all complaints at once. */
export function loadConfig(path: string): Config {
  return parseConfig(readText(path), path)
}

/** @throws {ConfigError} all complaints at once. */
export function parseConfig(text: string, path: string): Config {
  const read = readYaml(text)
  if ('fault' in read) throw new ConfigError(path, [{ path: '(document)', got: read.fault, wanted: 'YAML' }])
  const parsed = parseWith(Config, read.document)
  if ('complaints' in parsed) throw new ConfigError(path, parsed.complaints)
  return finished(parsed.value, dirname(resolve(path)))
}

/** With absolute paths, and maps that hold nothing but what the file says. */
function finished(config: Config, folder: string): Config {
  const source = (one: z.infer<typeof SecretSource>) =>
    'file' in one ? { file: resolve(folder, one.file) } : one
  const clusters = Object.entries(config.clusters).map(([name, cluster]): [string, Cluster] => [
    name,
    {
      ...cluster,
      ...(cluster.caFile === undefined ? {} : { caFile: resolve(folder, cluster.caFile) }),
      token: [cluster.token].flat().map(source),
      images: named(Object.entries(cluster.images)),
    },
  ])
  const { parameters } = config
  return {
    ...config,
    clusters: named(clusters),
    zones: named(Object.entries(config.zones)),
    parameters: 'file' in parameters ? { file: resolve(folder, parameters.file) } : parameters,
  }
}

/** Looked up by names that anyone may send: `constructor` must be no zone, so none of the names every object brings along. */
const named = <T>(entries: [string, T][]): Record<string, T> =>
  Object.assign(Object.create(null), Object.fromEntries(entries))
