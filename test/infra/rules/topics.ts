import { outcomes } from '../../../local/resources.ts'
import { list, ofType, type Template, target } from '../template.ts'
import type { Rule } from './rule.ts'

/** By AWS's own key of SNS: for any other, every role that publishes would need a right on it. */
export const outcomesAreEncrypted: Rule = ({ Resources }) => {
  const key = Resources.OutcomeTopic?.Properties.KmsMasterKeyId
  if (key === undefined) return ['OutcomeTopic is not encrypted']
  return key === 'alias/aws/sns' ? [] : [`OutcomeTopic is encrypted with ${key}, which no role may use`]
}

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

/** One that keeps an order tells queues of its own kind alone, and no person. */
export const topicsTellAnybody: Rule = (template) =>
  ofType(template, 'AWS::SNS::Topic')
    .filter(([, { Properties }]) => Properties.FifoTopic !== undefined)
    .map(([name]) => `${name} tells queues of one kind alone`)

/** Outcomes are what the functions say, by their roles, and alarms what CloudWatch says: the account itself may listen. */
export const topicsAreSpokenToByOursOnly: Rule = (template) =>
  ofType(template, 'AWS::SNS::TopicPolicy').flatMap(([name, { Properties }]) =>
    list(Properties.PolicyDocument.Statement)
      .filter(({ Effect }) => Effect === 'Allow')
      .flatMap(({ Action, Principal }) => list(Action).map((action) => ({ action, by: Principal?.Service })))
      .filter(({ action, by }) => !(by ? /^sns:Publish$/ : /^sns:(Subscribe|Get\w+|List\w+)$/).test(action))
      .map(({ action, by = 'others' }) => `${name} lets ${by} ${action}`),
  )

const EVENTS = ['ProxyReady', 'ProxyFailed', 'ProxyChanged', 'ProxyDeleted']

/** Whoever is named in the stage is told of failures alone, which shows the others how. */
export const aSubscriptionShowsHowToFilter: Rule = (template, { alarmEmail }) => {
  if (alarmEmail === undefined) return []
  const filters = ofType(template, 'AWS::SNS::Subscription').flatMap(([, { Properties }]) =>
    list(Properties.FilterPolicy?.eventType),
  )
  const unknown = filters.filter((type) => !EVENTS.includes(type))
  if (filters.length === 0) return ['no subscription filters by eventType']
  // The body calls it `type`.
  const byBody = ofType(template, 'AWS::SNS::Subscription').filter(
    ([, { Properties }]) => Properties.FilterPolicy && Properties.FilterPolicyScope === 'MessageBody',
  )
  if (byBody.length > 0)
    return byBody.map(([name]) => `${name} looks for eventType in the body, where it is not`)
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
      for (const [name, { Properties }] of rules) {
        const { EventPattern: pattern, State, EventBusName } = Properties
        if (State === 'DISABLED') found.push(`${name} is disabled`)
        if (EventBusName !== undefined) found.push(`${name} listens to another bus`)
        if (list(pattern.source).join() !== 'egress.requests')
          found.push(`${name} listens to ${pattern.source}`)
        // The default bus may be open to other accounts.
        if (target(list(pattern.account)[0]) !== 'AWS::AccountId')
          found.push(`${name} listens to other accounts`)
        for (const { RetryPolicy, ...given } of list(Properties.Targets)) {
          // The queue gets the whole envelope, which the functions open.
          const changed = ['Input', 'InputPath', 'InputTransformer'].filter((key) => key in given)
          if (changed.length > 0) found.push(`${name} sends something else than the event (${changed})`)
          // As long as EventBridge does unless told otherwise.
          if (!(RetryPolicy?.MaximumEventAgeInSeconds === 86_400 && RetryPolicy.MaximumRetryAttempts === 185))
            found.push(`${name} gives up before a day has passed`)
        }
        for (const { Arn, DeadLetterConfig } of list(Properties.Targets))
          for (const to of [Arn, DeadLetterConfig?.Arn].map(target))
            if (to !== undefined && !maySend(template, name, to))
              found.push(`${to} does not let ${name} send`)
      }
      return found
    },
  )

const maySend = (template: Template, source: string, queue: string): boolean =>
  ofType(template, 'AWS::SQS::QueuePolicy')
    .filter(([, { Properties }]) => list(Properties.Queues).some((one) => target(one) === queue))
    .flatMap(([, { Properties }]) => list(Properties.PolicyDocument.Statement))
    .some(
      ({ Effect, Action, Resource, Condition }) =>
        Effect === 'Allow' &&
        list(Action).includes('sqs:SendMessage') &&
        target(Resource) === queue &&
        target(Condition?.ArnEquals?.['aws:SourceArn']) === source,
    )

/** `egress events` and `--wait` hear of everything, in the envelope that they open. */
export const theStandingSubscriberHearsEverything: Rule = (template) => {
  const [, subscription] =
    ofType(template, 'AWS::SNS::Subscription').find(
      ([, { Properties }]) => target(Properties.Endpoint) === 'EventsQueue',
    ) ?? []
  if (!subscription) return ['nothing subscribes EventsQueue']
  const { TopicArn, FilterPolicy, RawMessageDelivery } = subscription.Properties
  const found = []
  if (target(TopicArn) !== 'OutcomeTopic') found.push(`EventsQueue hears of ${target(TopicArn)}`)
  if (FilterPolicy) found.push('EventsQueue hears of some events only')
  if (RawMessageDelivery) found.push('EventsQueue gets events without their envelope')
  const kept = template.Resources.EventsQueue?.Properties.MessageRetentionPeriod
  if (kept !== outcomes.queue.retentionSeconds) found.push(`EventsQueue keeps events for ${kept} s`)
  if (!maySend(template, 'OutcomeTopic', 'EventsQueue'))
    found.push('EventsQueue does not let OutcomeTopic send')
  return found
}

/** An alarm that tells a topic to which nobody listens tells nobody. */
export const whomTheStageNamesIsTold: Rule = (template, { alarmEmail }) => {
  if (alarmEmail === undefined) return []
  const told = ofType(template, 'AWS::SNS::Subscription')
    .filter(([, { Properties }]) => Properties.Protocol === 'email' && Properties.Endpoint === alarmEmail)
    .map(([, { Properties }]) => target(Properties.TopicArn))
  return ['AlarmTopic', 'OutcomeTopic']
    .filter((topic) => !told.includes(topic))
    .map((topic) => `${alarmEmail} is told nothing of ${topic}`)
}
