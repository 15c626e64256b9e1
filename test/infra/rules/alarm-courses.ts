import { type Course, minutesInAlarm, type SingleMetricAlarm } from '../alarm-states.ts'
import { ofType } from '../template.ts'
import type { Rule } from './rule.ts'

/** When the trouble begins, in minutes; not at the beginning of anybody's period. */
const BEGINS = 61
const UNTIL = 240

/** What an alarm is to go off for, how soon, and what it is to leave alone. */
type Case = { of: RegExp; trouble: Course[]; withinMinutes: number; fine: Course[] }

const from =
  (before: number[], then: number[]): Course =>
  (minute) =>
    minute < BEGINS ? before : then
const once =
  (before: number[], then: number[]): Course =>
  (minute) =>
    minute === BEGINS ? then : before
const silent: Course = () => []
const steady =
  (...samples: number[]): Course =>
  () =>
    samples
/** Every five minutes, as schedules come; `at` is given the number of the run. */
const runs =
  (at: (run: number) => number[]): Course =>
  (minute) =>
    minute % 5 === 2 ? at(Math.floor(minute / 5)) : []
const BEGINS_RUN = Math.floor(BEGINS / 5)

const CASES: Case[] = [
  {
    of: /DeadLettersWaiting$/,
    trouble: [from([0], [1]), from([], [1])],
    withinMinutes: 10,
    fine: [silent, steady(0)],
  },
  {
    of: /QueueStands$/,
    trouble: [(minute) => [Math.max(0, minute - BEGINS) * 60]],
    withinMinutes: 45,
    // Our own longest wait; and a spike, as a batch that is retried shows for a moment.
    fine: [silent, steady(900), once([0], [4000])],
  },
  { of: /^UnexpectedErrors$/, trouble: [from([], [1])], withinMinutes: 20, fine: [silent, once([], [1])] },
  {
    of: /Errors$/,
    trouble: [once([0, 0], [0, 1]), once([], [1])],
    withinMinutes: 10,
    fine: [silent, steady(0)],
  },
  {
    of: /Throttles$/,
    trouble: [from([0], [1])],
    withinMinutes: 20,
    fine: [silent, steady(0), once([0], [3])],
  },
  {
    of: /^OutcomesNotDelivered$/,
    trouble: [once([0], [1]), once([], [1])],
    withinMinutes: 10,
    fine: [silent, steady(0)],
  },
  {
    of: /^GcNotRun$/,
    trouble: [runs((run) => (run < BEGINS_RUN ? [1] : []))],
    withinMinutes: 50,
    fine: [runs(() => [1]), runs((run) => (run === BEGINS_RUN ? [] : [1]))],
  },
  {
    of: /^Orphans$/,
    trouble: [runs((run) => [run === BEGINS_RUN ? 1 : 0])],
    withinMinutes: 10,
    fine: [silent, runs(() => [0])],
  },
  {
    of: /^CheckFailed$/,
    trouble: [runs((run) => [run < BEGINS_RUN ? 0 : 1])],
    withinMinutes: 15,
    fine: [silent, runs(() => [0]), runs((run) => [run === BEGINS_RUN ? 1 : 0])],
  },
  {
    of: /^CheckNotRun$/,
    trouble: [runs((run) => (run < BEGINS_RUN ? [0] : []))],
    withinMinutes: 50,
    fine: [runs(() => [0]), runs(() => [2]), runs((run) => (run === BEGINS_RUN ? [] : [0]))],
  },
  {
    // Of two tunnels: by some pages of AWS as two samples, by others as their share.
    of: /^VpnDown$/,
    trouble: [from([1, 1], [0, 0]), from([1], [0]), from([1, 1], [])],
    withinMinutes: 15,
    fine: [steady(1, 1), steady(0, 1), steady(0.5)],
  },
  {
    of: /^VpnTunnelDown$/,
    trouble: [from([1, 1], [0, 1]), from([1], [0.5])],
    withinMinutes: 40,
    // Maintenance.
    fine: [steady(1, 1), (minute) => [1, minute >= BEGINS && minute < BEGINS + 15 ? 0 : 1]],
  },
]

/** Each alarm is shown a course of its metric: it goes off for what it is there for, in time, and for nothing else. */
export const alarmsGoOffForTheirTroubleAlone: Rule = (template) =>
  ofType(template, 'AWS::CloudWatch::Alarm')
    .filter(([, { Properties }]) => !Properties.Metrics)
    .flatMap(([name, { Properties }]) => {
      const known = CASES.find(({ of }) => of.test(name))
      if (!known) return [`${name}: nobody says what it is to go off for`]
      const { trouble, withinMinutes, fine } = known
      // By the type of the template, whatever stands in it: what is no alarm throws.
      const at = (course: Course) => minutesInAlarm(Properties as SingleMetricAlarm, course, UNTIL)
      try {
        const late = trouble.some((course) => {
          const [first = Number.POSITIVE_INFINITY] = at(course)
          return !(first > BEGINS && first <= BEGINS + withinMinutes)
        })
        const found = late ? [`${name} does not go off within ${withinMinutes} minutes`] : []
        if (fine.some((course) => at(course).length > 0)) found.push(`${name} goes off for nothing`)
        return found
      } catch (error) {
        return [`${name}: ${String(error)}`]
      }
    })

const ARRIVALS = 'FILL(sent, 0) + IF(DIFF(level) > 0, DIFF(level), 0)'

/** One letter is enough, and every period counts for itself. */
export const everyLetterThatArrivesCounts: Rule = (template) =>
  ofType(template, 'AWS::CloudWatch::Alarm')
    .filter(([, { Properties }]) => Properties.Metrics)
    .filter(
      ([
        ,
        {
          Properties: { Metrics, EvaluationPeriods, Threshold, ComparisonOperator, TreatMissingData },
        },
      ]) => {
        const [arrivals, sent, level] = Metrics
        return !(
          arrivals.Expression === ARRIVALS &&
          arrivals.ReturnData === true &&
          sent.Id === 'sent' &&
          sent.MetricStat.Stat === 'Sum' &&
          level.Id === 'level' &&
          level.MetricStat.Stat === 'Maximum' &&
          sent.MetricStat.Period <= 300 &&
          level.MetricStat.Period === sent.MetricStat.Period &&
          EvaluationPeriods === 1 &&
          Threshold === 0 &&
          ComparisonOperator === 'GreaterThanThreshold' &&
          TreatMissingData === 'notBreaching'
        )
      },
    )
    .map(([name]) => `${name} does not go off for every letter`)
