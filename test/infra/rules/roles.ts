import { isDeepStrictEqual } from 'node:util'
import { needsOf } from '../needs.ts'
import { list, ofType, type Resource, type Template, target, walk } from '../template.ts'
import { functions, mappings, roomOf } from './functions.ts'
import type { Given, Rule } from './rule.ts'

type Statement = {
  Sid?: string
  Effect: 'Allow' | 'Deny'
  Action: string | string[]
  Resource: unknown
  Condition?: unknown
}

/** Where AWS knows nothing narrower. */
const WIDE: Record<string, string> = {
  'ec2:DescribeNetworkInterfaces': 'EC2 has no resource for what describes',
  'ec2:DescribeSubnets': 'EC2 has no resource for what describes',
}
/** Made and removed by Lambda under ids that nobody knows beforehand. Source: AWS Lambda, "Giving Lambda functions access to resources in a VPC". */
const INTERFACES = [
  'ec2:CreateNetworkInterface',
  'ec2:DeleteNetworkInterface',
  'ec2:AssignPrivateIpAddresses',
  'ec2:UnassignPrivateIpAddresses',
]

export const statementsOf = (template: Template, roleName: string): Statement[] => {
  const role = template.Resources[roleName]
  const managed = list(role?.Properties.ManagedPolicyArns).map((arn) => template.Resources[target(arn) ?? ''])
  const attached = ofType(template, 'AWS::IAM::Policy').filter(([, { Properties }]) =>
    list(Properties.Roles).some((one) => target(one) === roleName),
  )
  return [
    ...list(role?.Properties.Policies).map(({ PolicyDocument }) => PolicyDocument),
    ...managed.map((policy) => policy?.Properties.PolicyDocument),
    ...attached.map(([, { Properties }]) => Properties.PolicyDocument),
  ].flatMap((document) => list<Statement>(document?.Statement))
}

/** What the parameter store does with the key of the secrets, in the name of who reads one. */
const byParameterStore = ({ Action, Condition }: Statement) =>
  list(Action).join() === 'kms:Decrypt' &&
  subOf((Condition as { StringEquals?: Record<string, unknown> })?.StringEquals?.['kms:ViaService']) ===
    `ssm.\${AWS::Region}.amazonaws.com`

/** `action resource` for everything that a role allows, but for its network and for what a service does with it. */
export function granted(template: Template, roleName: string, given: Given): Set<string> {
  return new Set(
    statementsOf(template, roleName)
      .filter((statement) => statement.Effect === 'Allow' && !byParameterStore(statement))
      .flatMap(({ Action, Resource }) =>
        list(Action)
          .filter((action) => !action.startsWith('ec2:'))
          .flatMap((action) => list(Resource).map((resource) => `${action} ${nameOf(resource, given)}`)),
      ),
  )
}

function nameOf(resource: unknown, { config }: Given): string {
  const parameter = /:parameter\/(.*)$/.exec(subOf(resource))?.[1]
  if (parameter !== undefined) {
    if (parameter === `egress/${config.deployment}/passwords/*`) return 'passwords'
    const tokens = Object.values(config.clusters).flatMap(({ token }) =>
      [token].flat().flatMap((one) => ('ssm' in one ? [one.ssm] : [])),
    )
    return tokens.some((name) => name.replace(/^\//, '') === parameter) ? 'tokens' : parameter
  }
  const path = /^\$\{\w+\.Arn\}(.*)$/.exec(subOf(resource))?.[1] ?? ''
  return `${target(resource) ?? JSON.stringify(resource)}${path}`
}

const subOf = (resource: unknown) =>
  typeof resource === 'object' && resource !== null && 'Fn::Sub' in resource
    ? String(resource['Fn::Sub'])
    : ''

const roleOf = ({ Properties }: Resource) => target(Properties.Role) ?? ''

export const everyFunctionHasARoleOfItsOwn: Rule = (template) => {
  const roles = functions(template).map(([, resource]) => roleOf(resource))
  return functions(template)
    .filter(
      ([, resource]) =>
        roles.filter((role) => role === roleOf(resource)).length > 1 ||
        !(roleOf(resource) in template.Resources),
    )
    .map(([name]) => `${name} has no role of its own`)
}

/** Who takes a role: Lambda those of its functions, and each other service the one that its resource names. */
const TAKEN_BY: Record<string, string> = {
  'AWS::Lambda::Function': 'lambda.amazonaws.com',
  'AWS::Scheduler::Schedule': 'scheduler.amazonaws.com',
  'AWS::EC2::FlowLog': 'vpc-flow-logs.amazonaws.com',
}

const takerOf = (template: Template, role: string): string | undefined =>
  Object.entries(TAKEN_BY).find(([type]) =>
    ofType(template, type).some(([, { Properties }]) =>
      [Properties.Role, Properties.Target?.RoleArn, Properties.DeliverLogsPermissionArn].some(
        (one) => target(one) === role,
      ),
    ),
  )?.[1]

export const rolesAreTakenByTheirServiceOnly: Rule = (template) =>
  ofType(template, 'AWS::IAM::Role').flatMap(([name, { Properties }]) => {
    const taker = takerOf(template, name)
    if (taker === undefined) return [`nobody takes ${name}`]
    return list(Properties.AssumeRolePolicyDocument.Statement)
      .filter(
        ({ Principal, Action }) =>
          !isDeepStrictEqual(Principal, { Service: taker }) || list(Action).join() !== 'sts:AssumeRole',
      )
      .map(() => `${name} can be taken by others than ${taker}`)
  })

/** Lambda takes a role only for the function that was made with it, by somebody who might pass it on. */
const BOUND_OTHERWISE = ['lambda.amazonaws.com']

/** A service that acts for whoever asks must be bound to what is ours, or somebody else's request would be carried out. */
export const servicesActForOurResourcesOnly: Rule = (template) => {
  const trusted = ofType(template, 'AWS::IAM::Role').map(
    ([name, { Properties }]) => [name, Properties.AssumeRolePolicyDocument] as const,
  )
  const topics = ofType(template, 'AWS::SNS::TopicPolicy').map(
    ([name, { Properties }]) => [name, Properties.PolicyDocument] as const,
  )
  return [...trusted, ...topics].flatMap(([name, document]) =>
    list(document.Statement)
      .filter(({ Effect, Principal }) => Effect === 'Allow' && Principal?.Service !== undefined)
      .filter(({ Principal }) => !BOUND_OTHERWISE.includes(Principal.Service))
      .filter(({ Condition }) => {
        const sources = Object.values<Record<string, unknown>>(Condition ?? {}).flatMap(
          (keys) => keys['aws:SourceArn'] ?? [],
        )
        return !sources.some((source) => isOurs(template, source))
      })
      .map(({ Principal }) => `${name}: ${Principal.Service} may act in it for somebody else's resources`),
  )
}

const isOurs = (template: Template, source: unknown): boolean =>
  (target(source) ?? '') in template.Resources ||
  // Those that have no name yet when their policy is written, by the account they must be of.
  /:\$\{AWS::AccountId\}:(alarm:egress-[\w-]+-|vpc-flow-log\/)\*$/.test(subOf(source))

/** What a function may do and its code does not. Also asked in the other direction, since a missing permission is an outage. */
export const rolesAllowWhatTheCodeCallsAndNoMore = async (
  template: Template,
  given: Given,
): Promise<string[]> => {
  const fed = mappings(template).map(([, { Properties }]) => target(Properties.FunctionName))
  const found = await Promise.all(
    functions(template).map(async ([name, resource]) => {
      const { needs, unknown } = await needsOf(roomOf(resource), fed.includes(name))
      const grants = granted(template, roleOf(resource), given)
      return [
        ...unknown,
        ...[...needs].filter((need) => !grants.has(need)).map((need) => `${roleOf(resource)} lacks ${need}`),
        ...[...grants]
          .filter((grant) => !needs.has(grant))
          .map((grant) => `${roleOf(resource)} needs no ${grant}`),
      ]
    }),
  )
  return found.flat()
}

export const nothingIsAllowedOnEverything: Rule = (template) => {
  const policies = [
    ...ofType(template, 'AWS::IAM::Role').flatMap(([name]) =>
      statementsOf(template, name).map((statement) => ({ name, statement })),
    ),
    ...['AWS::IAM::ManagedPolicy', 'AWS::IAM::Policy']
      .flatMap((type) => ofType(template, type))
      .flatMap(([name, { Properties }]) =>
        list<Statement>(Properties.PolicyDocument.Statement).map((statement) => ({ name, statement })),
      ),
  ]
  const found = policies
    .filter(({ statement }) => statement.Effect === 'Allow')
    .flatMap(({ name, statement: { Action, Resource } }) => {
      const actions = list(Action)
      const starred = actions
        .filter((action) => action.includes('*'))
        .map((action) => `${name} allows ${action}`)
      const wide = list(Resource).includes('*') ? actions.filter((action) => !(action in WIDE)) : []
      const half = list(Resource).flatMap((resource) => {
        const text = subOf(resource)
        return actions.filter((action) => text.includes('*') && !HALF_WIDE[action]?.test(text))
      })
      return [...starred, ...[...wide, ...half].map((action) => `${name} allows ${action} on everything`)]
    })
  return [...new Set(found)]
}

/** Where names are not known beforehand, or what is asked is asked of all: what the resource must end in all the same. */
const HALF_WIDE: Record<string, RegExp> = {
  ...Object.fromEntries(
    INTERFACES.map((action) => [action, /:ec2:\$\{AWS::Region\}:\$\{AWS::AccountId\}:\*\/\*$/]),
  ),
  'ssm:GetParameter': /:parameter\/egress\/[\w-]+\/passwords\/\*$/,
  'logs:DescribeLogGroups': /:logs:\$\{AWS::Region\}:\$\{AWS::AccountId\}:log-group:\*$/,
}

/** What a function needs, it may without a condition that its own calls might not meet, and nothing takes it back. */
export const whatIsAllowedIsNotTakenBack: Rule = (template) =>
  functions(template).flatMap(([, resource]) => {
    const role = roleOf(resource)
    return statementsOf(template, role)
      .filter((statement) =>
        statement.Effect === 'Deny'
          ? list(statement.Action).some((action) => !action.startsWith('ec2:'))
          : statement.Condition !== undefined && !byParameterStore(statement),
      )
      .map(
        ({ Sid, Effect }) => `${role}: ${Sid} ${Effect === 'Deny' ? 'takes back' : 'allows only sometimes'}`,
      )
  })

/** Said by what is meant: who, what and on what. A policy that says what is not meant allows the rest of AWS. */
export const policiesNameWhatTheyAllow: Rule = (template) =>
  Object.entries(template.Resources).flatMap(([name, { Properties }]) =>
    [...walk(Properties)].flatMap(({ path, value }) => {
      const key = path.at(-1) ?? ''
      if (['NotAction', 'NotResource', 'NotPrincipal'].includes(key)) return [`${name} says ${key}`]
      if (key !== 'Principal' || path.includes('PolicyDocument') === false) return []
      const statement = path.slice(0, -1).reduce((inner, step) => inner?.[step], Properties)
      const everybody = value === '*' || JSON.stringify(value).includes('"*"')
      // An endpoint's policy lets nobody in who has no right of their own.
      return everybody &&
        statement?.Effect === 'Allow' &&
        template.Resources[name]?.Type !== 'AWS::EC2::VPCEndpoint'
        ? [`${name} lets everybody in`]
        : []
    }),
  )

/** Policies that somebody else wrote change without us: only what traces need, of AWS. Nor is anybody given keys here. */
export const permissionsAreOurOwn: Rule = (template) => {
  const foreign = ofType(template, 'AWS::IAM::Role').flatMap(([name, { Properties }]) =>
    list(Properties.ManagedPolicyArns)
      .filter((arn) => !((target(arn) ?? '') in template.Resources))
      .filter((arn) => !subOf(arn).endsWith(':iam::aws:policy/AWSXRayDaemonWriteAccess'))
      .map((arn) => `${name} is given ${typeof arn === 'string' ? arn : subOf(arn)}`),
  )
  const people = ['AWS::IAM::User', 'AWS::IAM::Group', 'AWS::IAM::AccessKey', 'AWS::IAM::UserToGroupAddition']
  return [
    ...foreign,
    ...people.flatMap((type) =>
      ofType(template, type).map(([name]) => `${name} is somebody's way into the account`),
    ),
  ]
}

/** The interfaces are Lambda's to make. A function that was taken over must not get itself another network. */
export const codeCannotTouchItsNetwork: Rule = (template, { stage }) =>
  functions(template).flatMap(([name, resource]) => {
    const statements = statementsOf(template, roleOf(resource))
    const allowed = statements
      .filter(({ Effect }) => Effect === 'Allow')
      .flatMap(({ Action }) => list(Action))
      .filter((action) => action.startsWith('ec2:'))
    const wanted = [...INTERFACES, ...Object.keys(WIDE)].filter((action) => !allowed.includes(action))
    const denied = statements
      .filter(
        ({ Effect, Condition }) =>
          Effect === 'Deny' &&
          JSON.stringify(Condition) ===
            JSON.stringify({
              ArnEquals: {
                'lambda:SourceFunctionArn': {
                  'Fn::Sub': `arn:\${AWS::Partition}:lambda:\${AWS::Region}:\${AWS::AccountId}:function:egress-${stage}-*`,
                },
              },
            }),
      )
      .flatMap(({ Action }) => list(Action))
    return [
      ...wanted.map((action) => `${roleOf(resource)} lacks ${action}, so Lambda cannot place ${name}`),
      ...allowed
        .filter((action) => !denied.includes(action))
        .map((action) => `the code of ${name} may ${action}`),
    ]
  })
