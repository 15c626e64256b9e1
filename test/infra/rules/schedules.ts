import { list, ofType, type Template, target } from '../template.ts'
import { functions, mappings } from './functions.ts'
import { statementsOf } from './roles.ts'
import type { Rule } from './rule.ts'

const schedules = (template: Template) => ofType(template, 'AWS::Scheduler::Schedule')

/** A function with neither a queue nor a schedule never runs. */
export const everyFunctionIsStartedBySomething: Rule = (template) => {
  const started = [
    ...mappings(template).map(([, { Properties }]) => target(Properties.FunctionName)),
    ...schedules(template).map(([, { Properties }]) => target(Properties.Target?.Arn)),
  ]
  return functions(template)
    .filter(([name]) => !started.includes(name))
    .map(([name]) => `nothing starts ${name}`)
}

/** Two at once do no harm and no good: one runs, and a start that fell into it is not made up for. */
export const scheduledFunctionsRunOnceAtATime: Rule = (template) =>
  schedules(template).flatMap(([schedule, { Properties }]) => {
    const name = target(Properties.Target?.Arn) ?? ''
    const found = []
    if (template.Resources[name]?.Properties.ReservedConcurrentExecutions !== 1)
      found.push(`${name} may run several times at once`)
    const retries = ofType(template, 'AWS::Lambda::EventInvokeConfig').find(
      ([, one]) => target(one.Properties.FunctionName) === name,
    )
    if (retries?.[1].Properties.MaximumRetryAttempts !== 0)
      found.push(`${name} is tried again while its next run comes`)
    if (Properties.Target?.RetryPolicy?.MaximumRetryAttempts !== 0)
      found.push(`${schedule} makes up for starts that are past`)
    if (Properties.State === 'DISABLED') found.push(`${schedule} is disabled`)
    return found
  })

export const schedulesMayStartTheirFunctions: Rule = (template) =>
  schedules(template).flatMap(([schedule, { Properties }]) => {
    const role = target(Properties.Target?.RoleArn) ?? ''
    const mayStart = statementsOf(template, role)
      .filter(({ Action }) => list(Action).join() === 'lambda:InvokeFunction')
      .flatMap(({ Resource }) => list(Resource).map(target))
    const started = target(Properties.Target?.Arn)
    return mayStart.includes(started) ? [] : [`${role} may not start ${started}, which ${schedule} wants`]
  })

/** Everything a schedule's role may start is started by a schedule. */
export const schedulesMayStartNothingElse: Rule = (template) => {
  const started = schedules(template).map(([, { Properties }]) => target(Properties.Target?.Arn))
  const roles = new Set(
    schedules(template).map(([, { Properties }]) => target(Properties.Target?.RoleArn) ?? ''),
  )
  return [...roles].flatMap((role) =>
    statementsOf(template, role)
      .flatMap(({ Action, Resource }) =>
        list(Resource).map((resource) => ({ action: list(Action).join(), on: target(resource) })),
      )
      .filter(({ action, on }) => action !== 'lambda:InvokeFunction' || !started.includes(on))
      .map(({ action, on }) => `${role} may ${action} ${on}, which no schedule wants`),
  )
}

const MINUTES = /^rate\((\d+) minutes\)$/

/** What looks after the rest comes often, always, and is done before it comes again; its alarm waits for a quarter of an hour. */
export const schedulesComeOftenEnough: Rule = (template) =>
  schedules(template).flatMap(([name, { Properties }]) => {
    const minutes = Number(MINUTES.exec(Properties.ScheduleExpression)?.[1])
    const timeout = template.Resources[target(Properties.Target?.Arn) ?? '']?.Properties.Timeout
    const found = []
    if (!(minutes <= 5))
      found.push(`${name}: ${Properties.ScheduleExpression}, wanted every five minutes or oftener`)
    if (timeout > minutes * 60) found.push(`${name} starts what may still run, for ${timeout} s`)
    const trust =
      template.Resources[target(Properties.Target?.RoleArn) ?? '']?.Properties.AssumeRolePolicyDocument
    const group = list(trust?.Statement).map(({ Condition }) =>
      target(Condition?.StringEquals?.['aws:SourceArn']),
    )
    if (!group.includes(target(Properties.GroupName)))
      found.push(`${name} is in a group whose schedules may not have its role`)
    if (Properties.StartDate || Properties.EndDate) found.push(`${name} ends`)
    if (Properties.FlexibleTimeWindow?.Mode !== 'OFF') found.push(`${name} comes when it likes`)
    return found
  })
