import { list, ofType, target } from '../template.ts'
import type { Rule } from './rule.ts'

/** Where the stack makes the network itself: out to the clusters and to AWS's own endpoints, and no way else. */
export const nothingLeadsElsewhere: Rule = (template, { config, clusterCidrs }) => {
  if (!clusterCidrs) return []
  const group = template.Resources.FunctionSecurityGroup
  if (!group) return ['there is no FunctionSecurityGroup']
  const rules = [
    ...group.Properties.SecurityGroupEgress,
    ...ofType(template, 'AWS::EC2::SecurityGroupEgress')
      .filter(([, { Properties }]) => target(Properties.GroupId) === 'FunctionSecurityGroup')
      .map(([, { Properties }]) => Properties),
  ]
  const found = []
  if (group.Properties.SecurityGroupIngress) found.push('FunctionSecurityGroup lets somebody in')
  const probe = config.defaults.proxy.port
  for (const {
    CidrIp,
    IpProtocol,
    FromPort,
    ToPort,
    DestinationSecurityGroupId,
    DestinationPrefixListId,
  } of rules) {
    const toAws =
      FromPort === 443 &&
      ToPort === 443 &&
      IpProtocol === 'tcp' &&
      (target(DestinationSecurityGroupId) === 'EndpointSecurityGroup' ||
        /^pl-/.test(DestinationPrefixListId ?? ''))
    const toClusters =
      clusterCidrs.includes(CidrIp) &&
      IpProtocol === 'tcp' &&
      FromPort === ToPort &&
      [8006, probe].includes(FromPort)
    if (!toAws && !toClusters)
      found.push(`FunctionSecurityGroup lets out to ${CidrIp ?? 'somewhere'}, ports ${FromPort} to ${ToPort}`)
  }
  for (const cidr of clusterCidrs)
    for (const port of [8006, probe])
      if (!rules.some(({ CidrIp, FromPort }) => CidrIp === cidr && FromPort === port))
        found.push(`FunctionSecurityGroup does not let out to port ${port} of ${cidr}`)
  for (const type of [
    'AWS::EC2::InternetGateway',
    'AWS::EC2::NatGateway',
    'AWS::EC2::EIP',
    'AWS::EC2::Route',
  ])
    for (const [name] of ofType(template, type)) found.push(`${name}: a ${type} is a way out`)
  for (const [name, { Properties }] of ofType(template, 'AWS::EC2::Subnet'))
    if (Properties.MapPublicIpOnLaunch) found.push(`${name} gives out public addresses`)
  return found
}

export const theVpnLeadsToEveryCluster: Rule = (template, { clusterCidrs = [] }) => {
  const routes = ofType(template, 'AWS::EC2::VPNConnectionRoute').map(
    ([, { Properties }]) => Properties.DestinationCidrBlock,
  )
  return clusterCidrs
    .filter((cidr) => !routes.includes(cidr))
    .map((cidr) => `the VPN has no route to ${cidr}`)
}

const ENDPOINTS = {
  dynamodb: 'Gateway',
  sqs: 'Interface',
  sns: 'Interface',
  ssm: 'Interface',
  logs: 'Interface',
}

export const awsIsReachedWithoutTheInternet: Rule = (template, { clusterCidrs }) => {
  if (!clusterCidrs) return []
  const endpoints = ofType(template, 'AWS::EC2::VPCEndpoint').map(([, { Properties }]) => ({
    service: /\.(\w+)$/.exec(Properties.ServiceName['Fn::Sub'])?.[1],
    kind: Properties.VpcEndpointType,
    reached:
      Properties.VpcEndpointType === 'Gateway'
        ? Properties.RouteTableIds?.length > 0
        : Properties.PrivateDnsEnabled === true,
  }))
  return Object.entries(ENDPOINTS)
    .filter(
      ([service, kind]) =>
        !endpoints.some((one) => one.service === service && one.kind === kind && one.reached),
    )
    .map(([service, kind]) => `no ${kind.toLowerCase()} endpoint leads to ${service}`)
}

/** Keys of somebody else, brought along, open nothing from here; nor do ours open anything of somebody else's. */
export const endpointsServeTheAccountOnly: Rule = (template) =>
  ofType(template, 'AWS::EC2::VPCEndpoint')
    .filter(([, { Properties }]) => {
      const statements = list(Properties.PolicyDocument?.Statement)
      const isBound = ({ Condition }: { Condition?: { StringEquals?: Record<string, unknown> } }) =>
        ['aws:PrincipalAccount', 'aws:ResourceAccount'].every(
          (key) => target(Condition?.StringEquals?.[key]) === 'AWS::AccountId',
        )
      return statements.length === 0 || !statements.every(isBound)
    })
    .map(([name]) => `${name} serves other accounts too`)
