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

/** Metrics made by the stack itself, from what the functions log. */
const ours = (template: Template) =>
  ofType(template, 'AWS::Logs::MetricFilter').flatMap(([, { Properties }]) =>
    list(Properties.MetricTransformations).map(
      ({ MetricNamespace, MetricName }) => `${JSON.stringify(MetricNamespace)} ${MetricName}`,
    ),
  )

/** An alarm on a metric that nobody publishes is quiet for ever. */
export const alarmsWatchRealMetrics: Rule = (template) =>
  alarms(template).flatMap(([name, alarm]) =>
    metricsOf(alarm).flatMap(({ Namespace, MetricName, Dimensions }) => {
      if (ours(template).includes(`${JSON.stringify(Namespace)} ${MetricName}`)) return []
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
  'GcOrphans GreaterThanThreshold': 'orphans',
  'CheckFailures GreaterThanThreshold': 'a failed check',
  'CheckFailures LessThanThreshold': 'check not run',
}

export const whatTheScheduledFunctionsFindAlarms: Rule = (template) => {
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

/** Every metric row of the dashboard: `[namespace, name, dimension, value]`, a dot for what stands above it. */
export const theDashboardShowsRealMetrics: Rule = (template) => {
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
      const [namespace = '', name = '', dimension = '', of = ''] = texts.map(
        (part, index) => (part === '.' ? above[index] : part) ?? '',
      )
      above = [namespace, name, dimension, of]
      const known = KNOWN[namespace]
      const own = ours(template).some((metric) => metric.endsWith(` ${name}`))
      if (!own && (!known?.names.includes(name) || known.dimension !== dimension))
        found.push(`the dashboard shows ${namespace} ${name} by ${dimension}, which nobody publishes`)
    }
  }
  const alarmsShown = String(dashboard[1].Properties.DashboardBody['Fn::Sub'])
  return [
    ...found,
    ...alarms(template)
      .filter(([name]) => name !== 'VpnDown' && !alarmsShown.includes(`\${${name}.Arn}`))
      .map(([name]) => `the dashboard leaves out the alarm ${name}`),
  ]
}
