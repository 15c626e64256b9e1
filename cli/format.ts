/** `350 ms`, `4.2 s`, `3 min`, `5 h`, `2 d`: one unit, as a person would say it. */
export function duration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`
  if (ms < 2 * 3_600_000) return `${Math.round(ms / 60_000)} min`
  if (ms < 2 * 86_400_000) return `${Math.round(ms / 3_600_000)} h`
  return `${Math.round(ms / 86_400_000)} d`
}

export const instant = (ms: number) => new Date(ms).toISOString()
