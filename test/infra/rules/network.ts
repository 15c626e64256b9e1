import { list, ofType, type Template, target } from '../template.ts'
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
  const isToEndpoints = (rule: Record<string, unknown>) =>
    target(rule.DestinationSecurityGroupId) === 'EndpointSecurityGroup'
  if (!rules.some(isToEndpoints)) found.push('FunctionSecurityGroup does not let out to the endpoints')
  if (!rules.some(({ DestinationPrefixListId }) => DestinationPrefixListId))
    found.push('FunctionSecurityGroup does not let out to DynamoDB')
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
  for (const [name, { Type, Properties }] of Object.entries(template.Resources)) {
    if (Type.startsWith('AWS::EC2::') && !MADE.includes(Type)) found.push(`${name}: a ${Type} is a way out`)
    if (Type === 'AWS::EC2::SecurityGroupIngress' && target(Properties.GroupId) === 'FunctionSecurityGroup')
      found.push(`${name} lets somebody in`)
  }
  for (const [name, { Properties }] of ofType(template, 'AWS::EC2::Subnet'))
    if (Properties.MapPublicIpOnLaunch) found.push(`${name} gives out public addresses`)
  return found
}

/** What a network without the internet is made of; routes come by the VPN and by the gateway endpoint alone. */
const MADE = [
  'VPC',
  'Subnet',
  'RouteTable',
  'SubnetRouteTableAssociation',
  'VPNGateway',
  'VPCGatewayAttachment',
  'VPNGatewayRoutePropagation',
  'CustomerGateway',
  'VPNConnection',
  'VPNConnectionRoute',
  'SecurityGroup',
  'SecurityGroupIngress',
  'SecurityGroupEgress',
  'VPCEndpoint',
  'FlowLog',
].map((kind) => `AWS::EC2::${kind}`)

/** The subnets of a function, where the stack makes them. */
const subnetsOf = (template: Template) =>
  new Set(
    ofType(template, 'AWS::Lambda::Function').flatMap(([, { Properties }]) =>
      list(Properties.VpcConfig?.SubnetIds).map(target),
    ),
  )

/** A subnet without its route table has the VPC's own, which knows no cluster; and two in one zone fail as one. */
export const everySubnetHasAWayToTheClusters: Rule = (template, { clusterCidrs }) => {
  if (!clusterCidrs) return []
  const of = (type: string) => ofType(template, `AWS::EC2::${type}`).map(([, { Properties }]) => Properties)
  const gateways = of('VPCGatewayAttachment').map(({ VpnGatewayId }) => target(VpnGatewayId))
  const [connection] = of('VPNConnection')
  const found = []
  const propagated = of('VPNGatewayRoutePropagation')
    .filter(({ VpnGatewayId }) => gateways.includes(target(VpnGatewayId)))
    .flatMap(({ RouteTableIds }) => list(RouteTableIds).map(target))
  if (!gateways.includes(target(connection?.VpnGatewayId)))
    found.push('the VPN ends at no gateway of the VPC')
  const subnets = [...subnetsOf(template)]
  const zones = subnets.map((name) =>
    JSON.stringify(template.Resources[name ?? '']?.Properties.AvailabilityZone),
  )
  if (new Set(zones).size < 2) found.push('all functions are in one zone')
  for (const subnet of subnets) {
    const table = of('SubnetRouteTableAssociation').find(({ SubnetId }) => target(SubnetId) === subnet)
    if (!propagated.includes(target(table?.RouteTableId)))
      found.push(`${subnet} has no route to the clusters`)
    const toDynamoDb = of('VPCEndpoint').some(
      ({ VpcEndpointType, RouteTableIds }) =>
        VpcEndpointType === 'Gateway' &&
        list(RouteTableIds).some((one) => target(one) === target(table?.RouteTableId)),
    )
    if (!toDynamoDb) found.push(`${subnet} has no route to DynamoDB`)
  }
  return found
}

/** An endpoint is found by AWS's usual names, stands in every subnet, and opens to the functions and nobody else. */
export const endpointsOpenToTheFunctions: Rule = (template, { clusterCidrs }) => {
  if (!clusterCidrs) return []
  const found = []
  const { EnableDnsSupport, EnableDnsHostnames } = template.Resources.Vpc?.Properties ?? {}
  if (EnableDnsSupport !== true || EnableDnsHostnames !== true)
    found.push('Vpc does not answer by the names of its endpoints')
  const ingress = [
    ...list(template.Resources.EndpointSecurityGroup?.Properties.SecurityGroupIngress),
    ...ofType(template, 'AWS::EC2::SecurityGroupIngress')
      .filter(([, { Properties }]) => target(Properties.GroupId) === 'EndpointSecurityGroup')
      .map(([, { Properties }]) => Properties),
  ]
  const isFunctions = ({ IpProtocol, FromPort, ToPort, SourceSecurityGroupId }: Record<string, unknown>) =>
    IpProtocol === 'tcp' &&
    FromPort === 443 &&
    ToPort === 443 &&
    target(SourceSecurityGroupId) === 'FunctionSecurityGroup'
  if (ingress.length !== 1 || !ingress.every(isFunctions))
    found.push('EndpointSecurityGroup opens to others than the functions, or not to them')
  const egress = list(template.Resources.EndpointSecurityGroup?.Properties.SecurityGroupEgress)
  // Without any, EC2 lets everything out.
  if (egress.length === 0 || egress.some(({ CidrIp }) => CidrIp !== '127.0.0.1/32'))
    found.push('EndpointSecurityGroup lets endpoints call somebody')
  for (const [name, { Properties }] of ofType(template, 'AWS::EC2::VPCEndpoint')) {
    if (Properties.VpcEndpointType !== 'Interface') continue
    const groups = list(Properties.SecurityGroupIds).map(target)
    if (groups.join() !== 'EndpointSecurityGroup')
      found.push(`${name} is guarded by ${groups.join() || 'nothing'}`)
    const missing = [...subnetsOf(template)].filter(
      (subnet) => !list(Properties.SubnetIds).some((one) => target(one) === subnet),
    )
    if (missing.length > 0) found.push(`${name} does not stand in ${missing.join()}`)
  }
  return found
}

const WEAK_GROUPS_END = 14

/** Both tunnels by IKEv2, AES-256, SHA-2 and large groups, with keys that AWS makes up and no template holds. */
export const theTunnelsAreStrong: Rule = (template, { clusterCidrs }) => {
  if (!clusterCidrs) return []
  return ofType(template, 'AWS::EC2::VPNConnection').flatMap(([name, { Properties }]) => {
    const tunnels = list(Properties.VpnTunnelOptionsSpecifications)
    const found = []
    if (Properties.StaticRoutesOnly !== true)
      found.push(`${name} waits for routes by BGP, which nobody announces`)
    if (tunnels.length !== 2) found.push(`${name} says nothing of one of its tunnels`)
    for (const tunnel of tunnels) {
      const values = (key: string) => list(tunnel[key]).map(({ Value }: { Value: unknown }) => Value)
      const all = (keys: string[], test: (value: unknown) => boolean) =>
        keys.every((key) => values(key).length > 0 && values(key).every(test))
      const isStrong =
        // A tunnel that fell silent is built up again, and not left until somebody comes.
        tunnel.DPDTimeoutAction === 'restart' &&
        all(['IKEVersions'], (value) => value === 'ikev2') &&
        all(['Phase1DHGroupNumbers', 'Phase2DHGroupNumbers'], (value) => Number(value) >= WEAK_GROUPS_END) &&
        all(['Phase1EncryptionAlgorithms', 'Phase2EncryptionAlgorithms'], (value) =>
          /^AES256/.test(String(value)),
        ) &&
        all(['Phase1IntegrityAlgorithms', 'Phase2IntegrityAlgorithms'], (value) =>
          /^SHA2-/.test(String(value)),
        )
      if (!isStrong) found.push(`${name} would agree to a weak tunnel`)
      if (tunnel.PreSharedKey !== undefined) found.push(`${name} holds the key of a tunnel`)
    }
    return found
  })
}

/** What a security group refused is the first question when no proxy becomes ready. */
export const trafficIsNoted: Rule = (template, { clusterCidrs }) => {
  if (!clusterCidrs) return []
  const [log] = ofType(template, 'AWS::EC2::FlowLog').map(([, { Properties }]) => Properties)
  if (log?.ResourceType !== 'VPC' || target(log.ResourceId) !== 'Vpc')
    return ['nobody notes the traffic of Vpc']
  const group = template.Resources[target(log.LogGroupName) ?? '']
  return group?.Type === 'AWS::Logs::LogGroup' ? [] : ['the flow log has no group of its own, with an end']
}

export const theVpnLeadsToEveryCluster: Rule = (template, { clusterCidrs = [], peerAddress }) => {
  const [, device] = ofType(template, 'AWS::EC2::CustomerGateway')[0] ?? []
  if (device?.Properties.IpAddress !== peerAddress)
    return [`the VPN leads to ${device?.Properties.IpAddress}, the stage says ${peerAddress}`]
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
    service: /^com\.amazonaws\.\$\{AWS::Region\}\.(\w+)$/.exec(Properties.ServiceName['Fn::Sub'])?.[1],
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
