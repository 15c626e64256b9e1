import { type Claims, createClaims, slotPartition, zonePartition } from '../../lib/claims.ts'
import { createReports } from '../../lib/reports.ts'
import { createMemoryTables } from '../fakes/tables.ts'
import { aConfig } from '../lib/a-config.ts'
import { aPlace } from '../lib/a-row.ts'

type Item = Record<string, unknown>
/** A new kind of claim is a compile error until it is written here. */
type EveryClaim = Record<
  Extract<keyof Claims, `take${string}` | `queue${string}` | `leave${string}`>,
  () => Promise<unknown>
>

/** What the code really writes into the table of claims: an item of every kind, told apart by whether it may be forgotten. */
export async function writtenClaims(): Promise<{ claims: Item[]; forgettable: Item[] }> {
  const { client, items } = createMemoryTables({ claims: { partition: 'partition', sort: 'sort' } })
  const options = { client, table: 'claims' }
  const claims = createClaims(options)
  const cluster = aConfig().clusters.lab
  if (!cluster) throw new Error('the small configuration has a cluster')
  const queue = slotPartition(aPlace, cluster)
  const every: EveryClaim = {
    takeVmid: () => claims.takeVmid('lab', 5001, 'a'),
    leaveVmid: () => claims.leaveVmid({ cluster: 'lab', vmid: 5002 }, 'a', 'orphan#lab#5002', undefined),
    takeSlot: () => Promise.all([queue, zonePartition('lab-1')].map((one) => claims.takeSlot(one, 1, 'a'))),
    queueForSlot: () => claims.queueForSlot(queue, 1, 'b', 1),
    takeAgentTurn: () => claims.takeAgentTurn('lab', 'pve1', 'a'),
    takeAddress: () => claims.takeAddress('lab', '10.0.0.7', 'a'),
  }
  for (const write of Object.values(every)) await write()
  const reserved = new Set(items('claims').values())
  await claims.suspect('seed#x', { kind: 'seed' })
  for (const partition of ['gc-report', 'check-report'] as const)
    await createReports({ ...options, partition }).save({ startedAt: new Date(0).toISOString() })
  return {
    claims: [...reserved],
    forgettable: [...items('claims').values()].filter((item) => !reserved.has(item)),
  }
}
