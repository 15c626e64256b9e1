import type { Rule, Scenario } from './protocol.ts'

const asked = { kind: 'ask', generation: 1 } as const
const replaced = { kind: 'ask', generation: 2 } as const
const unasked = { kind: 'unask' } as const

/** Small worlds that are gone through whole: what is asked for, and how often each thing may go wrong. */
export const scenarios = {
  creation: { events: [asked], numbers: 1, left: { crashes: 1, lates: 1 } },
  deletion: { events: [asked, unasked], numbers: 1, left: { crashes: 1, lates: 1, others: 1 } },
  replacement: { events: [asked, replaced], numbers: 1, left: { crashes: 1 } },
  'late call': { events: [asked, unasked], numbers: 1, left: { lates: 1 } },
  failure: { events: [asked], numbers: 1, left: { fails: 1, kicks: 1 } },
  'failure and deletion': { events: [asked, unasked], numbers: 1, left: { fails: 1, kicks: 1 } },
  'lost message': { events: [asked], numbers: 1, left: { losses: 1, kicks: 1 } },
  'other hands': { events: [asked], numbers: 2, left: { copies: 1, crashes: 1 } },
  'late sleeper': { events: [asked, replaced], numbers: 1, claimsLate: true },
} as const satisfies Record<string, Scenario>

/** Where the lack of a rule shows. */
export const shownBy: Record<Rule, keyof typeof scenarios> = {
  sendsBeforeSaving: 'creation',
  judgesLeaseBeforeTurn: 'creation',
  checksTurn: 'creation',
  reportsInATurnOfItsOwn: 'failure',
  countsOnlyTakeOvers: 'creation',
  notesTakeOvers: 'deletion',
  heeds596: 'late call',
  sendsCallsOnce: 'late call',
  letsGoBeforeFreeing: 'deletion',
  destroysOnlySettled: 'late call',
  releasesOnlySettled: 'deletion',
  leavesReportAlone: 'failure',
  checksMark: 'other hands',
  checksVmidInMark: 'other hands',
  reservesOnlySettled: 'deletion',
  freesClaims: 'deletion',
  redrivesByMessage: 'failure and deletion',
  stampsClaims: 'late sleeper',
  claimsAnew: 'late sleeper',
}
