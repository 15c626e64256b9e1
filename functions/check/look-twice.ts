import type { Fact } from './facts.ts'

type Late = Fact<unknown> & { known: false; code: 'Aborted' }

/** How long one look may take; each begins its own time. */
export type Patience = { ms: number; begin(): AbortSignal }

/**
 * A look, and a second one when a part of the first came too late: the first also pays for names, handshakes and whatever
 * else keeps this machine busy. What came too late both times says so, in the place of the client's own words. Of what
 * `isDead` after the first, no second look is taken.
 */
export async function lookTwice<T>(
  { ms, begin }: Patience,
  look: (signal: AbortSignal) => Promise<T>,
  isDead: (facts: T) => boolean = () => false,
): Promise<T> {
  const first = await look(begin())
  if (!someLate(first) || isDead(first)) return first
  const reason = `no answer within ${(ms / 1000).toFixed(0)} s, asked twice`
  return eachLate(await look(begin()), (late) => ({ ...late, reason }))
}

function someLate(facts: unknown): boolean {
  let found = false
  eachLate(facts, (late) => {
    found = true
    return late
  })
  return found
}

const isLate = (part: object): part is Late =>
  'known' in part && part.known === false && 'code' in part && part.code === 'Aborted'

/** A copy in which each fact that came too late is replaced; facts are plain objects, in lists and maps. */
function eachLate<T>(facts: T, replace: (late: Late) => Late): T {
  const copy = (part: unknown): unknown => {
    if (typeof part !== 'object' || part === null) return part
    if (Array.isArray(part)) return part.map(copy)
    if (part instanceof Map) return new Map([...part].map(([key, value]) => [key, copy(value)]))
    if (isLate(part)) return replace(part)
    // What is known was not late.
    if ('known' in part) return part
    return Object.fromEntries(Object.entries(part).map(([key, value]) => [key, copy(value)]))
  }
  return copy(facts) as T // The same shape, by construction.
}
