import { list, ofType, target } from '../template.ts'
import type { Rule } from './rule.ts'

export const outcomesAreEncrypted: Rule = ({ Resources }) =>
  Resources.OutcomeTopic?.Properties.KmsMasterKeyId ? [] : ['OutcomeTopic is not encrypted']

/** CloudWatch may not use AWS's own key of SNS: its alarms would get lost without a word. */
export const alarmsCanReachTheirTopic: Rule = (template) => {
  const topic = template.Resources.AlarmTopic
  if (!topic) return ['there is no AlarmTopic']
  const allowed = ofType(template, 'AWS::SNS::TopicPolicy')
    .filter(([, { Properties }]) => list(Properties.Topics).some((one) => target(one) === 'AlarmTopic'))
    .flatMap(([, { Properties }]) => Properties.PolicyDocument.Statement)
    .some(
      ({ Effect, Principal, Condition }) =>
        Effect === 'Allow' &&
        Principal?.Service === 'cloudwatch.amazonaws.com' &&
        Condition?.StringEquals?.['aws:SourceAccount'] !== undefined,
    )
  const found = []
  if (topic.Properties.KmsMasterKeyId === 'alias/aws/sns')
    found.push('AlarmTopic: CloudWatch cannot use alias/aws/sns')
  if (!allowed) found.push('AlarmTopic does not let the alarms of this account in')
  return found
}

export const topicsAreReachedByTlsOnly: Rule = (template) =>
  ofType(template, 'AWS::SNS::Topic')
    .filter(
      ([name]) =>
        !ofType(template, 'AWS::SNS::TopicPolicy')
          .filter(([, { Properties }]) => list(Properties.Topics).some((one) => target(one) === name))
          .flatMap(([, { Properties }]) => Properties.PolicyDocument.Statement)
          .some(
            ({ Effect, Condition }) =>
              Effect === 'Deny' && String(Condition?.Bool?.['aws:SecureTransport']) === 'false',
          ),
    )
    .map(([name]) => `${name} can be published to without TLS`)

const EVENTS = ['ProxyReady', 'ProxyFailed', 'ProxyChanged', 'ProxyDeleted']

export const aSubscriptionShowsHowToFilter: Rule = (template) => {
  const filters = ofType(template, 'AWS::SNS::Subscription').flatMap(([, { Properties }]) =>
    list(Properties.FilterPolicy?.eventType),
  )
  const unknown = filters.filter((type) => !EVENTS.includes(type))
  if (filters.length === 0) return ['no subscription filters by eventType']
  return unknown.map((type) => `a subscription waits for ${type}, which nobody publishes`)
}

/** The event bus is a way in for both events, and what it cannot deliver is a dead letter too. */
export const theEventBusLeadsToTheQueues: Rule = (template) =>
  Object.entries({ ProxyRequested: 'CreateQueue', ProxyDeletionRequested: 'DeleteQueue' }).flatMap(
    ([type, queue]) => {
      const rules = ofType(template, 'AWS::Events::Rule').filter(([, { Properties }]) =>
        list(Properties.EventPattern?.['detail-type']).includes(type),
      )
      const targets = rules.flatMap(([, { Properties }]) => list(Properties.Targets))
      const found = []
      if (!targets.some(({ Arn }) => target(Arn) === queue)) found.push(`no rule brings ${type} to ${queue}`)
      if (targets.some(({ DeadLetterConfig }) => !DeadLetterConfig))
        found.push(`the rule of ${type} drops what it cannot deliver`)
      return found
    },
  )
