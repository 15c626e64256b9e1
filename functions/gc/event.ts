import * as z from 'zod'
import { complaintLine, parseWith } from '../../lib/wanted.ts'

export type { Action, Warning } from './finding.ts'
export { GC_REPORT, type Report, type Reported } from './report.ts'

/** How gc is asked for a run. */
export const GcRequest = z.strictObject({
  /** Looks and plans, and neither notes nor does anything. */
  dryRun: z.boolean().default(false),
})
export type GcRequest = z.infer<typeof GcRequest>

/** What a schedule sends, by EventBridge rule or Scheduler: its content says nothing. */
const Scheduled = z.object({ 'detail-type': z.literal('Scheduled Event') })

/** @throws {Error} naming what is wrong with the request */
export function parse(event: unknown): GcRequest {
  if (Scheduled.safeParse(event).success) return { dryRun: false }
  const parsed = parseWith(GcRequest, event)
  if ('value' in parsed) return parsed.value
  throw new Error(`not a request for gc: ${parsed.complaints.map(complaintLine).join('; ')}`)
}
