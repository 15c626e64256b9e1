import { existsSync } from 'node:fs'
import { isAbsolute, join, relative } from 'node:path'
import ipaddr from 'ipaddr.js'
import { type Config, ConfigError, loadConfig } from '../lib/config.ts'
import { type QueueSettings, queueSettings, refuseEndlessRetries } from '../lib/queue-settings.ts'
import { stageNameFault } from '../lib/stage-name.ts'
import type { Complaint } from '../lib/wanted.ts'
import { passwordPrefix } from '../lib/wish.ts'
import { loadStage, type Stage } from './stage.ts'

type Rule = { IpProtocol: 'tcp'; FromPort: number; ToPort: number; CidrIp: string; Description: string }

/** Everything serverless.yml and infra/*.yml take from the two files of a stage. */
export type Settings = QueueSettings & {
  concurrency: Stage['concurrency']
  region: string
  deployment: string
  protect: boolean
  logRetentionDays: number
  /** Empty for nobody: CloudFormation's conditions compare strings. */
  alarmEmail: string
  tracing: Tracing
  /** Read by the functions at cold start, so packaged with them. */
  configFile: string
  packagedFiles: string[]
  /** Names of parameters with tokens, as their ARNs end. */
  tokenParameters: object[]
  /** Parameters whose names a request may give as its `passwordParameter`. */
  passwordParameters: object[]
  /** What lets the functions read parameters that a key of one's own encrypts. */
  secretsKey: Record<string, object>
  /** Which file of infra/network/ describes the network. */
  network: 'existing' | 'vpn'
  subnetIds: (string | object)[]
  securityGroupIds: (string | object)[]
  vpn: Vpn
}

/** Nothing of it is in the template when it is off. */
type Tracing = {
  mode: 'Active' | false
  layers: string[]
  /** Of each function, besides what all have. */
  environment: Record<string, string>
  /** Managed policies of each role. */
  policies: object[]
}

type Vpn = {
  vpcCidr: string
  peerAddress: string
  dynamodbPrefixListId: string
  logsEndpoint: string
  /** Of the two subnets. */
  zones: (string | object)[]
  tunnels: string
  /** Those of its alarms that are made, as the list of the dashboard goes on. */
  alarms: string
  /** As EC2 calls it; `none` for no flow log. */
  flowLogs: 'REJECT' | 'ALL' | 'none'
  /** What the functions may open connections to, besides AWS. */
  egress: Rule[]
  routes: Record<string, object>
}

/**
 * Reads config/<stage>.yml and infra/stages/<stage>.yml below `folder`.
 * @throws {UnreadableFile}
 * @throws {ConfigError} all complaints of a file at once
 */
export function readSettings(folder: string, stageName: string): Settings {
  const fault = stageNameFault(stageName)
  if (fault) throw new ConfigError('the stage', [{ path: '--stage', ...fault }])
  const configFile = `config/${stageName}.yml`
  const stageFile = `infra/stages/${stageName}.yml`
  const missing = [configFile, stageFile].filter((file) => !existsSync(join(folder, file)))
  if (missing.length > 0)
    throw new ConfigError(
      `stage ${stageName}`,
      missing.map((path) => ({
        path,
        got: 'no such file',
        wanted: `a copy of ${path.replace(stageName, 'example')}, with what is yours`,
      })),
    )
  const config = loadConfig(join(folder, configFile))
  const stage = loadStage(join(folder, stageFile))
  return settings({ folder, configFile, config, stage })
}

export function settings(from: {
  folder: string
  configFile: string
  config: Config
  stage: Stage
}): Settings {
  const { folder, configFile, config, stage } = from
  const complaints = [...outOfReach(folder, config), ...notAdmitted(config, stage)]
  if (complaints.length > 0) throw new ConfigError(configFile, complaints)
  refuseEndlessRetries(config)
  const { region, protect, logRetentionDays, alarmEmail = '', concurrency, network, secretsKeyArn } = stage
  const { existing } = network
  return {
    ...queueSettings(config.timings.functionTimeoutSeconds),
    concurrency,
    region,
    deployment: config.deployment,
    protect,
    logRetentionDays,
    alarmEmail,
    tracing: tracing(stage),
    configFile,
    packagedFiles: [configFile, ...certificates(config).map((path) => relative(folder, path))],
    tokenParameters: tokenParameters(config).map(parameterArn),
    passwordParameters: [parameterArn(`${passwordPrefix(config.deployment)}*`)],
    secretsKey: secretsKeyArn === undefined ? {} : secretsKey(secretsKeyArn),
    network: existing ? 'existing' : 'vpn',
    subnetIds: existing?.subnetIds ?? [{ Ref: 'PrivateSubnetA' }, { Ref: 'PrivateSubnetB' }],
    securityGroupIds: existing?.securityGroupIds ?? [{ Ref: 'FunctionSecurityGroup' }],
    vpn: network.vpn ? vpn(network.vpn, config) : NO_VPN,
  }
}

function tracing({ tracing: wanted }: Stage): Tracing {
  const network = { Ref: 'NetworkPolicy' }
  if (!wanted) return { mode: false, layers: [], environment: {}, policies: [network] }
  const { layers, wrapper, environment } = wanted
  const toXRay = { 'Fn::Sub': `arn:\${AWS::Partition}:iam::aws:policy/AWSXRayDaemonWriteAccess` }
  return {
    mode: 'Active',
    layers,
    environment: { AWS_LAMBDA_EXEC_WRAPPER: wrapper, ...environment },
    policies: [network, toXRay],
  }
}

const NO_VPN: Vpn = {
  vpcCidr: '',
  peerAddress: '',
  dynamodbPrefixListId: '',
  logsEndpoint: '',
  zones: [],
  tunnels: '',
  alarms: '',
  flowLogs: 'none',
  egress: [],
  routes: {},
}

/** Names of the parameters that hold tokens. */
export const tokenParameters = (config: Config): string[] =>
  Object.values(config.clusters).flatMap(({ token }) =>
    [token].flat().flatMap((source) => ('ssm' in source ? [source.ssm] : [])),
  )

/** A parameter of the account: a name without a leading slash stands alone, one with it needs none in the ARN. */
const parameterArn = (name: string) => ({
  'Fn::Sub': `arn:\${AWS::Partition}:ssm:\${AWS::Region}:\${AWS::AccountId}:parameter/${name.replace(/^\//, '')}`,
})

/** Only for what the parameter store asks in their name: with the key alone they could read nothing. */
const secretsKey = (arn: string) => ({
  SecretsKeyPolicy: {
    Type: 'AWS::IAM::Policy',
    Properties: {
      PolicyName: 'secrets-key',
      Roles: ['CreateRole', 'DeleteRole', 'GcRole', 'CheckRole'].map((role) => ({ Ref: role })),
      PolicyDocument: {
        Version: '2012-10-17',
        Statement: [
          {
            Sid: 'SecretsKey',
            Effect: 'Allow',
            Action: 'kms:Decrypt',
            Resource: arn,
            Condition: {
              StringEquals: { 'kms:ViaService': { 'Fn::Sub': `ssm.\${AWS::Region}.amazonaws.com` } },
            },
          },
        ],
      },
    },
  },
})

const certificates = ({ clusters }: Config): string[] => [
  ...new Set(Object.values(clusters).flatMap(({ caFile }) => (caFile === undefined ? [] : [caFile]))),
]

/** What a function on AWS could not read, or must not be packaged with. */
function outOfReach(folder: string, config: Config): Complaint[] {
  const tokens = Object.entries(config.clusters)
    .filter(([, { token }]) => [token].flat().some((source) => 'file' in source))
    .map(([name]) => ({
      path: `clusters.${name}.token`,
      got: 'a file',
      wanted: '{ ssm: <parameter name> }: a secret is not packaged with a function',
    }))
  const passwords =
    'file' in config.parameters ? [{ path: 'parameters', got: 'a file', wanted: '{ ssm: true }' }] : []
  // Whoever may ask for a proxy may name any parameter in there as its password.
  const prefix = passwordPrefix(config.deployment)
  const exposed = Object.entries(config.clusters)
    .filter(([, { token }]) =>
      [token].flat().some((source) => 'ssm' in source && source.ssm.startsWith(prefix)),
    )
    .map(([name]) => ({
      path: `clusters.${name}.token`,
      got: `a parameter below ${prefix}`,
      wanted: 'one elsewhere: those are for passwords that requests may name',
    }))
  const strays = Object.entries(config.clusters)
    .filter(([, { caFile }]) => caFile !== undefined && isOutside(folder, caFile))
    .map(([name, { caFile = '' }]) => ({
      path: `clusters.${name}.caFile`,
      got: caFile,
      wanted: 'a file below the project, which is packaged with the functions',
    }))
  return [...tokens, ...passwords, ...exposed, ...strays]
}

function isOutside(folder: string, path: string): boolean {
  const way = relative(folder, path)
  return way.startsWith('..') || isAbsolute(way)
}

/** The functions probe each proxy from the VPC: a proxy that does not admit it is never found ready. */
function notAdmitted({ verify, defaults }: Config, { network }: Stage): Complaint[] {
  if (!network.vpn || verify.probe !== 'http') return []
  const [address, bits] = ipaddr.IPv4.parseCIDR(network.vpn.vpcCidr)
  const admits = (range: string) => {
    const [base, width] = ipaddr.parseCIDR(range)
    return base.kind() === 'ipv4' && width <= bits && address.match(base as ipaddr.IPv4, width)
  }
  if (verify.probeFrom.some(admits) || defaults.proxy.allow.some(admits)) return []
  return [
    {
      path: 'verify.probeFrom',
      got: verify.probeFrom.join(', ') || 'nothing',
      wanted: `a range with ${network.vpn.vpcCidr} in it, where the functions probe from`,
    },
  ]
}

function vpn(network: NonNullable<Stage['network']['vpn']>, config: Config): Vpn {
  const { vpcCidr, peerAddress, clusterCidrs, dynamodbPrefixListId, logsEndpoint, tunnels, flowLogs } =
    network
  const firstTwo = [0, 1].map((index) => ({ 'Fn::Select': [index, { 'Fn::GetAZs': '' }] }))
  const { port } = config.defaults.proxy
  const { from, to } = network.proxyPorts ?? { from: port, to: port }
  const rule = (CidrIp: string, FromPort: number, ToPort: number, Description: string): Rule => ({
    IpProtocol: 'tcp',
    FromPort,
    ToPort,
    CidrIp,
    Description,
  })
  return {
    vpcCidr,
    peerAddress,
    dynamodbPrefixListId,
    logsEndpoint: String(logsEndpoint),
    zones: network.zones ?? firstTwo,
    tunnels: String(tunnels),
    alarms: ['VpnDown', ...(tunnels === 2 ? ['VpnTunnelDown'] : [])]
      .map((alarm) => `, "\${${alarm}.Arn}"`)
      .join(''),
    flowLogs: TRAFFIC[flowLogs],
    egress: clusterCidrs.flatMap((cidr) => [
      ...apiPorts(config).map((api) => rule(cidr, api, api, 'Proxmox API')),
      rule(cidr, from, to, 'probe of a proxy'),
    ]),
    routes: Object.fromEntries(
      clusterCidrs.map((DestinationCidrBlock, index) => [
        `VpnRoute${index + 1}`,
        {
          Type: 'AWS::EC2::VPNConnectionRoute',
          Properties: { VpnConnectionId: { Ref: 'VpnConnection' }, DestinationCidrBlock },
        },
      ]),
    ),
  }
}

const TRAFFIC = { rejected: 'REJECT', all: 'ALL', none: 'none' } as const

const apiPorts = ({ clusters }: Config): number[] => [
  ...new Set(
    Object.values(clusters).flatMap(({ endpoints }) =>
      endpoints.map(({ url }) => Number(new URL(url).port || 443)),
    ),
  ),
]
