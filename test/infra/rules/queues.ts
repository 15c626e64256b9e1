import { FailureCode, retryWindowSeconds } from '../../../lib/failure.ts'
import { receivesWithin } from '../../../lib/queue-settings.ts'
import { sources } from '../../../local/resources.ts'
import { list, ofType, type Resource, type Template, target } from '../template.ts'
import type { Rule } from './rule.ts'

type Named = [name: string, resource: Resource]

const queues = (template: Template) => ofType(template, 'AWS::SQS::Queue')
/** Logical ids of queues that feed a function. */
const fed = (template: Template) =>
  ofType(template, 'AWS::Lambda::EventSourceMapping').map(([, { Properties }]) =>
    target(Properties.EventSourceArn),
  )
const sourceQueues = (template: Template): Named[] =>
  queues(template).filter(([name]) => fed(template).includes(name))
const deadLettersOf = (template: Template, { Properties }: Resource): Named | undefined => {
  const name = target(Properties.RedrivePolicy?.deadLetterTargetArn)
  return queues(template).find(([other]) => other === name)
}

export const bothSidesHaveAQueue: Rule = (template, { stage }) =>
  sources
    .filter(
      (side) =>
        !sourceQueues(template).some(
          ([, { Properties }]) => Properties.QueueName === `egress-${stage}-${side}`,
        ),
    )
    .map((side) => `no function is fed by egress-${stage}-${side}`)

export const everyQueueThatFeedsAFunctionHasDeadLetters: Rule = (template) =>
  sourceQueues(template)
    .filter(([, queue]) => !deadLettersOf(template, queue))
    .map(([name]) => `${name} has no redrive policy to a queue of dead letters`)

/** The worker's own budget is time. The queue's is only for messages that kill whoever reads them, so no window may reach it. */
export const noWindowOfRetriesReachesMaxReceiveCount: Rule = (template, { config }) => {
  const needed = Math.max(
    ...FailureCode.options.map((code) =>
      receivesWithin(code, retryWindowSeconds(code, config.timings.retryWindowSeconds)),
    ),
  )
  return sourceQueues(template).flatMap(([name, { Properties }]) => {
    const max = Properties.RedrivePolicy?.maxReceiveCount
    if (max > 1000) return [`${name}: maxReceiveCount ${max}, SQS takes 1000 at most`]
    return max > needed ? [] : [`${name}: maxReceiveCount ${max}, but retries take up to ${needed} receives`]
  })
}

export const messagesOutliveEveryRetry: Rule = (template, { config }) => {
  const longest = Math.max(
    ...FailureCode.options.map((code) => retryWindowSeconds(code, config.timings.retryWindowSeconds)),
  )
  return sourceQueues(template)
    .filter(([, { Properties }]) => !(Properties.MessageRetentionPeriod >= 2 * longest))
    .map(
      ([name, { Properties }]) =>
        `${name} keeps messages for ${Properties.MessageRetentionPeriod} s, retries take ${longest} s`,
    )
}

const DAY = 86_400

export const deadLettersAreKeptLongest: Rule = (template, { config }) =>
  sourceQueues(template).flatMap(([name, queue]) => {
    const [deadName, dead] = deadLettersOf(template, queue) ?? []
    if (!dead) return []
    const [kept, before] = [dead.Properties.MessageRetentionPeriod, queue.Properties.MessageRetentionPeriod]
    const found = []
    if (kept !== 14 * DAY) found.push(`${deadName} keeps letters for ${kept} s, not 14 days`)
    if (!(kept > before)) found.push(`${deadName} keeps letters no longer than ${name} keeps messages`)
    // Or an old deletion, redriven, would meet no tombstone.
    if (!(config.timings.tombstoneDays * DAY > kept + before))
      found.push(`tombstones do not outlive ${name} and ${deadName}`)
    return found
  })

/** Who may use a queue for dead letters is said by the queue; and only there, by name. */
export const redriveIsAllowedToItsSourceOnly: Rule = (template) => {
  const dead = new Map(
    sourceQueues(template).flatMap(([, queue]) => {
      const found = deadLettersOf(template, queue)
      return found ? [[found[0], queue.Properties.QueueName as string] as const] : []
    }),
  )
  return queues(template).flatMap(([name, { Properties }]) => {
    const { redrivePermission, sourceQueueArns } = Properties.RedriveAllowPolicy ?? {}
    const source = dead.get(name)
    if (source === undefined)
      return redrivePermission === 'denyAll' ? [] : [`${name} would take any queue's dead letters`]
    const arns = list(sourceQueueArns).map((arn) => String((arn as { 'Fn::Sub'?: string })['Fn::Sub'] ?? ''))
    const only = redrivePermission === 'byQueue' && arns.length === 1 && arns[0]?.endsWith(`:${source}`)
    return only ? [] : [`${name} does not allow redrive to ${source} alone`]
  })
}

export const queuesAreEncrypted: Rule = (template) =>
  queues(template)
    // A key of KMS would have to let in everyone who sends or receives.
    .filter(([, { Properties }]) => Properties.SqsManagedSseEnabled !== true || Properties.KmsMasterKeyId)
    .map(([name]) => `${name} is not encrypted`)

export const queuesAreReachedByTlsOnly: Rule = (template) =>
  queues(template)
    .filter(([name]) => !policyOf(template, name).some((statement) => deniesPlainText(statement, name)))
    .map(([name]) => `${name} can be used without TLS`)

type Statement = {
  Effect: string
  Principal?: unknown
  Action: string | string[]
  Resource: unknown
  Condition?: Record<string, Record<string, unknown>>
}

const policyOf = (template: Template, queue: string): Statement[] =>
  ofType(template, 'AWS::SQS::QueuePolicy')
    .filter(([, { Properties }]) => list(Properties.Queues).some((one) => target(one) === queue))
    .flatMap(([, { Properties }]) => Properties.PolicyDocument.Statement)

const deniesPlainText = ({ Effect, Principal, Action, Resource, Condition }: Statement, name: string) =>
  Effect === 'Deny' &&
  Principal === '*' &&
  list(Action).includes('sqs:*') &&
  target(Resource) === name &&
  String(Condition?.Bool?.['aws:SecureTransport']) === 'false'

/** A service that may send must be bound to the one rule or topic it sends for, or any account's could. */
export const servicesSendForOurResourcesOnly: Rule = (template) =>
  queues(template).flatMap(([name]) =>
    policyOf(template, name)
      .filter(({ Effect }) => Effect === 'Allow')
      .filter(({ Condition, Action }) => {
        const source = target(Condition?.ArnEquals?.['aws:SourceArn'])
        return (
          source === undefined ||
          !(source in template.Resources) ||
          list(Action).some((action) => action !== 'sqs:SendMessage')
        )
      })
      .map(() => `${name}: somebody may send, not bound to a source of ours`),
  )

/** Every wait is in the message that waits; a delay of the queue would be added to each step. Empty answers are paid for. */
export const queuesDeliverAtOnceAndAreAskedPatiently: Rule = (template) =>
  queues(template).flatMap(([name, { Properties }]) => {
    const found = []
    if (Properties.DelaySeconds)
      found.push(`${name} holds every message back for ${Properties.DelaySeconds} s`)
    if (Properties.ReceiveMessageWaitTimeSeconds !== 20) found.push(`${name} is asked again and again`)
    // As long as a person looks at what no function is fed with.
    if (!fed(template).includes(name) && !(Properties.VisibilityTimeout <= 60))
      found.push(`${name} hides what was looked at for ${Properties.VisibilityTimeout} s`)
    if (Properties.FifoQueue !== undefined)
      found.push(`${name} is a queue of another kind, one message at a time`)
    if (Properties.MaximumMessageSize !== undefined)
      found.push(`${name} takes no message above ${Properties.MaximumMessageSize} bytes`)
    return found
  })
