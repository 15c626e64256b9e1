import { randomUUID } from 'node:crypto'
import { ACCOUNT, REGION } from './account.ts'

export type Schedule = { stop(): Promise<void> }

/** Invokes a function at a rate, never twice at once: a run that lasts longer than the interval leaves out those that fell into it. */
export function runSchedule(options: {
  name: string
  rateSeconds: number
  invoke(event: unknown): Promise<unknown>
  onProblem(problem: { what: string; error: unknown }): void
}): Schedule {
  const { name, rateSeconds, invoke, onProblem } = options
  let running: Promise<void> | undefined

  const timer = setInterval(() => {
    running ??= invoke(scheduledEvent(name, new Date()))
      .then(
        () => undefined,
        (error: unknown) => onProblem({ what: `the schedule ${name} failed`, error }),
      )
      .finally(() => {
        running = undefined
      })
  }, rateSeconds * 1000)

  return {
    async stop() {
      clearInterval(timer)
      await running
    },
  }
}

/** Source: Amazon EventBridge, the event of a schedule. */
const scheduledEvent = (name: string, time: Date) => ({
  version: '0',
  id: randomUUID(),
  'detail-type': 'Scheduled Event',
  source: 'aws.events',
  account: ACCOUNT,
  time: time.toISOString(),
  region: REGION,
  resources: [`arn:aws:events:${REGION}:${ACCOUNT}:rule/${name}`],
  detail: {},
})
