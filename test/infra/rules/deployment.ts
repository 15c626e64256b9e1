import { readFileSync } from 'node:fs'
import { StageAddresses } from '../../../cli/on-stage.ts'
import { list, ofType, target } from '../template.ts'
import type { Rule } from './rule.ts'

/** The zips hold the configuration: what clusters there are, and where. */
export const zipsLieInAClosedBucket: Rule = (template) =>
  ofType(template, 'AWS::S3::Bucket').flatMap(([name, { Properties }]) => {
    const open = ['BlockPublicAcls', 'BlockPublicPolicy', 'IgnorePublicAcls', 'RestrictPublicBuckets'].filter(
      (block) => Properties.PublicAccessBlockConfiguration?.[block] !== true,
    )
    const found = open.map((block) => `${name} lacks ${block}`)
    if (!Properties.BucketEncryption) found.push(`${name} is not encrypted`)
    const tlsOnly = ofType(template, 'AWS::S3::BucketPolicy')
      .filter(([, policy]) => target(policy.Properties.Bucket) === name)
      .flatMap(([, policy]) => list(policy.Properties.PolicyDocument.Statement))
      .some(
        ({ Effect, Condition }) =>
          Effect === 'Deny' && String(Condition?.Bool?.['aws:SecureTransport']) === 'false',
      )
    if (!tlsOnly) found.push(`${name} can be read without TLS`)
    return found
  })

/** What costs money says whose it is. CloudFormation hands the stack's tags on to all that takes tags; functions bear their own. */
export const functionsSayWhoseTheyAre: Rule = (template, { stage }) =>
  ofType(template, 'AWS::Lambda::Function').flatMap(([name, { Properties }]) => {
    const tags = new Map(list(Properties.Tags).map(({ Key, Value }) => [Key, Value]))
    return tags.get('application') === 'egress-proxies' && tags.get('stage') === stage
      ? []
      : [`${name} bears no tags of its application and stage`]
  })

/** Where each address of a stage leads, for `egress --stage`. */
const ADDRESSES: Record<string, string> = {
  region: 'AWS::Region',
  createQueueUrl: 'CreateQueue',
  deleteQueueUrl: 'DeleteQueue',
  createDeadLettersUrl: 'CreateDeadLetters',
  deleteDeadLettersUrl: 'DeleteDeadLetters',
  eventsQueueUrl: 'EventsQueue',
  proxiesTable: 'ProxiesTable',
  claimsTable: 'ClaimsTable',
  topicArn: 'OutcomeTopic',
}

export const theStageSaysWhereEverythingIs: Rule = (template, { stage }) => {
  const { Name, Type, Value } = template.Resources.StageParameter?.Properties ?? {}
  if (Name !== `/egress/stages/${stage}`) return [`the stage is looked for in /egress/stages/${stage}`]
  const text = String(Value?.['Fn::Sub'] ?? '')
  let said: Record<string, string>
  try {
    said = StageAddresses.parse(JSON.parse(text))
  } catch (error) {
    return [`StageParameter is not what egress --stage reads: ${error}`]
  }
  const wrong = Object.entries(said)
    .filter(([address, value]) => value !== `\${${ADDRESSES[address]}}`)
    .map(([address, value]) => `StageParameter: ${address} is ${value}`)
  return Type === 'String' ? wrong : [...wrong, `StageParameter is a ${Type}`]
}

const PAGE = readFileSync(new URL('../../../docs/aws.md', import.meta.url), 'utf8')

/** What people are told to look up is there to be found. */
export const outputsThatPeopleAreToldOfAreThere: Rule = (template) =>
  [...new Set(PAGE.match(/\b[A-Z]\w+(?:QueueArn|TopicArn|ConnectionId)\b/g))]
    // In a network of somebody else's there is no VPN of ours.
    .filter((name) => name !== 'VpnConnectionId' || 'VpnConnection' in template.Resources)
    .filter((name) => !(name in (template.Outputs ?? {})))
    .map((name) => `docs/aws.md names the output ${name}, which is not there`)
