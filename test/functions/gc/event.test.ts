import { describe, expect, it } from 'vitest'
import { parse } from '../../../functions/gc/event.ts'

describe('gc: a request', () => {
  it.each([
    ['of a rule of EventBridge', { 'detail-type': 'Scheduled Event', source: 'aws.events', detail: {} }],
    ['of EventBridge Scheduler', { 'detail-type': 'Scheduled Event', source: 'aws.scheduler', detail: '{}' }],
    ['that says nothing', {}],
    ['for a run', { dryRun: false }],
  ])('%s is a run', (_, event) => {
    expect(parse(event)).toEqual({ dryRun: false })
  })

  it('for a plan is one', () => {
    expect(parse({ dryRun: true })).toEqual({ dryRun: true })
  })

  // Taken for a run, a misspelt plan would delete.
  it.each([
    [{ dryrun: true }, 'dryrun: got a field of this name'],
    [{ dryRun: 'yes' }, 'dryRun: got "yes", wanted a boolean'],
    [undefined, '(document): got nothing'],
    [{ Records: [] }, 'Records: got a field of this name'],
  ])('%o is refused', (event, complaint) => {
    expect(() => parse(event)).toThrow(complaint)
  })
})
