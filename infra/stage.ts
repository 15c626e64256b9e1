import * as z from 'zod'
import { ConfigError } from '../lib/config.ts'
import { readText } from '../lib/read-text.ts'
import { readYaml } from '../lib/read-yaml.ts'
import { parseWith, wanted } from '../lib/wanted.ts'

const Cidr = z.cidrv4(wanted('an IPv4 network such as 192.168.10.0/24'))
const id = (prefix: string) =>
  z
    .string()
    .regex(new RegExp(`^${prefix}-[0-9a-f]{8,17}$`), wanted(`an id such as ${prefix}-0a1b2c3d4e5f60718`))

/** A network that is there already. Its owner sees to the route to Proxmox and to the ways to SQS, SNS, SSM and DynamoDB. */
const Existing = z.strictObject({
  subnetIds: z.array(id('subnet')).min(1, wanted('at least one subnet')),
  securityGroupIds: z.array(id('sg')).min(1, wanted('at least one security group')),
})

/** A network made by the stack: two private subnets, endpoints for AWS, and a site-to-site VPN to the clusters. */
const Vpn = z.strictObject({
  /** Of the new VPC. The networks on the other side must not overlap with it. */
  vpcCidr: Cidr.refine(
    (cidr) => Number(cidr.split('/')[1]) >= 16 && Number(cidr.split('/')[1]) <= 25,
    wanted('a network of /16 to /25: two subnets of 64 addresses fit into it'),
  ),
  /** The public address of the VPN device beside the clusters. */
  peerAddress: z.ipv4(wanted('a public IPv4 address')),
  /** Where the clusters and their proxies live. */
  clusterCidrs: z.array(Cidr).min(1, wanted('at least one network')).max(10, wanted('at most 10 networks')),
  /** Ports that proxies may be asked for; by default the one of the configuration's `defaults`. */
  proxyPorts: z
    .strictObject({ from: z.int().min(1).max(65535), to: z.int().min(1).max(65535) })
    .refine(({ from, to }) => from <= to, wanted('`from` not above `to`'))
    .optional(),
  /** DynamoDB's addresses in the region. `aws ec2 describe-managed-prefix-lists` names them. */
  dynamodbPrefixListId: id('pl'),
  /**
   * Where the two subnets are. AWS lists its zones in an order that may change, and a subnet that moves is made anew; nor
   * does every zone have everything.
   */
  zones: z
    .array(z.string().regex(/^[a-z]{2}(-[a-z]+)+-\d[a-z]$/, wanted('a zone such as eu-central-1a')))
    .length(2, wanted('two zones'))
    .refine(([one, other]) => one !== other, wanted('two different zones'))
    .optional(),
  /** How many of the connection's two tunnels the device keeps up: of two, an alarm tells when one is down. */
  tunnels: z.union([z.literal(1), z.literal(2)], wanted('1 or 2')).default(2),
  /** What of the traffic is noted: what the security groups refused, all of it, or none. */
  flowLogs: z.enum(['rejected', 'all', 'none'], wanted('rejected, all or none')).default('rejected'),
  /** Lambda delivers what functions print by itself, so this endpoint is for whoever wants to call CloudWatch Logs from the VPC. */
  logsEndpoint: z.boolean().default(true),
})

/** Source: AWS::Logs::LogGroup, RetentionInDays. */
const RETENTIONS = [
  1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653,
]

const Batches = z
  .int()
  .min(2, wanted('at least 2: Lambda takes no less'))
  .max(1000, wanted('at most 1000'))
  .optional()

/** Batches of each queue in work at once, of up to ten records each; serverless.yml has the default. */
const Concurrency = z.strictObject({ create: Batches, delete: Batches }).prefault({})

/** OpenTelemetry in the functions: layers with an SDK, and what that is told. docs/operations.md, Traces, says more. */
const Tracing = z.strictObject({
  layers: z
    .array(
      z
        .string()
        .regex(
          /^arn:aws[a-z-]*:lambda:[a-z0-9-]+:\d{12}:layer:[\w-]+:\d+$/,
          wanted('an ARN such as arn:aws:lambda:eu-central-1:123456789012:layer:name:7, with its version'),
        ),
    )
    .min(1, wanted('at least one layer'))
    .max(5, wanted('at most 5 layers')),
  /** Starts the runtime with the SDK in it. */
  wrapper: z.string().startsWith('/opt/', wanted('a path below /opt/')).default('/opt/otel-instrument'),
  environment: z
    .record(z.string(), z.string(wanted('a text, in quotes')))
    .refine(
      (variables) => Object.keys(variables).every((name) => /^OTEL_[A-Z0-9_]+$/.test(name)),
      wanted('names that begin with OTEL_'),
    )
    // Where collectors want their keys.
    .refine(
      (variables) => !Object.keys(variables).some((name) => name.endsWith('HEADERS')),
      wanted('no headers: a key is not packaged with a function'),
    )
    .default({}),
})

/** What a deployment is given besides config/<stage>.yml: what only AWS needs to know, and no function reads. */
export const Stage = z.strictObject({
  region: z.string().regex(/^[a-z]{2}(-[a-z]+)+-\d$/, wanted('a region such as eu-central-1')),
  /** Neither the tables nor the stack can be deleted, not even from the console. */
  protect: z.boolean().default(false),
  concurrency: Concurrency,
  logRetentionDays: z
    .int()
    .refine((days) => RETENTIONS.includes(days), wanted(`one of ${RETENTIONS.join(', ')}`))
    .default(30),
  /** A key of one's own for the parameters that hold tokens and passwords, instead of the account's own of SSM. */
  secretsKeyArn: z
    .string()
    .regex(
      /^arn:aws[\w-]*:kms:[a-z0-9-]+:\d{12}:key\/(mrk-)?[0-9a-f-]+$/,
      wanted("a key's ARN, arn:aws:kms:<region>:<account>:key/<id>: IAM knows no aliases"),
    )
    .optional(),
  /** Told of every alarm and every failed proxy. AWS asks it for a confirmation first. */
  alarmEmail: z.email(wanted('an e-mail address')).optional(),
  tracing: Tracing.optional(),
  // Not a union, of which nothing would be said but that none of its two fits.
  network: z
    .strictObject({ existing: Existing.optional(), vpn: Vpn.optional() })
    .refine(
      ({ existing, vpn }) => (existing === undefined) !== (vpn === undefined),
      wanted('{ existing: … } or { vpn: … }, see infra/stages/example.yml'),
    ),
})
export type Stage = z.infer<typeof Stage>

/** @throws {UnreadableFile} @throws {ConfigError} all complaints at once */
export function loadStage(path: string): Stage {
  const read = readYaml(readText(path))
  if ('fault' in read) throw new ConfigError(path, [{ path: '(document)', got: read.fault, wanted: 'YAML' }])
  const parsed = parseWith(Stage, read.document)
  if ('complaints' in parsed) throw new ConfigError(path, parsed.complaints)
  return parsed.value
}
