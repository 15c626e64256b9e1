import { keyOf, parse } from './event.ts'
import { judge } from './judge.ts'

/** What the delete queue carries, and what comes of it. */
export const definition = { side: 'delete', parse, keyOf, judge } as const
