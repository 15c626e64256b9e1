/** A metric as it is reported: its samples of a minute. */
export type Course = (minute: number) => number[]

/** What an alarm on a single metric says of itself. */
export type SingleMetricAlarm = {
  Period: number
  EvaluationPeriods: number
  DatapointsToAlarm?: number
  Statistic: string
  Threshold: number
  ComparisonOperator: string
  TreatMissingData?: string
}

const STATISTICS: Record<string, (samples: number[]) => number> = {
  Sum: (samples) => samples.reduce((so, one) => so + one, 0),
  Maximum: (samples) => Math.max(...samples),
  Minimum: (samples) => Math.min(...samples),
  Average: (samples) => samples.reduce((so, one) => so + one, 0) / samples.length,
  SampleCount: (samples) => samples.length,
}

const OPERATORS: Record<string, (value: number, threshold: number) => boolean> = {
  GreaterThanThreshold: (value, threshold) => value > threshold,
  GreaterThanOrEqualToThreshold: (value, threshold) => value >= threshold,
  LessThanThreshold: (value, threshold) => value < threshold,
  LessThanOrEqualToThreshold: (value, threshold) => value <= threshold,
}

const MISSING: Record<string, boolean | undefined> = { breaching: true, notBreaching: false }

/**
 * The minutes, of the first `until`, at whose end the alarm is in alarm. Periods without samples count as
 * TreatMissingData says; where it says to ignore them, those before them are looked at.
 * Source: Amazon CloudWatch user guide, "Alarm evaluation" and "Configuring how CloudWatch alarms treat missing data".
 * @throws {Error} for a word that CloudWatch does not know
 */
export function minutesInAlarm(alarm: SingleMetricAlarm, course: Course, until: number): number[] {
  const { Period, EvaluationPeriods, DatapointsToAlarm = EvaluationPeriods, Threshold } = alarm
  const { TreatMissingData = 'missing' } = alarm
  const statistic = known(STATISTICS, alarm.Statistic)
  const breaches = known(OPERATORS, alarm.ComparisonOperator)
  if (!['breaching', 'notBreaching', 'ignore', 'missing'].includes(TreatMissingData))
    throw new Error(`CloudWatch knows no ${TreatMissingData}`)
  const length = Period / 60
  const points: boolean[] = []
  const found: number[] = []
  for (let end = length; end <= until; end += length) {
    const samples = Array.from({ length }, (_, index) => course(end - length + index)).flat()
    const point = samples.length > 0 ? breaches(statistic(samples), Threshold) : MISSING[TreatMissingData]
    if (point !== undefined) points.push(point)
    if (points.slice(-EvaluationPeriods).filter(Boolean).length >= DatapointsToAlarm) found.push(end)
  }
  return found
}

function known<T>(words: Record<string, T>, word: string): T {
  const found = words[word]
  if (found === undefined) throw new Error(`CloudWatch knows no ${word}`)
  return found
}
