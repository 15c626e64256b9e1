/** The value below which a share of the list lies; the list may be in any order. */
export function quantile(list: readonly number[], share: number): number {
  const sorted = [...list].sort((a, b) => a - b)
  const at = Math.min(sorted.length - 1, Math.max(0, Math.ceil(share * sorted.length) - 1))
  return sorted[at] ?? Number.NaN
}

export const median = (list: readonly number[]) => quantile(list, 0.5)
export const p95 = (list: readonly number[]) => quantile(list, 0.95)
export const sum = (list: readonly number[]) => list.reduce((total, value) => total + value, 0)
