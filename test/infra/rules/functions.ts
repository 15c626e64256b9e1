import { existsSync } from 'node:fs'
import { Environment } from '../../../lib/environment.ts'
import { leaseMs } from '../../../lib/function.ts'
import { list, ofType, type Resource, type Template, target } from '../template.ts'
import type { Rule } from './rule.ts'

export const functions = (template: Template) => ofType(template, 'AWS::Lambda::Function')
export const mappings = (template: Template) => ofType(template, 'AWS::Lambda::EventSourceMapping')
/** The function's name in serverless.yml, which is also its room's. */
export const roomOf = ({ Properties }: Resource) => /^functions\/(\w+)\//.exec(Properties.Handler)?.[1] ?? ''

const mappingsOf = (template: Template, name: string) =>
  mappings(template).filter(([, { Properties }]) => target(Properties.FunctionName) === name)

export const handlersExist: Rule = (template) =>
  functions(template)
    .filter(
      ([, { Properties }]) =>
        !existsSync(new URL(`../../../${Properties.Handler.replace(/\.handler$/, '.ts')}`, import.meta.url)),
    )
    .map(([name, { Properties }]) => `${name}: there is no ${Properties.Handler}`)

export const runtimeIsNode24OnArm: Rule = (template) =>
  functions(template)
    .filter(
      ([, { Properties }]) =>
        Properties.Runtime !== 'nodejs24.x' || list(Properties.Architectures).join() !== 'arm64',
    )
    .map(([name]) => `${name} is not nodejs24.x on arm64`)

/** While one holds a row's lease, its function may still be running; so a lease outlasts every invocation. */
export const functionsEndBeforeTheirLease: Rule = (template, { config }) =>
  functions(template)
    .filter(([name]) => mappingsOf(template, name).length > 0)
    .flatMap(([name, { Properties }]) => {
      const { functionTimeoutSeconds } = config.timings
      const found = []
      if (!(Properties.Timeout * 1000 < leaseMs(config)))
        found.push(`${name}: its time-out reaches its lease`)
      if (Properties.Timeout !== functionTimeoutSeconds)
        found.push(`${name}: time-out ${Properties.Timeout} s, configured ${functionTimeoutSeconds} s`)
      return found
    })

export const messagesStayHiddenSixTimesTheTimeOut: Rule = (template) =>
  mappings(template).flatMap(([, { Properties }]) => {
    const queueName = target(Properties.EventSourceArn) ?? ''
    const visibility = template.Resources[queueName]?.Properties.VisibilityTimeout
    const timeout = template.Resources[target(Properties.FunctionName) ?? '']?.Properties.Timeout
    return visibility >= 6 * timeout
      ? []
      : [`${queueName}: hidden for ${visibility} s, wanted 6 × ${timeout} s`]
  })

export const batchesAreReportedInPart: Rule = (template) =>
  mappings(template)
    .filter(
      ([, { Properties }]) => !list(Properties.FunctionResponseTypes).includes('ReportBatchItemFailures'),
    )
    .map(([name]) => `${name} does not report batch item failures: one failed record would bring back all`)

export const batchesAreSmallAndBounded: Rule = (template) =>
  mappings(template).flatMap(([name, { Properties }]) => {
    const found = []
    const { BatchSize: size, MaximumBatchingWindowInSeconds: window = 0 } = Properties
    if (!(size >= 1 && size <= 10))
      found.push(`${name}: batches of ${size}, wanted 1 to 10: all are in work at once`)
    if (window !== 0) found.push(`${name} waits ${window} s to fill a batch`)
    if (!(Properties.ScalingConfig?.MaximumConcurrency >= 2))
      found.push(`${name} has no maximum concurrency (of at least 2)`)
    if (Properties.Enabled === false) found.push(`${name} is disabled`)
    return found
  })

/** What a filter does not let through, Lambda deletes without a word; what nobody can read is to be a dead letter instead. */
export const noMessageIsFilteredAway: Rule = (template) =>
  mappings(template)
    .filter(([, { Properties }]) => Properties.FilterCriteria !== undefined)
    .map(([name]) => `${name} deletes without a word what its filter does not let through`)

export const batchesAtOnceAreThoseOfTheStage: Rule = (template, { concurrency }) =>
  mappings(template).flatMap(([name, { Properties }]) => {
    const { Handler = '' } = template.Resources[target(Properties.FunctionName) ?? '']?.Properties ?? {}
    const wanted = concurrency[/^functions\/(\w+)\//.exec(Handler)?.[1] as keyof typeof concurrency]
    const got = Properties.ScalingConfig?.MaximumConcurrency
    return wanted === undefined || got === wanted
      ? []
      : [`${name} takes ${got} batches at once, the stage says ${wanted}`]
  })

export const functionsSitInSubnets: Rule = (template) =>
  functions(template)
    .filter(
      ([, { Properties }]) =>
        !list(Properties.VpcConfig?.SubnetIds).length || !list(Properties.VpcConfig?.SecurityGroupIds).length,
    )
    .map(([name]) => `${name} is in no subnet, so it has no way to Proxmox`)

export const environmentsAreComplete: Rule = (template, { stage }) =>
  functions(template).flatMap(([name, { Properties }]) => {
    const variables = Properties.Environment?.Variables ?? {}
    const demanded = Object.entries(Environment.shape)
      .filter(([, schema]) => !schema.safeParse(undefined).success)
      .map(([variable]) => variable)
    const found = demanded
      .filter((variable) => variables[variable] === undefined)
      .map((variable) => `${name} lacks ${variable}`)
    if (variables.EGRESS_CONFIG !== `config/${stage}.yml`)
      found.push(`${name} reads another stage's configuration`)
    return found
  })

/** Everything about a secret is its name in the parameter store. */
export const environmentsHoldNoSecret: Rule = (template) =>
  functions(template).flatMap(([name, { Properties }]) =>
    Object.keys(Properties.Environment?.Variables ?? {})
      .filter((variable) => /token|secret|password/i.test(variable))
      .map((variable) => `${name}: ${variable} looks like a secret`),
  )

/** Where each variable leads. */
const LEADS: Record<string, string> = {
  EGRESS_PROXIES_TABLE: 'ProxiesTable',
  EGRESS_CLAIMS_TABLE: 'ClaimsTable',
  EGRESS_CREATE_QUEUE_URL: 'CreateQueue',
  EGRESS_DELETE_QUEUE_URL: 'DeleteQueue',
  EGRESS_CREATE_DLQ_URL: 'CreateDeadLetters',
  EGRESS_DELETE_DLQ_URL: 'DeleteDeadLetters',
  EGRESS_TOPIC_ARN: 'OutcomeTopic',
}

export const environmentsLeadWhereTheirNamesSay: Rule = (template) =>
  functions(template).flatMap(([name, { Properties }]) =>
    Object.entries(LEADS)
      .map(([variable, wanted]) => ({
        variable,
        wanted,
        got: target(Properties.Environment?.Variables[variable]),
      }))
      .filter(({ got, wanted }) => got !== wanted)
      .map(({ variable, got, wanted }) => `${name}: ${variable} leads to ${got}, not to ${wanted}`),
  )

export const logsAreKeptAsLongAsTheStageSays: Rule = (template, { logRetentionDays }) => {
  const groups = ofType(template, 'AWS::Logs::LogGroup')
  const without = functions(template)
    .filter(
      ([, { Properties }]) =>
        !groups.some(([, log]) => log.Properties.LogGroupName === `/aws/lambda/${Properties.FunctionName}`),
    )
    .map(([name]) => `${name} has no log group, so Lambda makes one that keeps everything for ever`)
  const others = groups
    .filter(([, { Properties }]) => Properties.RetentionInDays !== logRetentionDays)
    .map(([name, { Properties }]) => `${name} keeps everything for ${Properties.RetentionInDays ?? 'ever'}`)
  return [...without, ...others]
}

/**
 * As JSON, so that what Lambda itself says can be searched as what the functions say. Lines of metrics bear no level, which
 * Lambda counts as INFO: a filter above it would leave the alarms without what they watch, one above DEBUG would keep back
 * what EGRESS_LOG_LEVEL asked for. What a run took, Lambda says at INFO. Source: AWS Lambda, "Log-level filtering".
 */
export const linesOfTheLogAreHandedOn: Rule = (template) =>
  functions(template).flatMap(([name, { Properties }]) => {
    const { LogFormat, ApplicationLogLevel, SystemLogLevel, LogGroup } = Properties.LoggingConfig ?? {}
    const found = []
    if (LogFormat !== 'JSON') found.push(`${name} logs ${LogFormat ?? 'Text'}, not JSON`)
    if (!['TRACE', 'DEBUG'].includes(ApplicationLogLevel))
      found.push(`${name} keeps back lines below ${ApplicationLogLevel}`)
    const level = Properties.Environment?.Variables.EGRESS_LOG_LEVEL ?? 'info'
    if (!['debug', 'info'].includes(level))
      found.push(`${name} writes no line below ${level}, and so no decision`)
    if (SystemLogLevel !== 'INFO') found.push(`${name} does not say what its runs took`)
    if (LogGroup !== undefined && LogGroup !== `/aws/lambda/${Properties.FunctionName}`)
      found.push(`${name} logs to ${LogGroup}, which is not its own`)
    return found
  })

/** What is in a queue is for the function of the same name, whichever way it is misled. */
export const queuesFeedTheFunctionOfTheirName: Rule = (template, { stage }) =>
  mappings(template).flatMap(([name, { Properties }]) => {
    const queue = template.Resources[target(Properties.EventSourceArn) ?? '']?.Properties.QueueName
    const fed = template.Resources[target(Properties.FunctionName) ?? '']
    const wanted = fed && `egress-${stage}-${roomOf(fed)}`
    return queue === wanted ? [] : [`${name} feeds ${fed && roomOf(fed)} with ${queue}`]
  })

/** A reservation below what the queue may take would throttle it; none at all leaves it to the mapping. */
export const reservationsLeaveRoomForTheQueue: Rule = (template) =>
  mappings(template).flatMap(([, { Properties }]) => {
    const name = target(Properties.FunctionName) ?? ''
    const reserved = template.Resources[name]?.Properties.ReservedConcurrentExecutions
    const wanted = Properties.ScalingConfig?.MaximumConcurrency
    return reserved === undefined || reserved >= wanted
      ? []
      : [`${name} reserves ${reserved} executions, its queue may take ${wanted}`]
  })

/** Undici, the SDK and a batch of ten take about 150 MiB; Lambda gives processor by memory, and half a GiB starts in half the time of a quarter. */
const LEAST_MIB = 512

export const functionsHaveRoomToRun: Rule = (template) =>
  functions(template)
    .filter(([, { Properties }]) => !(Properties.MemorySize >= LEAST_MIB))
    .map(([name, { Properties }]) => `${name} has ${Properties.MemorySize} MiB, wanted ${LEAST_MIB}`)

/** A message is worked on by the present code: a version or an alias would keep one of before at work on the same rows. */
export const thereIsOneVersionOfAFunction: Rule = (template) =>
  ['AWS::Lambda::Version', 'AWS::Lambda::Alias'].flatMap((type) =>
    ofType(template, type).map(([name]) => `${name} keeps what was before`),
  )

/** Functions are started by what this stack has, with its roles: nothing else has a door to them. */
export const nobodyElseStartsAFunction: Rule = (template) =>
  [
    'AWS::Lambda::Permission',
    'AWS::Lambda::Url',
    'AWS::Lambda::LayerVersionPermission',
    'AWS::ApiGateway::RestApi',
    'AWS::ApiGatewayV2::Api',
  ].flatMap((type) => ofType(template, type).map(([name]) => `${name}: a ${type} lets others in`))
