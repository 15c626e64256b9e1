import { readFileSync } from 'node:fs'
import { availableParallelism, loadavg } from 'node:os'
import * as z from 'zod'
import { type Figure, type Sheet, shown, TIMED } from './report.ts'

export type Results = Record<string, readonly Figure[]>

/** Processes that wanted a core, for each core there is: above one, milliseconds are those of whoever else is at work. */
export const crowding = () => (loadavg()[0] ?? 0) / availableParallelism()

/** What was recorded: figures by part. */
const Recorded = z.object({
  takenAt: z.string(),
  /** Of the most crowded run that a part of this comes from. */
  crowding: z.number(),
  parts: z.record(
    z.string(),
    z.array(
      z.object({
        name: z.string(),
        value: z.number(),
        unit: z.string(),
        noise: z.number(),
        aim: z.number().optional(),
        moreIsBetter: z.literal(true).optional(),
      }),
    ),
  ),
})
type Recorded = z.infer<typeof Recorded>

export const recordedPath = new URL('./recorded.json', import.meta.url)

export const readRecorded = (): Recorded => Recorded.parse(JSON.parse(readFileSync(recordedPath, 'utf8')))

/**
 * Figures that got worse, or better, by more than their noise since they were recorded. Those of the machine's clock are
 * left out when the machine was crowded, now or then: on such a one they were seen to differ by a factor of four.
 */
export function compared(
  results: Results,
  recorded: Recorded,
  crowdedNow: number,
): { sheet: Sheet; worse: number; leftOut: number } {
  const { parts, takenAt } = recorded
  const isCrowded = Math.max(crowdedNow, recorded.crowding) > 1
  let leftOut = 0
  const rows: Sheet['rows'] = []
  let worse = 0
  for (const [part, figures] of Object.entries(results)) {
    for (const { name, value, unit, noise, moreIsBetter } of figures) {
      const before = parts[part]?.find((figure) => figure.name === name)
      if (!before || before.value === 0) continue
      if (isCrowded && noise >= TIMED) {
        leftOut += 1
        continue
      }
      const grown = value / before.value - 1
      if (Math.abs(grown) <= Math.max(noise, 1e-9)) continue
      const isWorse = grown > 0 !== Boolean(moreIsBetter)
      if (isWorse) worse += 1
      const change = `${grown > 0 ? '+' : ''}${(grown * 100).toFixed(1)} %`
      rows.push([
        part,
        name,
        `${shown(before.value)} ${unit}`,
        `${shown(value)} ${unit}`,
        change,
        isWorse ? 'WORSE' : 'better',
      ])
    }
  }
  const title = `Beyond the noise since ${takenAt}: ${worse} worse, ${rows.length - worse} better`
  return { sheet: { title, head: ['part', 'figure', 'then', 'now', 'change', ''], rows }, worse, leftOut }
}
