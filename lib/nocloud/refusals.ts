import { clientRange } from './client-range.ts'
import type { Seed } from './seed.ts'
import { SeedError } from './seed-error.ts'
import { userData } from './user-data.ts'

/** A part of a wish that no seed can be made of. */
export type Refusal = { field: 'allow' | 'userData'; index?: number; got: string; wanted: string }

/** What `makeSeed` would refuse of a wish, all of it at once, so that its publisher hears of it before a VM is made. */
export function refusals({
  allow,
  userData: text,
}: {
  allow: readonly string[]
  userData?: string
}): Refusal[] {
  const ranges = allow.flatMap((range, index): Refusal[] => {
    const read = clientRange(range)
    return 'range' in read ? [] : [{ field: 'allow', index, got: JSON.stringify(range), wanted: read.wanted }]
  })
  return [...ranges, ...(text === undefined ? [] : ofUserData(text))]
}

function ofUserData(text: string): Refusal[] {
  try {
    // Only this field of a seed is looked at.
    userData({ userData: text } as Seed)
    return []
  } catch (error) {
    if (!(error instanceof SeedError)) throw error
    return [{ field: 'userData', got: 'text (not shown)', wanted: error.wanted }]
  }
}
