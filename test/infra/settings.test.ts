import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { stringify } from 'yaml'
import { readSettings } from '../../infra/settings.ts'
import { leaseMs } from '../../lib/function.ts'
import { receivesWithin } from '../../lib/queue-settings.ts'
import { aConfig, aDocument } from '../lib/a-config.ts'

const lab = aDocument().clusters.lab
const cluster = (changes: object) => ({
  clusters: { lab: { ...lab, token: { ssm: '/egress/test/token' }, ...changes } },
})
const onAws = { ...cluster({}), parameters: { ssm: true } }
const existing = { existing: { subnetIds: ['subnet-0a1b2c3d'], securityGroupIds: ['sg-0a1b2c3d'] } }
const vpn = {
  vpcCidr: '10.20.0.0/16',
  peerAddress: '203.0.113.10',
  clusterCidrs: ['192.168.10.0/24'],
  dynamodbPrefixListId: 'pl-66a5400f',
}

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'egress-settings-'))
  mkdirSync(join(folder, 'config'))
  mkdirSync(join(folder, 'infra/stages'), { recursive: true })
})
afterEach(() => rmSync(folder, { recursive: true }))

function read(config: object, stage: object) {
  writeFileSync(join(folder, 'config/test.yml'), stringify(aDocument({ ...onAws, ...config })))
  writeFileSync(
    join(folder, 'infra/stages/test.yml'),
    stringify({ region: 'eu-central-1', network: existing, ...stage }),
  )
  return readSettings(folder, 'test')
}

describe('settings', () => {
  // Report: github-aws-runners/terraform-aws-github-runner#5383
  // Report: aws-powertools/powertools-lambda-python#1038
  it('keep messages hidden six times as long as a function may run, and the lease longer than that run', () => {
    const timings = { functionTimeoutSeconds: 40, maxClockSkewSeconds: 120 }
    expect(read({ timings }, {})).toMatchObject({ functionTimeoutSeconds: 40, visibilitySeconds: 240 })
    expect(leaseMs(aConfig({ timings }))).toBe((40 + 30 + 120) * 1000)
  })

  it('count the receives of a window by the shortest pauses: a day takes about 590', () => {
    expect(receivesWithin('Unreachable', 24 * 3600)).toBeGreaterThan(570)
    expect(receivesWithin('Unreachable', 24 * 3600)).toBeLessThan(600)
    expect(receivesWithin('Unreachable', 1)).toBe(2)
  })

  it('refuse a window of retries that a queue would cut short', () => {
    expect(() => read({ timings: { retryWindowSeconds: { Unreachable: 48 * 3600 } } }, {})).toThrow(
      'timings.retryWindowSeconds.Unreachable: 172800 s can take 1000 receives or more',
    )
  })

  it('name the parameters of tokens exactly, with or without a leading slash, and passwords by the deployment’s path', () => {
    const settings = read(cluster({ token: [{ ssm: '/egress/test/token' }, { ssm: 'next' }] }), {})
    const arn = (name: string) => ({
      'Fn::Sub': `arn:\${AWS::Partition}:ssm:\${AWS::Region}:\${AWS::AccountId}:parameter/${name}`,
    })
    expect(settings.tokenParameters).toEqual([arn('egress/test/token'), arn('next')])
    expect(settings.passwordParameters).toEqual([arn('egress/test/passwords/*')])
  })

  it('let every function decrypt with a key of one’s own, by way of the parameter store alone', () => {
    expect(read({}, {}).secretsKey).toEqual({})
    const secretsKeyArn = 'arn:aws:kms:eu-central-1:123456789012:key/1a2b3c4d-5e6f-7a8b-9c0d-1e2f3a4b5c6d'
    const { SecretsKeyPolicy } = read({}, { secretsKeyArn }).secretsKey
    expect(SecretsKeyPolicy).toMatchObject({
      Properties: {
        Roles: [{ Ref: 'CreateRole' }, { Ref: 'DeleteRole' }, { Ref: 'GcRole' }, { Ref: 'CheckRole' }],
        PolicyDocument: {
          Statement: [
            {
              Action: 'kms:Decrypt',
              Resource: secretsKeyArn,
              Condition: {
                StringEquals: { 'kms:ViaService': { 'Fn::Sub': `ssm.\${AWS::Region}.amazonaws.com` } },
              },
            },
          ],
        },
      },
    })
    expect(() => read({}, { secretsKeyArn: 'alias/ours' })).toThrow('IAM knows no aliases')
  })

  it('package the configuration and the certificates it names, and nothing else', () => {
    const { packagedFiles } = read(cluster({ caFile: 'pve.pem' }), {})
    expect(packagedFiles).toEqual(['config/test.yml', 'config/pve.pem'])
  })

  it.each([
    [
      'a token in a file',
      cluster({ token: { file: 'token' } }),
      'clusters.lab.token: got a file, wanted { ssm:',
    ],
    [
      'passwords in a file',
      { parameters: { file: 'parameters.yml' } },
      'parameters: got a file, wanted { ssm: true }',
    ],
    [
      'a certificate from elsewhere',
      cluster({ caFile: '/etc/pve/pve-root-ca.pem' }),
      'clusters.lab.caFile: got /etc/pve/',
    ],
    [
      'a token among the passwords',
      cluster({ token: { ssm: '/egress/test/passwords/token' } }),
      'clusters.lab.token: got a parameter below /egress/test/passwords/',
    ],
  ])('refuse %s', (_, config, complaint) => {
    expect(() => read(config, {})).toThrow(complaint)
  })

  it('take an existing network as it is', () => {
    const { network, subnetIds, securityGroupIds } = read({}, {})
    expect({ network, subnetIds, securityGroupIds }).toEqual({
      network: 'existing',
      subnetIds: ['subnet-0a1b2c3d'],
      securityGroupIds: ['sg-0a1b2c3d'],
    })
  })

  it('let out to the API and the proxies of each network, by the ports of the configuration', () => {
    const config = {
      ...cluster({ endpoints: [...lab.endpoints, { ...lab.endpoints[0], url: 'https://pve3.lan:443' }] }),
      verify: { probeFrom: ['10.0.0.0/8'] },
    }
    const { vpn: made } = read(config, {
      network: { vpn: { ...vpn, clusterCidrs: ['192.168.10.0/24', '192.168.20.0/24'] } },
    })
    const rules = made.egress.map(({ CidrIp, FromPort, ToPort }) => `${CidrIp} ${FromPort}-${ToPort}`)
    expect(rules).toEqual([
      '192.168.10.0/24 8006-8006',
      '192.168.10.0/24 443-443',
      '192.168.10.0/24 3128-3128',
      '192.168.20.0/24 8006-8006',
      '192.168.20.0/24 443-443',
      '192.168.20.0/24 3128-3128',
    ])
    expect(Object.keys(made.routes)).toEqual(['VpnRoute1', 'VpnRoute2'])
  })

  it('make of a VPN what the stage says of its zones, its tunnels and its log, and else the usual', () => {
    const config = { verify: { probeFrom: ['10.20.0.0/16'] } }
    const made = (more: object) => read(config, { network: { vpn: { ...vpn, ...more } } }).vpn
    expect(made({})).toMatchObject({
      zones: [{ 'Fn::Select': [0, { 'Fn::GetAZs': '' }] }, { 'Fn::Select': [1, { 'Fn::GetAZs': '' }] }],
      tunnels: '2',
      alarms: `, "\${VpnDown.Arn}", "\${VpnTunnelDown.Arn}"`,
      flowLogs: 'REJECT',
    })
    const zones = ['eu-central-1b', 'eu-central-1c']
    expect(made({ zones, tunnels: 1, flowLogs: 'none' })).toMatchObject({
      zones,
      tunnels: '1',
      alarms: `, "\${VpnDown.Arn}"`,
      flowLogs: 'none',
    })
    expect(() => made({ zones: ['eu-central-1b', 'eu-central-1b'] })).toThrow('wanted two different zones')
    expect(() => made({ tunnels: 3 })).toThrow('wanted 1 or 2')
    expect(() => made({ flowLogs: true })).toThrow('wanted rejected, all or none')
  })

  it('let out to a range of ports where the stage says so', () => {
    const { vpn: made } = read(
      { verify: { probeFrom: ['10.20.0.0/16'] } },
      { network: { vpn: { ...vpn, proxyPorts: { from: 3128, to: 3200 } } } },
    )
    expect(made.egress.map(({ FromPort, ToPort }) => [FromPort, ToPort])).toContainEqual([3128, 3200])
  })

  it.each([
    ['no range admits the functions', { probeFrom: ['192.168.0.0/16'] }],
    ['a range admits some of them only', { probeFrom: ['10.20.0.0/24'] }],
  ])('refuse a VPC whose probes the proxies would turn away: %s', (_, verify) => {
    const defaults = {
      ...aDocument().defaults,
      proxy: { protocol: 'http', port: 3128, allow: ['192.168.0.0/16'] },
    }
    expect(() => read({ verify, defaults }, { network: { vpn } })).toThrow('verify.probeFrom: got')
    expect(() => read({ verify: { ...verify, probe: 'none' }, defaults }, { network: { vpn } })).not.toThrow()
  })

  it('put an SDK into the functions where the stage names a layer, and nothing where it does not', () => {
    expect(read({}, {}).tracing).toEqual({
      mode: false,
      layers: [],
      environment: {},
      policies: [{ Ref: 'NetworkPolicy' }],
    })
    const layers = ['arn:aws:lambda:eu-central-1:123456789012:layer:AWSOpenTelemetryDistroJs:9']
    expect(
      read({}, { tracing: { layers, environment: { OTEL_SERVICE_NAME: 'egress' } } }).tracing,
    ).toMatchObject({
      mode: 'Active',
      layers,
      environment: { AWS_LAMBDA_EXEC_WRAPPER: '/opt/otel-instrument', OTEL_SERVICE_NAME: 'egress' },
    })
  })

  it.each([
    [
      { layers: ['AWSOpenTelemetryDistroJs'] },
      'tracing.layers.0: got "AWSOpenTelemetryDistroJs", wanted an ARN',
    ],
    [{ environment: { OTEL_EXPORTER_OTLP_HEADERS: 'api-key=x' } }, 'wanted no headers'],
    [{ environment: { EGRESS_CONFIG: 'other.yml' } }, 'wanted names that begin with OTEL_'],
  ])('refuse an SDK that is told what does not belong there: %j', (tracing, complaint) => {
    const layers = ['arn:aws:lambda:eu-central-1:123456789012:layer:x:9']
    const stage = { tracing: { layers, ...tracing } }
    expect(() => read({}, stage)).toThrow(complaint)
    expect(() => read({}, stage)).not.toThrow('api-key')
  })

  it('complain of everything in a stage file at once, by path', () => {
    const stage = {
      region: 'frankfurt',
      concurrency: { create: 1 },
      logRetentionDays: 31,
      network: { vpn: { ...vpn, dynamodbPrefixListId: 'dynamodb', clusterCidrs: [] } },
      reservedConcurrency: 5,
    }
    expect(() => read({}, stage)).toThrow(
      expect.objectContaining({
        message: expect.stringMatching(
          /region: [\s\S]*concurrency\.create: got 1, wanted at least 2[\s\S]*logRetentionDays: got 31[\s\S]*network\.vpn\.clusterCidrs: got a list of 0, wanted at least one[\s\S]*network\.vpn\.dynamodbPrefixListId: [\s\S]*reservedConcurrency: /,
        ),
      }),
    )
    for (const network of [{}, { ...existing, vpn }])
      expect(() => read({}, { network })).toThrow(
        'network: got an object, wanted { existing: … } or { vpn: … }',
      )
  })

  it.each(['Prod', 'prod.eu', 'prod_1', '../prod', 'a-stage-of-many-letters'])(
    'refuse a stage whose name no queue could bear: %s',
    (name) => {
      expect(() => readSettings(folder, name)).toThrow(
        `--stage: got ${JSON.stringify(name)}, wanted a name of lower-case letters, digits and hyphens, at most 20`,
      )
    },
  )

  it('say which files of a stage are not there, and where to take them from', () => {
    const wanted = (path: string) =>
      `${path}: got no such file, wanted a copy of ${path.replace('new', 'example')}`
    expect(() => readSettings(folder, 'new')).toThrow(wanted('config/new.yml'))
    expect(() => readSettings(folder, 'new')).toThrow(wanted('infra/stages/new.yml'))
    writeFileSync(join(folder, 'config/new.yml'), stringify(aDocument(onAws)))
    expect(() => readSettings(folder, 'new')).toThrow(wanted('infra/stages/new.yml'))
    expect(() => readSettings(folder, 'new')).not.toThrow('config/new.yml:')
  })
})
