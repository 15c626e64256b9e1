import { type Measurement, measured } from '../../lib/metrics.ts'
import type { Action, Report } from './event.ts'

/** What a run that acted adds to the metrics. */
export function measurementsOf({ actions, heldBack }: Pick<Report, 'actions' | 'heldBack'>): Measurement[] {
  // What was overtaken was not as it had looked. What is held back was not looked at again, and is there for all we know.
  const found = (kind: Action['kind']) =>
    actions.filter((action) => action.kind === kind && action.state !== 'overtaken').length +
    (heldBack[kind] ?? 0)
  return [
    measured('GcRuns', 1, {}),
    measured('Orphans', found('delete orphan'), {}),
    measured('StalledRows', found('kick'), {}),
  ]
}
