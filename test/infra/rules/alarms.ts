import { METRICS, NAMESPACE } from '../../../lib/metrics.ts'
import { list, ofType, type Resource, type Template, target, walk } from '../template.ts'
import { functions, mappings } from './functions.ts'
import type { Rule } from './rule.ts'

const alarms = (template: Template) => ofType(template, 'AWS::CloudWatch::Alarm')

/** Metrics that AWS publishes, with their dimension. Source: the monitoring pages of SQS, Lambda, SNS and Site-to-Site VPN. */
const KNOWN: Record<string, { dimension: string; resource: string; names: string[] }> = {
  'AWS/SQS': {
    dimension: 'QueueName',
    resource: 'AWS::SQS::Queue',
    names: [
      'ApproximateAgeOfOldestMessage',
      'ApproximateNumberOfMessagesDelayed',
      'ApproximateNumberOfMessagesNotVisible',
      'ApproximateNumberOfMessagesVisible',
      'NumberOfMessagesSent',
    ],
  },
  'AWS/Lambda': {
    dimension: 'FunctionName',
    resource: 'AWS::Lambda::Function',
    names: ['ConcurrentExecutions', 'Duration', 'Errors', 'Invocations', 'Throttles'],
  },
  'AWS/SNS': { dimension: 'TopicName', resource: 'AWS::SNS::Topic', names: ['NumberOfNotificationsFailed'] },
  'AWS/VPN': { dimension: 'VpnId', resource: 'AWS::EC2::VPNConnection', names: ['TunnelState'] },
}

type Metric = { Namespace: string; MetricName: string; Dimensions?: { Name: string; Value: unknown }[] }

const metricsOf = ({ Properties }: Resource): Metric[] =>
  Properties.Metrics
    ? list(Properties.Metrics).flatMap(({ MetricStat }) => (MetricStat ? [MetricStat.Metric] : []))
    : [Properties as Metric]

/** Whether the functions write such a metric: by its name, and by its dimensions to the last one. */
function isOurs(name: string, dimensions: Readonly<Record<string, unknown>>, deployment: string): boolean {
  const known = Object.entries(METRICS).find(([one]) => one === name)?.[1]
  const wanted = known && ['deployment', ...known.by].sort().join()
  return wanted === Object.keys(dimensions).sort().join() && dimensions.deployment === deployment
}

/** An alarm on a metric that nobody publishes is quiet for ever. */
export const alarmsWatchRealMetrics: Rule = (template, { config }) =>
  alarms(template).flatMap(([name, alarm]) =>
    metricsOf(alarm).flatMap(({ Namespace, MetricName, Dimensions }) => {
      if (Namespace === NAMESPACE) {
        const dimensions = Object.fromEntries(list(Dimensions).map(({ Name, Value }) => [Name, Value]))
        if (isOurs(MetricName, dimensions, config.deployment)) return []
        return [`${name}: no function writes ${MetricName} by ${JSON.stringify(dimensions)}`]
      }
      const known = KNOWN[Namespace]
      if (!known?.names.includes(MetricName)) return [`${name}: nobody publishes ${Namespace} ${MetricName}`]
      const [dimension, ...more] = Dimensions ?? []
      const watched = template.Resources[target(dimension?.Value) ?? '']
      if (dimension?.Name !== known.dimension || more.length > 0 || watched?.Type !== known.resource)
        return [`${name}: ${MetricName} is published by ${known.dimension} of a ${known.resource}`]
      return []
    }),
  )

export const alarmsTellSomebody: Rule = (template) =>
  alarms(template)
    .filter(
      ([, { Properties }]) =>
        !list(Properties.AlarmActions).some((action) => target(action) === 'AlarmTopic') ||
        Properties.ActionsEnabled === false,
    )
    .map(([name]) => `${name} tells nobody`)

export const alarmsSayWhatToDo: Rule = (template) =>
  alarms(template)
    .filter(([, { Properties }]) => !(String(Properties.AlarmDescription ?? '').length > 20))
    .map(([name]) => `${name} does not say what to look at`)

/** Alarms on a metric of a resource, by the logical id of what they watch. */
const watching = (template: Template, metric: string, resource: string) =>
  alarms(template).filter(([, alarm]) =>
    metricsOf(alarm).some(
      ({ MetricName, Dimensions = [] }) =>
        MetricName === metric && Dimensions.some(({ Value }) => target(Value) === resource),
    ),
  )

/** By arrivals, since a level that is up already cannot rise into alarm again; and by level, for as long as one waits. */
export const everyDeadLetterAlarms: Rule = (template) =>
  ofType(template, 'AWS::SQS::Queue')
    .flatMap(([, { Properties }]) => list(target(Properties.RedrivePolicy?.deadLetterTargetArn)))
    .flatMap((queue) => {
      const found = []
      const byArrival = watching(template, 'NumberOfMessagesSent', queue)
      const byLevel = watching(template, 'ApproximateNumberOfMessagesVisible', queue)
      const alsoMoved = byArrival.some(([, { Properties }]) =>
        list(Properties.Metrics).some(({ Expression }) => /DIFF\(\w+\)/.test(Expression ?? '')),
      )
      if (byArrival.length === 0) found.push(`no alarm when a letter arrives in ${queue}`)
      else if (!alsoMoved)
        found.push(`letters that SQS moves to ${queue} do not alarm: it does not count them as sent`)
      if (!byLevel.some(([, { Properties }]) => !Properties.Metrics && Properties.Threshold === 0))
        found.push(`no alarm while a letter waits in ${queue}`)
      return found
    })

export const everySourceAlarmsWhenItStands: Rule = (template) =>
  mappings(template)
    .map(([, { Properties }]) => target(Properties.EventSourceArn) ?? '')
    .flatMap((queue) => {
      const [alarm] = watching(template, 'ApproximateAgeOfOldestMessage', queue)
      if (!alarm) return [`no alarm on the age of the oldest message of ${queue}`]
      // Its own waits, of up to 900 s, are no reason.
      return alarm[1].Properties.Threshold > 900
        ? []
        : [`${alarm[0]} would alarm for a message that only waits`]
    })

export const everyFunctionAlarms: Rule = (template) => {
  const fed = mappings(template).map(([, { Properties }]) => target(Properties.FunctionName))
  return functions(template).flatMap(([name]) => {
    const found = []
    if (watching(template, 'Errors', name).length === 0) found.push(`no alarm on errors of ${name}`)
    // Of a scheduled function a throttle is what keeps it alone.
    if (fed.includes(name) && watching(template, 'Throttles', name).length === 0)
      found.push(`no alarm on throttles of ${name}`)
    return found
  })
}

/** What only an alarm on our own metrics can say, and the metric it watches. */
const OWN = {
  'GcRuns LessThanThreshold': 'gc not run',
  'Orphans GreaterThanThreshold': 'orphans',
  'Retries GreaterThanThreshold': 'errors that nobody expects',
  'CheckFailures GreaterThanThreshold': 'a failed check',
  'CheckFailures LessThanThreshold': 'check not run',
}

export const whatOnlyOurMetricsTellAlarms: Rule = (template) => {
  const watched = alarms(template).flatMap(([, alarm]) =>
    metricsOf(alarm).map(({ MetricName }) => `${MetricName} ${alarm.Properties.ComparisonOperator}`),
  )
  return Object.entries(OWN)
    .filter(([watch]) => !watched.includes(watch))
    .map(([, what]) => `no alarm for: ${what}`)
}

/** No word from a function that should have run is what the alarm is about. */
export const silenceOfTheScheduledFunctionsAlarms: Rule = (template) =>
  alarms(template)
    .filter(
      ([, { Properties }]) =>
        Properties.ComparisonOperator === 'LessThanThreshold' && Properties.TreatMissingData !== 'breaching',
    )
    .map(([name]) => `${name} takes silence for well-being`)

/** `SEARCH('{namespace,deployment,dimension} MetricName="name" deployment="deployment"', …)`: the metric by each value of a dimension. */
const SEARCH = /^SEARCH\('\{([\w-]+),deployment,(\w+)\} MetricName="(\w+)" deployment="([\w-]+)"', '\w+'\)$/

function searchFault(expression: string, deployment: string): string[] {
  const [, namespace, dimension = '', name = '', of = ''] = SEARCH.exec(expression) ?? []
  if (namespace === NAMESPACE && isOurs(name, { deployment: of, [dimension]: 'any' }, deployment)) return []
  return [`the dashboard searches for what no function writes: ${expression}`]
}

/** Every metric row of the dashboard: `[namespace, name, dimension, value, …]`, a dot for what stands above it; or a search. */
export const theDashboardShowsRealMetrics: Rule = (template, { config }) => {
  const [dashboard] = ofType(template, 'AWS::CloudWatch::Dashboard')
  if (!dashboard) return ['there is no dashboard']
  let body: unknown
  try {
    body = JSON.parse(dashboard[1].Properties.DashboardBody['Fn::Sub'])
  } catch (error) {
    return [`the dashboard is not JSON: ${error}`]
  }
  const found: string[] = []
  for (const { path, value } of walk(body)) {
    if (path.at(-1) !== 'metrics') continue
    let above: string[] = []
    for (const row of list(value as unknown[])) {
      const texts = list(row as unknown[]).filter((part) => typeof part === 'string') as string[]
      const options = list(row as unknown[]).find((part) => typeof part === 'object') as {
        expression?: string
      }
      if (options.expression !== undefined) {
        found.push(...searchFault(options.expression, config.deployment))
        continue
      }
      above = texts.map((part, index) => (part === '.' ? above[index] : part) ?? '')
      const [namespace = '', name = '', dimension = '', ...more] = above
      const dimensions = Object.fromEntries(pairs(above.slice(2)))
      const isKnown =
        namespace === NAMESPACE
          ? isOurs(name, dimensions, config.deployment)
          : KNOWN[namespace]?.names.includes(name) &&
            KNOWN[namespace].dimension === dimension &&
            more.length === 1
      if (!isKnown)
        found.push(`the dashboard shows ${namespace} ${name} by ${dimension}, which nobody publishes`)
    }
  }
  const alarmsShown = String(dashboard[1].Properties.DashboardBody['Fn::Sub'])
  return [
    ...found,
    ...alarms(template)
      .filter(([name]) => !alarmsShown.includes(`\${${name}.Arn}`))
      .map(([name]) => `the dashboard leaves out the alarm ${name}`),
  ]
}

/** `[name, value, name, value]` as pairs. */
const pairs = (flat: readonly string[]) =>
  flat.flatMap((name, index) => (index % 2 === 0 ? [[name, flat[index + 1]] as const] : []))

/** What is measured and shown nowhere is paid for and not looked at. */
export const theDashboardShowsAllThatIsMeasured: Rule = (template) => {
  const shown = JSON.stringify(ofType(template, 'AWS::CloudWatch::Dashboard'))
  return Object.keys(METRICS)
    .filter((name) => !new RegExp(`\\b${name}\\b`).test(shown))
    .map((name) => `the dashboard leaves out ${name}`)
}
