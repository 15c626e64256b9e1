import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { runSchedule } from '../../local/schedule.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

describe('schedule', () => {
  it('invokes at its rate with the event of a schedule, and not after its stop', async () => {
    const invoke = vi.fn(async () => undefined)
    const schedule = runSchedule({ name: 'gc', rateSeconds: 60, invoke, onProblem: () => undefined })
    await vi.advanceTimersByTimeAsync(180_000)
    expect(invoke).toHaveBeenCalledTimes(3)
    expect(invoke).toHaveBeenCalledWith(
      expect.objectContaining({ source: 'aws.events', 'detail-type': 'Scheduled Event' }),
    )
    await schedule.stop()
    await vi.advanceTimersByTimeAsync(180_000)
    expect(invoke).toHaveBeenCalledTimes(3)
  })

  it('never runs twice at once, and goes on after a run that failed', async () => {
    const problems: unknown[] = []
    let fail = (_: Error) => undefined as unknown
    const invoke = vi.fn(() => new Promise((_, reject) => (fail = reject)))
    runSchedule({ name: 'gc', rateSeconds: 60, invoke, onProblem: (problem) => problems.push(problem) })
    await vi.advanceTimersByTimeAsync(180_000)
    expect(invoke).toHaveBeenCalledTimes(1)
    fail(new Error('no'))
    await vi.advanceTimersByTimeAsync(60_000)
    expect(problems).toMatchObject([{ what: 'the schedule gc failed' }])
    expect(invoke).toHaveBeenCalledTimes(2)
  })
})
