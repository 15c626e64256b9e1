import type { RowSummary } from '../../lib/inventory.ts'
import { HOLD_TAG } from '../../lib/names.ts'
import type { ListedVm } from '../../lib/proxmox/index.ts'
import { sideOf } from '../../lib/record.ts'
import type { Action, Warning } from './event.ts'
import type { Scene } from './finding.ts'
import { isLive } from './world.ts'

type Expiry = Action & { kind: 'expire' }
type Kick = Action & { kind: 'kick' }
export type FoundRows = { expiries: Expiry[]; kicks: Kick[]; warnings: Warning[] }

/** Rows whose time is up, and rows that stand still because their message was lost. A failed one waits for a person. */
export function findRows(scene: Scene): FoundRows {
  const { rows, now } = scene.world
  const expiries: Expiry[] = []
  const kicks: Kick[] = []
  const warnings: Warning[] = []
  for (const row of rows.filter(isLive)) {
    const { uid, turn, step, dueAt, lease, expiresAt } = row
    if (row.wish === 'present' && expiresAt !== undefined && expiresAt <= now) {
      const holder = holderOf(row, scene)
      // Its deletion moves it along, wherever it stands.
      if (holder === 'nobody') {
        expiries.push({ kind: 'expire', uid, expiresAt })
        continue
      }
      if (holder !== 'unknown') warnings.push(held(row, holder))
    }
    const isHeld = lease !== undefined && lease.until >= now
    if (step === undefined || turn === undefined || dueAt === undefined) continue
    if (isHeld || dueAt + scene.rules.stallMs >= now) continue
    kicks.push({ kind: 'kick', uid, turn, side: sideOf(step, row.failedStep), step, dueAt })
  }
  return {
    expiries: expiries.sort((a, b) => a.expiresAt - b.expiresAt),
    kicks: kicks.sort((a, b) => a.dueAt - b.dueAt),
    warnings,
  }
}

/** The VM that a person holds for the row; it is unknown whether one does where the cluster could not be listed. */
function holderOf({ place }: RowSummary, { world }: Scene): ListedVm | 'nobody' | 'unknown' {
  if (!place) return 'nobody'
  const cluster = world.clusters.find(({ name }) => name === place.cluster)
  if (!cluster) return 'unknown'
  return cluster.vms.find(({ vmid, tags }) => vmid === place.vmid && tags.has(HOLD_TAG)) ?? 'nobody'
}

const held = ({ uid, place }: RowSummary, { vmid, node }: ListedVm): Warning => ({
  code: 'Held',
  cluster: place?.cluster ?? '',
  vmid,
  uid,
  text: `the time of ${uid} is up, and its VM ${vmid} on ${node} is tagged ${HOLD_TAG}, so it stays`,
  hint: `take the tag ${HOLD_TAG} away when it is not needed any more`,
})
