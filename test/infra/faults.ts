import type { RuleName } from './rules/index.ts'
import type { Resource, Template } from './template.ts'

// biome-ignore lint/suspicious/noExplicitAny: whatever stands in the template
type Properties = Record<string, any>
type Resources = Record<string, Resource & { Properties: Properties }>

export type Fault = {
  title: string
  plant(resources: Resources, template: Template): void
  /** The rule that notices, and how its complaint begins. */
  says: `${RuleName}: ${string}`
}

const change = (name: string, changes: Properties) => (resources: Resources) => {
  Object.assign(properties(resources, name), changes)
}
const drop = (name: string, property: string) => (resources: Resources) => {
  delete properties(resources, name)[property]
}
const remove = (name: string) => (resources: Resources) => {
  properties(resources, name)
  delete resources[name]
}

/** @throws {Error} a fault planted nowhere would prove nothing */
function properties(resources: Resources, name: string): Properties {
  const found = resources[name]?.Properties
  if (!found) throw new Error(`there is no ${name} to plant a fault in`)
  return found
}

const statement = (resources: Resources, role: string, sid: string): Properties => {
  const { Policies = [], PolicyDocument } = properties(resources, role)
  const statements = [...Policies.map((policy: Properties) => policy.PolicyDocument), PolicyDocument].flatMap(
    (document) => document?.Statement ?? [],
  )
  const found = statements.find(({ Sid }: Properties) => Sid === sid)
  if (!found) throw new Error(`${role} has no statement ${sid}`)
  return found
}
const allow =
  (role: string, sid: string, changes: (statement: Properties) => void) => (resources: Resources) =>
    changes(statement(resources, role, sid))

/** Another text in its place, wherever the dashboard has it. */
const onTheDashboard = (text: string, other: string) => (resources: Resources) => {
  const body = properties(resources, 'Dashboard').DashboardBody
  if (!body['Fn::Sub'].includes(text)) throw new Error(`the dashboard does not say ${text}`)
  body['Fn::Sub'] = body['Fn::Sub'].replaceAll(text, other)
}

const MAPPING = 'CreateEventSourceMappingSQSCreateQueue'

/** One thing wrong each, as a slip of the hand would leave it. */
export const faults: Fault[] = [
  // CloudFormation's own rules
  {
    title: 'a property that is misspelt',
    plant: change('CreateQueue', { VisibilityTimeOut: 360 }),
    says: 'knownToCloudFormation: CreateQueue.VisibilityTimeOut: no such property',
  },
  {
    title: 'a property deep inside that is misspelt',
    plant: (resources) => {
      properties(resources, MAPPING).ScalingConfig = { MaxConcurrency: 4 }
    },
    says: `knownToCloudFormation: ${MAPPING}.ScalingConfig.MaxConcurrency: no such property`,
  },
  {
    title: 'a resource type that is misspelt',
    plant: (resources) => Object.assign(resources.CreateQueue ?? {}, { Type: 'AWS::SQS::Queu' }),
    says: 'knownToCloudFormation: CreateQueue: no resource type is called AWS::SQS::Queu',
  },
  {
    title: 'a property that is missing',
    plant: drop(MAPPING, 'FunctionName'),
    says: `knownToCloudFormation: ${MAPPING}.FunctionName is missing`,
  },
  {
    title: 'a text where a number belongs',
    plant: change('CreateQueue', { VisibilityTimeout: 'six minutes' }),
    says: 'knownToCloudFormation: CreateQueue.VisibilityTimeout: wanted a whole number',
  },
  {
    title: 'a reference into the void',
    plant: change('EventsSubscription', { TopicArn: { Ref: 'OutcomesTopic' } }),
    says: 'refersToWhatIsThere: EventsSubscription.Properties.TopicArn: there is no OutcomesTopic',
  },
  {
    title: 'an attribute that its resource does not have',
    plant: change('EventsSubscription', { Endpoint: { 'Fn::GetAtt': ['EventsQueue', 'Url'] } }),
    says: 'refersToWhatIsThere: EventsSubscription.Properties.Endpoint: EventsQueue, a AWS::SQS::Queue, has no attribute Url',
  },
  {
    title: 'a condition that nobody defines',
    plant: (resources) => Object.assign(resources.AlarmsByEmail ?? {}, { Condition: 'HasEmail' }),
    says: 'refersToWhatIsThere: AlarmsByEmail: there is no condition HasEmail',
  },
  {
    title: 'a circle of references',
    plant: change('CreateDeadLetters', {
      RedriveAllowPolicy: {
        redrivePermission: 'byQueue',
        sourceQueueArns: [{ 'Fn::GetAtt': ['CreateQueue', 'Arn'] }],
      },
    }),
    says: 'canBeMadeInSomeOrder: wait for each other: ',
  },
  {
    title: 'a name that two stages would share',
    plant: change('AlarmTopic', { TopicName: 'egress-alarms' }),
    says: 'namedByStage: AlarmTopic.TopicName does not start with egress-example-',
  },

  // queues
  {
    title: 'a function that is fed by another queue',
    plant: change(MAPPING, { EventSourceArn: { 'Fn::GetAtt': ['EventsQueue', 'Arn'] } }),
    says: 'bothSidesHaveAQueue: no function is fed by egress-example-create',
  },
  {
    title: 'a queue without redrive',
    plant: drop('DeleteQueue', 'RedrivePolicy'),
    says: 'everyQueueThatFeedsAFunctionHasDeadLetters: DeleteQueue has no redrive policy',
  },
  {
    // Report: DataBiosphere/azul#3708
    title: 'a maxReceiveCount of 5',
    plant: (resources) => {
      properties(resources, 'CreateQueue').RedrivePolicy.maxReceiveCount = 5
    },
    says: 'noWindowOfRetriesReachesMaxReceiveCount: CreateQueue: maxReceiveCount 5, but retries take up to 5',
  },
  {
    title: 'a maxReceiveCount that SQS refuses',
    plant: (resources) => {
      properties(resources, 'CreateQueue').RedrivePolicy.maxReceiveCount = 1001
    },
    says: 'noWindowOfRetriesReachesMaxReceiveCount: CreateQueue: maxReceiveCount 1001, SQS takes 1000 at most',
  },
  {
    title: 'messages that end before their retries do',
    plant: change('CreateQueue', { MessageRetentionPeriod: 86_400 }),
    says: 'messagesOutliveEveryRetry: CreateQueue keeps messages for 86400 s',
  },
  {
    title: 'dead letters that are soon gone',
    plant: change('CreateDeadLetters', { MessageRetentionPeriod: 345_600 }),
    says: 'deadLettersAreKeptLongest: CreateDeadLetters keeps letters for 345600 s, not 14 days',
  },
  {
    title: 'dead letters that any queue may send',
    plant: drop('CreateDeadLetters', 'RedriveAllowPolicy'),
    says: 'redriveIsAllowedToItsSourceOnly: CreateDeadLetters does not allow redrive to egress-example-create alone',
  },
  {
    title: 'dead letters of the other queue',
    plant: (resources) => {
      const { RedrivePolicy } = properties(resources, 'CreateQueue')
      RedrivePolicy.deadLetterTargetArn = { 'Fn::GetAtt': ['DeleteDeadLetters', 'Arn'] }
    },
    says: 'redriveIsAllowedToItsSourceOnly: CreateDeadLetters would take any queue',
  },
  {
    title: 'a queue in plain text',
    plant: change('EventsQueue', { SqsManagedSseEnabled: false }),
    says: 'queuesAreEncrypted: EventsQueue is not encrypted',
  },
  {
    title: 'a queue under a key that nobody may use',
    plant: change('CreateQueue', { KmsMasterKeyId: 'alias/ours' }),
    says: 'queuesAreEncrypted: CreateQueue is not encrypted',
  },
  {
    title: 'a queue without its policy',
    plant: remove('DeleteDeadLettersPolicy'),
    says: 'queuesAreReachedByTlsOnly: DeleteDeadLetters can be used without TLS',
  },
  {
    title: 'a queue that any event bus may send to',
    plant: (resources) => {
      delete properties(resources, 'CreateQueuePolicy').PolicyDocument.Statement[1].Condition
    },
    says: 'servicesSendForOurResourcesOnly: CreateQueue: somebody may send',
  },

  {
    title: 'letters that are hidden for half a day when somebody looked',
    plant: change('DeleteDeadLetters', { VisibilityTimeout: 43_200 }),
    says: 'queuesDeliverAtOnceAndAreAskedPatiently: DeleteDeadLetters hides what was looked at for 43200 s',
  },
  {
    title: 'a queue that holds every message back',
    plant: change('CreateQueue', { DelaySeconds: 900 }),
    says: 'queuesDeliverAtOnceAndAreAskedPatiently: CreateQueue holds every message back for 900 s',
  },

  // functions and what feeds them
  {
    title: 'a handler that is not there',
    plant: change('CreateLambdaFunction', { Handler: 'functions/make/handler.handler' }),
    says: 'handlersExist: CreateLambdaFunction: there is no functions/make/handler.handler',
  },
  {
    title: 'an older runtime',
    plant: change('CreateLambdaFunction', { Runtime: 'nodejs22.x' }),
    says: 'runtimeIsNode24OnArm: CreateLambdaFunction is not nodejs24.x on arm64',
  },
  {
    title: 'a time-out that reaches the lease',
    plant: change('DeleteLambdaFunction', { Timeout: 300 }),
    says: 'functionsEndBeforeTheirLease: DeleteLambdaFunction: its time-out reaches its lease',
  },
  {
    // Report: github-aws-runners/terraform-aws-github-runner#5193
    // Report: cdklabs/cdk-nag#1798
    title: 'a visibility of five times the time-out',
    plant: change('CreateQueue', { VisibilityTimeout: 300 }),
    says: 'messagesStayHiddenSixTimesTheTimeOut: CreateQueue: hidden for 300 s, wanted 6 × 60 s',
  },
  {
    title: 'batches that fail as a whole',
    plant: drop(MAPPING, 'FunctionResponseTypes'),
    says: `batchesAreReportedInPart: ${MAPPING} does not report batch item failures`,
  },
  {
    // Report: github-aws-runners/terraform-aws-github-runner#5253
    // Report: github-aws-runners/terraform-aws-github-runner#2946
    // Report: seek-oss/skuba#1408
    title: 'concurrency without a bound',
    plant: drop(MAPPING, 'ScalingConfig'),
    says: `batchesAreSmallAndBounded: ${MAPPING} has no maximum concurrency`,
  },
  {
    title: 'batches of a hundred',
    plant: change(MAPPING, { BatchSize: 100, MaximumBatchingWindowInSeconds: 5 }),
    says: `batchesAreSmallAndBounded: ${MAPPING}: batches of 100`,
  },
  {
    title: 'batches at once that no stage file asked for',
    plant: (resources) => {
      properties(resources, MAPPING).ScalingConfig.MaximumConcurrency = 3
    },
    says: `batchesAtOnceAreThoseOfTheStage: ${MAPPING} takes 3 batches at once, the stage says 4`,
  },
  {
    title: 'a chain of messages that Lambda would end',
    plant: drop('DeleteLambdaFunction', 'RecursiveLoop'),
    says: 'messagesToItselfAreMeant: DeleteLambdaFunction sends to its own queue',
  },
  {
    title: 'a filter that throws away what nobody can read',
    plant: change(MAPPING, {
      FilterCriteria: { Filters: [{ Pattern: '{"body":{"type":["ProxyRequested"]}}' }] },
    }),
    says: `noMessageIsFilteredAway: ${MAPPING} deletes without a word`,
  },
  {
    title: 'a function outside of the network',
    plant: drop('DeleteLambdaFunction', 'VpcConfig'),
    says: 'functionsSitInSubnets: DeleteLambdaFunction is in no subnet',
  },
  {
    title: 'a variable that is missing',
    plant: (resources) => {
      delete properties(resources, 'DeleteLambdaFunction').Environment.Variables.EGRESS_CREATE_DLQ_URL
    },
    says: 'environmentsAreComplete: DeleteLambdaFunction lacks EGRESS_CREATE_DLQ_URL',
  },
  {
    title: 'a secret in the environment',
    plant: (resources) => {
      properties(resources, 'DeleteLambdaFunction').Environment.Variables.PROXMOX_TOKEN = 'egress@pve!ctl=…'
    },
    says: 'environmentsHoldNoSecret: DeleteLambdaFunction: PROXMOX_TOKEN looks like a secret',
  },
  {
    title: 'logs that are kept for ever',
    plant: drop('CreateLogGroup', 'RetentionInDays'),
    says: 'logsAreKeptAsLongAsTheStageSays: CreateLogGroup keeps everything for ever',
  },
  {
    title: 'a function without a log group',
    plant: remove('CreateLogGroup'),
    says: 'logsAreKeptAsLongAsTheStageSays: CreateLambdaFunction has no log group',
  },
  {
    title: 'logs that are kept longer than the stage says',
    plant: change('FlowLogGroup', { RetentionInDays: 3653 }),
    says: 'logsAreKeptAsLongAsTheStageSays: FlowLogGroup keeps everything for 3653',
  },
  {
    title: 'logs in plain text',
    plant: drop('GcLambdaFunction', 'LoggingConfig'),
    says: 'linesOfTheLogAreHandedOn: GcLambdaFunction logs Text, not JSON',
  },
  {
    title: 'a filter of the log that swallows metrics',
    plant: (resources) => {
      properties(resources, 'CreateLambdaFunction').LoggingConfig.ApplicationLogLevel = 'WARN'
    },
    says: 'linesOfTheLogAreHandedOn: CreateLambdaFunction keeps back lines below WARN',
  },
  {
    title: 'a log that is silent',
    plant: (resources) => {
      properties(resources, 'DeleteLambdaFunction').Environment.Variables.EGRESS_LOG_LEVEL = 'silent'
    },
    says: 'linesOfTheLogAreHandedOn: DeleteLambdaFunction writes no line below silent',
  },
  {
    title: 'a version of before that stays at work',
    plant: (resources) => {
      const Properties = { FunctionName: { Ref: 'CreateLambdaFunction' } }
      resources.Before = { Type: 'AWS::Lambda::Version', Properties }
    },
    says: 'thereIsOneVersionOfAFunction: Before keeps what was before',
  },
  {
    title: 'a variable that leads to the other queue',
    plant: (resources) => {
      properties(resources, 'GcLambdaFunction').Environment.Variables.EGRESS_CREATE_QUEUE_URL = {
        Ref: 'DeleteQueue',
      }
    },
    says: 'environmentsLeadWhereTheirNamesSay: GcLambdaFunction: EGRESS_CREATE_QUEUE_URL leads to DeleteQueue',
  },
  {
    title: 'queues that feed each other’s function',
    plant: (resources) => {
      const create = properties(resources, MAPPING)
      const other = properties(resources, 'DeleteEventSourceMappingSQSDeleteQueue')
      const { FunctionName } = create
      create.FunctionName = other.FunctionName
      other.FunctionName = FunctionName
    },
    says: `queuesFeedTheFunctionOfTheirName: ${MAPPING} feeds delete with egress-example-create`,
  },
  {
    title: 'a function that its reservation switches off',
    plant: change('CreateLambdaFunction', { ReservedConcurrentExecutions: 0 }),
    says: 'reservationsLeaveRoomForTheQueue: CreateLambdaFunction reserves 0 executions',
  },
  {
    title: 'a function without room',
    plant: change('CheckLambdaFunction', { MemorySize: 128 }),
    says: 'functionsHaveRoomToRun: CheckLambdaFunction has 128 MiB',
  },
  {
    title: 'a function that anyone may call by its address',
    plant: (resources) => {
      const Properties = {
        AuthType: 'NONE',
        TargetFunctionArn: { 'Fn::GetAtt': ['GcLambdaFunction', 'Arn'] },
      }
      resources.GcUrl = { Type: 'AWS::Lambda::Url', Properties }
    },
    says: 'nobodyElseStartsAFunction: GcUrl: a AWS::Lambda::Url lets others in',
  },

  // tables
  {
    title: 'an index that one machine does not have',
    plant: (resources) => properties(resources, 'ProxiesTable').GlobalSecondaryIndexes.pop(),
    says: 'tablesAreThoseOfOneMachine: ProxiesTable has other indexes',
  },
  {
    title: 'tombstones that never go',
    plant: drop('ProxiesTable', 'TimeToLiveSpecification'),
    says: 'tablesAreThoseOfOneMachine: ProxiesTable does not expire by purgeAt',
  },
  {
    title: 'a table with provisioned capacity',
    plant: change('ClaimsTable', { BillingMode: 'PROVISIONED' }),
    says: 'tablesArePaidByUse: ClaimsTable is not on demand',
  },
  {
    title: 'a table that cannot be restored',
    plant: drop('ClaimsTable', 'PointInTimeRecoverySpecification'),
    says: 'tablesCanBeRestored: ClaimsTable has no point-in-time recovery',
  },
  {
    title: 'a table in plain text',
    plant: drop('ProxiesTable', 'SSESpecification'),
    says: 'tablesAreEncrypted: ProxiesTable is not encrypted',
  },
  {
    title: 'a table that goes with the stack',
    plant: (resources) => Object.assign(resources.ProxiesTable ?? {}, { DeletionPolicy: 'Delete' }),
    says: 'tablesOutliveTheStack: ProxiesTable goes with the stack',
  },
  {
    title: 'a table of prod that can be deleted',
    plant: change('ClaimsTable', { DeletionProtectionEnabled: false }),
    says: 'tablesOutliveTheStack: ClaimsTable can be deleted',
  },

  {
    title: 'a table that can be restored to yesterday only',
    plant: (resources) => {
      properties(resources, 'ProxiesTable').PointInTimeRecoverySpecification.RecoveryPeriodInDays = 1
    },
    says: 'tablesCanBeRestoredFarBack: ProxiesTable can be restored for some days only',
  },
  {
    title: 'a table that is throttled',
    plant: change('ClaimsTable', { OnDemandThroughput: { MaxWriteRequestUnits: 1 } }),
    says: 'tablesAreNothingBesides: ClaimsTable has a OnDemandThroughput',
  },
  {
    title: 'claims that expire',
    plant: (resources) => {
      properties(resources, 'ClaimsTable').TimeToLiveSpecification.AttributeName = 'until'
    },
    says: 'claimsNeverExpire: ClaimsTable lets claims expire by until: agent#lab#pve1',
  },

  // topics and the event bus
  {
    title: 'outcomes in plain text',
    plant: drop('OutcomeTopic', 'KmsMasterKeyId'),
    says: 'outcomesAreEncrypted: OutcomeTopic is not encrypted',
  },
  {
    title: 'alarms behind a key that CloudWatch cannot use',
    plant: change('AlarmTopic', { KmsMasterKeyId: 'alias/aws/sns' }),
    says: 'alarmsCanReachTheirTopic: AlarmTopic: CloudWatch cannot use alias/aws/sns',
  },
  {
    title: 'an alarm topic that lets no alarm in',
    plant: (resources) => properties(resources, 'AlarmTopicPolicy').PolicyDocument.Statement.pop(),
    says: 'alarmsCanReachTheirTopic: AlarmTopic does not let the alarms of this account in',
  },
  {
    title: 'a topic without its policy',
    plant: remove('OutcomeTopicPolicy'),
    says: 'topicsAreReachedByTlsOnly: OutcomeTopic can be published to without TLS',
  },
  {
    title: 'a filter for an event that does not exist',
    plant: change('FailuresByEmail', { FilterPolicy: { eventType: ['ProxyFail'] } }),
    says: 'aSubscriptionShowsHowToFilter: a subscription waits for ProxyFail',
  },
  {
    title: 'an event that is led to the wrong queue',
    plant: (resources) => {
      properties(resources, 'ProxyDeletionRequestedRule').Targets[0].Arn = {
        'Fn::GetAtt': ['CreateQueue', 'Arn'],
      }
    },
    says: 'theEventBusLeadsToTheQueues: no rule brings ProxyDeletionRequested to DeleteQueue',
  },

  {
    title: 'an event bus that is listened to under another name',
    plant: (resources) => {
      properties(resources, 'ProxyRequestedRule').EventPattern.source = ['egress.request']
    },
    says: 'theEventBusLeadsToTheQueues: ProxyRequestedRule listens to egress.request',
  },
  {
    title: 'a queue that lets the rule of the other queue send',
    plant: (resources) => {
      const [, bus] = properties(resources, 'CreateQueuePolicy').PolicyDocument.Statement
      bus.Condition.ArnEquals['aws:SourceArn'] = { 'Fn::GetAtt': ['ProxyDeletionRequestedRule', 'Arn'] }
    },
    says: 'theEventBusLeadsToTheQueues: CreateQueue does not let ProxyRequestedRule send',
  },
  {
    title: 'an event of which half is sent on',
    plant: (resources) => {
      properties(resources, 'ProxyRequestedRule').Targets[0].InputPath = '$.detail.spec'
    },
    says: 'theEventBusLeadsToTheQueues: ProxyRequestedRule sends something else than the event (InputPath)',
  },
  {
    title: 'an event bus that gives up at once',
    plant: (resources) => {
      properties(resources, 'ProxyRequestedRule').Targets[0].RetryPolicy.MaximumRetryAttempts = 0
    },
    says: 'theEventBusLeadsToTheQueues: ProxyRequestedRule gives up before a day has passed',
  },
  {
    title: 'a filter that looks where nothing stands',
    plant: change('FailuresByEmail', { FilterPolicyScope: 'MessageBody' }),
    says: 'aSubscriptionShowsHowToFilter: FailuresByEmail looks for eventType in the body',
  },
  {
    title: 'outcomes under a key that no role may use',
    plant: change('OutcomeTopic', { KmsMasterKeyId: 'alias/ours' }),
    says: 'outcomesAreEncrypted: OutcomeTopic is encrypted with alias/ours',
  },
  {
    title: 'alarms that may do more than be told',
    plant: allow('AlarmTopicPolicy', 'FromAlarms', (alarms) => {
      alarms.Action = ['sns:Publish', 'sns:DeleteTopic']
    }),
    says: 'topicsAreSpokenToByOursOnly: AlarmTopicPolicy lets cloudwatch.amazonaws.com sns:DeleteTopic',
  },
  {
    title: 'outcomes that anyone of the account may make up',
    plant: allow('OutcomeTopicPolicy', 'SubscribersOfTheAccount', (subscribers) =>
      subscribers.Action.push('sns:Publish'),
    ),
    says: 'topicsAreSpokenToByOursOnly: OutcomeTopicPolicy lets others sns:Publish',
  },
  {
    title: 'events that are kept for a minute',
    plant: change('EventsQueue', { MessageRetentionPeriod: 60 }),
    says: 'theStandingSubscriberHearsEverything: EventsQueue keeps events for 60 s',
  },
  {
    title: 'a topic of another kind',
    plant: change('AlarmTopic', { FifoTopic: true }),
    says: 'topicsTellAnybody: AlarmTopic tells queues of one kind alone',
  },
  {
    title: 'a standing subscriber that hears of some events',
    plant: change('EventsSubscription', { FilterPolicy: { eventType: ['ProxyReady'] } }),
    says: 'theStandingSubscriberHearsEverything: EventsQueue hears of some events only',
  },
  {
    title: 'a standing subscriber that the topic cannot reach',
    plant: (resources) => properties(resources, 'EventsQueuePolicy').PolicyDocument.Statement.pop(),
    says: 'theStandingSubscriberHearsEverything: EventsQueue does not let OutcomeTopic send',
  },
  {
    title: 'alarms to a topic that nobody listens to',
    plant: (_, template) => {
      const { HasAlarmEmail } = template.Conditions ?? {}
      // As without its `!Not`.
      Object.assign(template.Conditions ?? {}, { HasAlarmEmail: { 'Fn::Not': [HasAlarmEmail] } })
    },
    says: 'whomTheStageNamesIsTold: operators@example.net is told nothing of AlarmTopic',
  },

  // alarms
  {
    title: 'an alarm for a day of errors',
    plant: change('CreateErrors', { Period: 86_400 }),
    says: 'alarmsGoOffForTheirTroubleAlone: CreateErrors does not go off within 10 minutes',
  },
  {
    title: 'an alarm on the average, in which one error is lost',
    plant: change('GcErrors', { Statistic: 'Average', Threshold: 0.5 }),
    says: 'alarmsGoOffForTheirTroubleAlone: GcErrors does not go off within 10 minutes',
  },
  {
    title: 'an alarm the wrong way round',
    plant: change('DeleteQueueStands', { ComparisonOperator: 'LessThanThreshold' }),
    says: 'alarmsGoOffForTheirTroubleAlone: DeleteQueueStands goes off for nothing',
  },
  {
    title: 'an alarm in words that CloudWatch does not know',
    plant: change('Orphans', { TreatMissingData: 'notbreaching' }),
    says: 'alarmsGoOffForTheirTroubleAlone: Orphans: Error: CloudWatch knows no notbreaching',
  },
  {
    title: 'a tunnel that is down behind the one that is up',
    plant: change('VpnTunnelDown', { Statistic: 'Maximum' }),
    says: 'alarmsGoOffForTheirTroubleAlone: VpnTunnelDown does not go off within 40 minutes',
  },
  {
    title: 'an alarm for each maintenance of a tunnel',
    plant: change('VpnTunnelDown', { EvaluationPeriods: 1 }),
    says: 'alarmsGoOffForTheirTroubleAlone: VpnTunnelDown goes off for nothing',
  },
  {
    title: 'dead letters that are noticed by the hundred',
    plant: change('CreateDeadLettersArrived', { Threshold: 100 }),
    says: 'everyLetterThatArrivesCounts: CreateDeadLettersArrived does not go off for every letter',
  },
  {
    title: 'an alarm on a metric that does not exist',
    plant: change('CreateErrors', { MetricName: 'Error' }),
    says: 'alarmsWatchRealMetrics: CreateErrors: nobody publishes AWS/Lambda Error',
  },
  {
    title: 'an alarm on the metric of another kind of resource',
    plant: change('CreateErrors', { Dimensions: [{ Name: 'FunctionName', Value: { Ref: 'CreateQueue' } }] }),
    says: 'alarmsWatchRealMetrics: CreateErrors: Errors is published by FunctionName of a AWS::Lambda::Function',
  },
  {
    title: 'an alarm that tells nobody',
    plant: drop('DeleteErrors', 'AlarmActions'),
    says: 'alarmsTellSomebody: DeleteErrors tells nobody',
  },
  {
    title: 'an alarm without a word of help',
    plant: drop('DeleteErrors', 'AlarmDescription'),
    says: 'alarmsSayWhatToDo: DeleteErrors does not say what to look at',
  },
  {
    title: 'dead letters that arrive unnoticed',
    plant: remove('CreateDeadLettersArrived'),
    says: 'everyDeadLetterAlarms: no alarm when a letter arrives in CreateDeadLetters',
  },
  {
    title: 'dead letters that SQS moves unnoticed',
    plant: (resources) => {
      properties(resources, 'CreateDeadLettersArrived').Metrics[0].Expression = 'FILL(sent, 0)'
    },
    says: 'everyDeadLetterAlarms: letters that SQS moves to CreateDeadLetters do not alarm',
  },
  {
    // Report: mozilla/watchdog-proxy#13
    title: 'dead letters that are forgotten',
    plant: remove('DeleteDeadLettersWaiting'),
    says: 'everyDeadLetterAlarms: no alarm while a letter waits in DeleteDeadLetters',
  },
  {
    title: 'a queue that stands unnoticed',
    plant: remove('DeleteQueueStands'),
    says: 'everySourceAlarmsWhenItStands: no alarm on the age of the oldest message of DeleteQueue',
  },
  {
    title: 'an alarm for every wait',
    plant: change('CreateQueueStands', { Threshold: 600 }),
    says: 'everySourceAlarmsWhenItStands: CreateQueueStands would alarm for a message that only waits',
  },
  {
    title: 'a throttled function that nobody hears of',
    plant: remove('CreateThrottles'),
    says: 'everyFunctionAlarms: no alarm on throttles of CreateLambdaFunction',
  },
  {
    title: 'an alarm that takes silence for well-being',
    plant: change('GcNotRun', { TreatMissingData: 'notBreaching' }),
    says: 'silenceOfTheScheduledFunctionsAlarms: GcNotRun takes silence for well-being',
  },
  {
    title: 'failures of check that nobody hears of',
    plant: remove('CheckFailed'),
    says: 'whatOnlyOurMetricsTellAlarms: no alarm for: a failed check',
  },
  {
    title: 'a table that AWS refuses without a word to anybody',
    plant: remove('UnexpectedErrors'),
    says: 'whatOnlyOurMetricsTellAlarms: no alarm for: errors that nobody expects',
  },
  {
    title: 'orphans that nobody hears of',
    plant: remove('Orphans'),
    says: 'whatOnlyOurMetricsTellAlarms: no alarm for: orphans',
  },
  {
    title: 'an alarm on a metric of ours that no function writes',
    plant: change('GcNotRun', { MetricName: 'GcRun' }),
    says: 'alarmsWatchRealMetrics: GcNotRun: no function writes GcRun',
  },
  {
    title: 'an alarm on a metric of ours without its dimension',
    plant: drop('Orphans', 'Dimensions'),
    says: 'alarmsWatchRealMetrics: Orphans: no function writes Orphans by {}',
  },
  {
    title: 'an alarm on the metrics of another deployment',
    plant: change('Orphans', { Dimensions: [{ Name: 'deployment', Value: 'another' }] }),
    says: 'alarmsWatchRealMetrics: Orphans: no function writes Orphans by {"deployment":"another"}',
  },
  {
    title: 'a dashboard of nothing',
    plant: onTheDashboard('"Invocations"', '"Calls"'),
    says: 'theDashboardShowsRealMetrics: the dashboard shows AWS/Lambda Calls by FunctionName',
  },
  {
    title: 'a dashboard of a metric of ours that no function writes',
    plant: onTheDashboard('"TimeToReady"', '"TimeTillReady"'),
    says: 'theDashboardShowsRealMetrics: the dashboard shows egress-proxies TimeTillReady by deployment',
  },
  {
    title: 'a dashboard that searches by what a metric is not told apart by',
    plant: onTheDashboard('deployment,step}', 'deployment,code}'),
    says: 'theDashboardShowsRealMetrics: the dashboard searches for what no function writes: SEARCH',
  },
  {
    title: 'a metric that is shown nowhere',
    plant: onTheDashboard('"LostRaces"', '"LeaseHeld"'),
    says: 'theDashboardShowsAllThatIsMeasured: the dashboard leaves out LostRaces',
  },

  {
    title: 'an alarm that stands on no dashboard',
    plant: onTheDashboard(`, "\${VpnTunnelDown.Arn}"`, ''),
    says: 'theDashboardShowsRealMetrics: the dashboard leaves out the alarm VpnTunnelDown',
  },

  // network
  {
    title: 'a way out to everywhere',
    plant: (resources) =>
      properties(resources, 'FunctionSecurityGroup').SecurityGroupEgress.push({
        IpProtocol: '-1',
        CidrIp: '0.0.0.0/0',
      }),
    says: 'nothingLeadsElsewhere: FunctionSecurityGroup lets out to 0.0.0.0/0',
  },
  {
    title: 'a NAT gateway',
    plant: (resources) => {
      resources.Nat = { Type: 'AWS::EC2::NatGateway', Properties: { SubnetId: { Ref: 'PrivateSubnetA' } } }
    },
    says: 'nothingLeadsElsewhere: Nat: a AWS::EC2::NatGateway is a way out',
  },
  {
    title: 'proxies that cannot be probed',
    plant: (resources) => {
      const { SecurityGroupEgress: egress } = properties(resources, 'FunctionSecurityGroup')
      egress.splice(1, 1)
    },
    says: 'nothingLeadsElsewhere: FunctionSecurityGroup does not let out to port 3128 of 192.168.10.0/24',
  },
  {
    title: 'a cluster without a route',
    plant: remove('VpnRoute2'),
    says: 'theVpnLeadsToEveryCluster: the VPN has no route to 192.168.20.0/24',
  },
  {
    title: 'no way to SQS',
    plant: remove('SqsEndpoint'),
    says: 'awsIsReachedWithoutTheInternet: no interface endpoint leads to sqs',
  },
  {
    title: 'an endpoint for the keys of any account',
    plant: drop('SsmEndpoint', 'PolicyDocument'),
    says: 'endpointsServeTheAccountOnly: SsmEndpoint serves other accounts too',
  },

  {
    title: 'an endpoint that a subnet of the functions is without',
    plant: change('SsmEndpoint', { SubnetIds: [{ Ref: 'PrivateSubnetA' }] }),
    says: 'endpointsOpenToTheFunctions: SsmEndpoint does not stand in PrivateSubnetB',
  },
  {
    title: 'endpoints that are closed to the functions',
    plant: drop('EndpointSecurityGroup', 'SecurityGroupIngress'),
    says: 'endpointsOpenToTheFunctions: EndpointSecurityGroup opens to others',
  },
  {
    title: 'endpoints that nobody finds by name',
    plant: change('Vpc', { EnableDnsHostnames: false }),
    says: 'endpointsOpenToTheFunctions: Vpc does not answer by the names',
  },
  {
    title: 'a subnet without its routes',
    plant: remove('RouteTableB'),
    says: 'everySubnetHasAWayToTheClusters: PrivateSubnetB has no route to the clusters',
  },
  {
    title: 'routes of the VPN that no table hears of',
    plant: remove('VpnRoutes'),
    says: 'everySubnetHasAWayToTheClusters: PrivateSubnetA has no route to the clusters',
  },
  {
    title: 'two subnets in one zone',
    plant: (resources) =>
      change('PrivateSubnetB', {
        AvailabilityZone: properties(resources, 'PrivateSubnetA').AvailabilityZone,
      })(resources),
    says: 'everySubnetHasAWayToTheClusters: all functions are in one zone',
  },
  {
    title: 'a tunnel that would do with IKEv1',
    plant: (resources) =>
      properties(resources, 'VpnConnection').VpnTunnelOptionsSpecifications[1].IKEVersions.push({
        Value: 'ikev1',
      }),
    says: 'theTunnelsAreStrong: VpnConnection would agree to a weak tunnel',
  },
  {
    title: 'routes that somebody would have to announce',
    plant: change('VpnConnection', { StaticRoutesOnly: false }),
    says: 'theTunnelsAreStrong: VpnConnection waits for routes by BGP',
  },
  {
    title: 'traffic that nobody notes',
    plant: remove('FlowLog'),
    says: 'trafficIsNoted: nobody notes the traffic of Vpc',
  },

  {
    title: 'a tunnel that stays down when it fell silent',
    plant: (resources) => {
      properties(resources, 'VpnConnection').VpnTunnelOptionsSpecifications[0].DPDTimeoutAction = 'clear'
    },
    says: 'theTunnelsAreStrong: VpnConnection would agree to a weak tunnel',
  },
  {
    title: 'no way out to DynamoDB',
    plant: change('FunctionsToDynamoDb', { GroupId: { Ref: 'EndpointSecurityGroup' } }),
    says: 'nothingLeadsElsewhere: FunctionSecurityGroup does not let out to DynamoDB',
  },
  {
    title: 'endpoints that call whom they like',
    plant: change('EndpointSecurityGroup', {
      SecurityGroupEgress: [{ IpProtocol: '-1', CidrIp: '0.0.0.0/0' }],
    }),
    says: 'endpointsOpenToTheFunctions: EndpointSecurityGroup lets endpoints call somebody',
  },
  {
    title: 'an endpoint of another region',
    plant: change('SqsEndpoint', { ServiceName: { 'Fn::Sub': 'com.amazonaws.us-east-1.sqs' } }),
    says: 'awsIsReachedWithoutTheInternet: no interface endpoint leads to sqs',
  },
  {
    title: 'a VPN to somebody else',
    plant: change('CustomerGateway', { IpAddress: '198.51.100.7' }),
    says: 'theVpnLeadsToEveryCluster: the VPN leads to 198.51.100.7, the stage says 203.0.113.10',
  },
  {
    title: 'traffic of half of the network',
    plant: change('FlowLog', { ResourceType: 'Subnet' }),
    says: 'trafficIsNoted: nobody notes the traffic of Vpc',
  },

  // schedules
  {
    title: 'a function that nothing starts',
    plant: remove('GcSchedule'),
    says: 'everyFunctionIsStartedBySomething: nothing starts GcLambdaFunction',
  },
  {
    title: 'a scheduled function that may overlap itself',
    plant: drop('GcLambdaFunction', 'ReservedConcurrentExecutions'),
    says: 'scheduledFunctionsRunOnceAtATime: GcLambdaFunction may run several times at once',
  },
  {
    title: 'starts that pile up',
    plant: (resources) => {
      delete properties(resources, 'GcSchedule').Target.RetryPolicy
    },
    says: 'scheduledFunctionsRunOnceAtATime: GcSchedule makes up for starts that are past',
  },
  {
    title: 'a schedule that may not start its function',
    plant: allow('SchedulerRole', 'Start', (start) => {
      start.Resource = [{ 'Fn::GetAtt': ['CreateLambdaFunction', 'Arn'] }]
    }),
    says: 'schedulesMayStartTheirFunctions: SchedulerRole may not start GcLambdaFunction',
  },
  {
    title: 'a schedule that may start more',
    plant: allow('SchedulerRole', 'Start', (start) => {
      start.Resource.push({ 'Fn::GetAtt': ['CreateLambdaFunction', 'Arn'] })
    }),
    says: 'schedulesMayStartNothingElse: SchedulerRole may lambda:InvokeFunction CreateLambdaFunction',
  },

  {
    title: 'a schedule of five days',
    plant: change('GcSchedule', { ScheduleExpression: 'rate(5 days)' }),
    says: 'schedulesComeOftenEnough: GcSchedule: rate(5 days)',
  },
  {
    title: 'a schedule outside of the group that its role is for',
    plant: drop('GcSchedule', 'GroupName'),
    says: 'schedulesComeOftenEnough: GcSchedule is in a group whose schedules may not have its role',
  },
  {
    title: 'a schedule that ends',
    plant: change('CheckSchedule', { EndDate: '2027-01-01T00:00:00Z' }),
    says: 'schedulesComeOftenEnough: CheckSchedule ends',
  },

  // roles
  {
    title: 'two functions with one role',
    plant: change('DeleteLambdaFunction', { Role: { 'Fn::GetAtt': ['CreateRole', 'Arn'] } }),
    says: 'everyFunctionHasARoleOfItsOwn: CreateLambdaFunction has no role of its own',
  },
  {
    title: 'a role that anyone of the account may take',
    plant: (resources) => {
      properties(resources, 'CreateRole').AssumeRolePolicyDocument.Statement[0].Principal = { AWS: '*' }
    },
    says: 'rolesAreTakenByTheirServiceOnly: CreateRole can be taken by others than lambda.amazonaws.com',
  },
  {
    title: 'a role for another service',
    plant: (resources) => {
      properties(resources, 'GcRole').AssumeRolePolicyDocument.Statement[0].Principal = {
        Service: 'ec2.amazonaws.com',
      }
    },
    says: 'rolesAreTakenByTheirServiceOnly: GcRole can be taken by others than lambda.amazonaws.com',
  },
  {
    title: 'a permission that comes by a policy of its own',
    plant: (resources) => {
      const on = { 'Fn::GetAtt': ['ProxiesTable', 'Arn'] }
      const Statement = [{ Effect: 'Allow', Action: 'dynamodb:DeleteTable', Resource: on }]
      const Properties = { PolicyName: 'more', Roles: [{ Ref: 'CreateRole' }], PolicyDocument: { Statement } }
      resources.More = { Type: 'AWS::IAM::Policy', Properties }
    },
    says: 'rolesAllowWhatTheCodeCallsAndNoMore: CreateRole needs no dynamodb:DeleteTable ProxiesTable',
  },
  {
    title: 'an administrator’s rights, in a policy of AWS',
    plant: (resources) =>
      properties(resources, 'CheckRole').ManagedPolicyArns.push(
        'arn:aws:iam::aws:policy/AdministratorAccess',
      ),
    says: 'permissionsAreOurOwn: CheckRole is given arn:aws:iam::aws:policy/AdministratorAccess',
  },
  {
    title: 'a permission that is taken back',
    plant: (resources) =>
      properties(resources, 'CreateRole').Policies[0].PolicyDocument.Statement.push({
        Sid: 'No',
        Effect: 'Deny',
        Action: 'sqs:SendMessage',
        Resource: '*',
      }),
    says: 'whatIsAllowedIsNotTakenBack: CreateRole: No takes back',
  },
  {
    title: 'a permission under a condition that nobody meets',
    plant: allow('GcRole', 'HandOver', (handOver) => {
      handOver.Condition = { StringEquals: { 'aws:PrincipalOrgID': 'o-1' } }
    }),
    says: 'whatIsAllowedIsNotTakenBack: GcRole: HandOver allows only sometimes',
  },
  {
    title: 'code of another region that may not make itself a network',
    plant: allow('NetworkPolicy', 'NotTheCodeInside', ({ Condition }) => {
      const by = Condition.ArnEquals['lambda:SourceFunctionArn']
      by['Fn::Sub'] = by['Fn::Sub'].replace(`\${AWS::Region}`, 'us-east-1')
    }),
    says: 'codeCannotTouchItsNetwork: the code of CreateLambdaFunction may ec2:CreateNetworkInterface',
  },
  {
    title: 'everything but one action',
    plant: allow('CreateRole', 'Tell', (tell) => {
      tell.NotAction = tell.Action
      delete tell.Action
    }),
    says: 'policiesNameWhatTheyAllow: CreateRole says NotAction',
  },
  {
    title: 'outcomes for every account',
    plant: allow('OutcomeTopicPolicy', 'SubscribersOfTheAccount', (subscribers) => {
      subscribers.Principal = { AWS: '*' }
    }),
    says: 'policiesNameWhatTheyAllow: OutcomeTopicPolicy lets everybody in',
  },
  {
    title: 'every log group of every account',
    plant: allow('FlowLogRole', 'Log', (log) => {
      log.Resource = { 'Fn::Sub': `arn:\${AWS::Partition}:logs:*:*:log-group:*` }
    }),
    says: 'nothingIsAllowedOnEverything: FlowLogRole allows logs:CreateLogStream on everything',
  },
  {
    title: "a role that notes anybody's traffic",
    plant: (resources) => {
      const [trust] = properties(resources, 'FlowLogRole').AssumeRolePolicyDocument.Statement
      delete trust.Condition
    },
    says: 'servicesActForOurResourcesOnly: FlowLogRole: vpc-flow-logs.amazonaws.com may act',
  },
  {
    title: "a role that works for anybody's schedules",
    plant: (resources) => {
      const [trust] = properties(resources, 'SchedulerRole').AssumeRolePolicyDocument.Statement
      delete trust.Condition.StringEquals['aws:SourceArn']
    },
    says: 'servicesActForOurResourcesOnly: SchedulerRole: scheduler.amazonaws.com may act',
  },
  {
    title: "an alarm topic for anybody's alarms",
    plant: allow('AlarmTopicPolicy', 'FromAlarms', (statement) => {
      delete statement.Condition.ArnLike
    }),
    says: 'servicesActForOurResourcesOnly: AlarmTopicPolicy: cloudwatch.amazonaws.com may act',
  },
  {
    title: 'a permission that is missing',
    plant: allow('DeleteRole', 'Rows', (rows) => {
      rows.Action = rows.Action.filter((action: string) => action !== 'dynamodb:UpdateItem')
    }),
    says: 'rolesAllowWhatTheCodeCallsAndNoMore: DeleteRole lacks dynamodb:UpdateItem ProxiesTable',
  },
  {
    title: 'a permission for nothing',
    plant: allow('CreateRole', 'Claims', (claims) => claims.Action.push('dynamodb:Scan')),
    says: 'rolesAllowWhatTheCodeCallsAndNoMore: CreateRole needs no dynamodb:Scan ClaimsTable',
  },
  {
    title: 'a permission on one resource too many',
    plant: allow('CreateRole', 'Continue', (statement) =>
      statement.Resource.push({ 'Fn::GetAtt': ['DeleteDeadLetters', 'Arn'] }),
    ),
    says: 'rolesAllowWhatTheCodeCallsAndNoMore: CreateRole needs no sqs:SendMessage DeleteDeadLetters',
  },
  {
    title: 'every parameter of the account',
    plant: allow('CreateRole', 'Tokens', (tokens) => {
      tokens.Resource = '*'
    }),
    says: 'nothingIsAllowedOnEverything: CreateRole allows ssm:GetParameter on everything',
  },
  {
    title: 'every action of a service',
    plant: allow('CreateRole', 'Tell', (tell) => {
      tell.Action = 'sns:*'
    }),
    says: 'nothingIsAllowedOnEverything: CreateRole allows sns:*',
  },
  {
    title: 'a key for everything',
    plant: (resources) => {
      const Statement = [{ Effect: 'Allow', Action: 'kms:Decrypt', Resource: '*' }]
      resources.SecretsKeyPolicy = { Type: 'AWS::IAM::Policy', Properties: { PolicyDocument: { Statement } } }
    },
    says: 'nothingIsAllowedOnEverything: SecretsKeyPolicy allows kms:Decrypt on everything',
  },
  {
    title: 'code that may make itself a network',
    plant: allow('NetworkPolicy', 'NotTheCodeInside', (deny) => deny.Action.shift()),
    says: 'codeCannotTouchItsNetwork: the code of CreateLambdaFunction may ec2:CreateNetworkInterface',
  },

  // what is deployed
  {
    title: 'zips that anyone may be let at',
    plant: drop('ServerlessDeploymentBucket', 'PublicAccessBlockConfiguration'),
    says: 'zipsLieInAClosedBucket: ServerlessDeploymentBucket lacks BlockPublicAcls',
  },
  {
    title: 'a function of nobody',
    plant: drop('GcLambdaFunction', 'Tags'),
    says: 'functionsSayWhoseTheyAre: GcLambdaFunction bears no tags',
  },
  {
    title: 'an output that people look for in vain',
    plant: (_, { Outputs = {} }) => {
      delete Outputs.CreateQueueArn
    },
    says: 'outputsThatPeopleAreToldOfAreThere: docs/aws.md names the output CreateQueueArn',
  },
  {
    title: 'a stage that leads people to the wrong table',
    plant: (resources) => {
      const value = properties(resources, 'StageParameter').Value
      value['Fn::Sub'] = value['Fn::Sub'].replace('ClaimsTable}', 'ProxiesTable}')
    },
    says: 'theStageSaysWhereEverythingIs: StageParameter: claimsTable is $',
  },
]
