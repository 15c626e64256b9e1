import { keyOf } from './event.ts'
import { judge } from './judge.ts'
import { parse } from './parse.ts'

/** What the create queue carries, and what comes of it. */
export const definition = { side: 'create', parse, keyOf, judge } as const
