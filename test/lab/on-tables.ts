import { type Claim, createClaims } from '../../lib/claims.ts'
import type { Item } from '../../lib/conditional.ts'
import { createLedger, rowOf } from '../../lib/ledger.ts'
import type { Row } from '../../lib/record.ts'
import { createSuspects, Suspect } from '../../lib/suspects.ts'
import { createUserDataStore } from '../../lib/user-data.ts'
import type { createMemoryClaims } from '../fakes/claims.ts'
import type { createMemoryLedger } from '../fakes/ledger.ts'
import { createMemoryTables } from '../fakes/tables.ts'

/** The real ledger, claims and user data on tables in memory, with what a test may look at besides. */
export function onTables(options: {
  leaseMs: number
  settleMs: number
  now: () => number
  /** How often the SDK sends a write, of which the code hears the last. */
  timesSent?: () => number
}) {
  const { now, timesSent } = options
  const { client, items } = createMemoryTables(
    { proxies: { partition: 'uid' }, claims: { partition: 'partition', sort: 'sort' } },
    timesSent,
  )
  const isSuspect = ({ partition }: Item) => partition === 'suspect'
  // What is stored is replaced and never changed, so that it may be shown as it is.
  const suspects = () => [...items('claims').values()].filter(isSuspect)
  const stored = () => [...items('proxies').values()]
  const known = new WeakMap<Item, Row | undefined>()
  const read = (item: Item) => {
    if (!known.has(item)) {
      const row = rowOf(item)
      known.set(item, row.phase === undefined ? undefined : row)
    }
    return known.get(item)
  }

  const ledger: ReturnType<typeof createMemoryLedger> = {
    ...createLedger({ ...options, client, table: 'proxies' }),
    // Written by `take` and `save` alone, in this shape.
    items: () => stored() as ReturnType<ReturnType<typeof createMemoryLedger>['items']>,
    put: (item) => void items('proxies').set(`${item.uid}\n`, structuredClone(item)),
    drop: (uid) => void items('proxies').delete(`${uid}\n`),
    rows: () =>
      stored().flatMap((item): Row[] => {
        const row = read(item)
        return row === undefined ? [] : [row]
      }),
  }
  const claims: ReturnType<typeof createMemoryClaims> = {
    ...createClaims({ client, table: 'claims', now }),
    // Written by `take` alone, in the shape of a claim.
    all: () => [...items('claims').values()].filter((item) => !isSuspect(item)) as unknown as Claim[],
    put: (claim) => void items('claims').set(`${claim.partition}\n${claim.sort}`, structuredClone(claim)),
    suspects,
    suspected: () => suspects().map((item) => Suspect.parse(item)),
    judged: createSuspects({ client, table: 'claims', now }),
  }
  return { ledger, claims, userData: createUserDataStore(client, 'proxies') }
}
