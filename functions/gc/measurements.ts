import { type Measurement, measured } from '../../lib/metrics.ts'
import type { Action, Report } from './event.ts'

/** What a run that acted adds to the metrics. */
export function measurementsOf({ actions }: Pick<Report, 'actions'>): Measurement[] {
  // What was overtaken was not as it had looked.
  const found = (kind: Action['kind']) =>
    actions.filter((action) => action.kind === kind && action.state !== 'overtaken').length
  return [
    measured('GcRuns', 1, {}),
    measured('Orphans', found('delete orphan'), {}),
    measured('StalledRows', found('kick'), {}),
  ]
}
