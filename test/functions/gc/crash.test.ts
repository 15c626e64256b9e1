import { describe, expect, it } from 'vitest'
import type { GcPorts } from '../../../functions/gc/run.ts'
import { type GcLab, openGcLab } from '../../lab/gc-lab.ts'
import { atStep, settled } from '../../lab/lab.ts'
import { expectOrder, foreignIn, runs } from './order.ts'

class Killed extends Error {
  override readonly name = 'Killed'
}

type Where = { change: number; when: 'before' | 'after' }

const CHANGES = new Set(['leaveVmid', 'free', 'note', 'keep', 'clear', 'send', 'save', 'deleteVolume'])

/** Ports behind which the run dies at a change, and lives no longer: whatever it does afterwards fails, too. */
function dyingAt(where: Where | undefined, seen: string[]) {
  let dead = false
  const guard = <T extends object>(name: string, port: T): T =>
    new Proxy(port, {
      get(target, key) {
        const member: unknown = Reflect.get(target, key)
        if (typeof member !== 'function') return member
        return async (...words: unknown[]) => {
          if (dead) throw new Killed()
          if (!CHANGES.has(String(key))) return Reflect.apply(member, target, words)
          seen.push(`${name}.${String(key)}`)
          const isHere = seen.length === where?.change
          if (isHere) dead = true
          if (isHere && where?.when === 'before') throw new Killed()
          const result = await Reflect.apply(member, target, words)
          if (isHere) throw new Killed()
          return result
        }
      },
    })
  return (ports: GcPorts): GcPorts => ({
    ...ports,
    inventory: guard('inventory', ports.inventory),
    claims: guard('claims', ports.claims),
    suspects: guard('suspects', ports.suspects),
    queues: guard('queues', ports.queues),
    reports: guard('reports', ports.reports),
    clusters: {
      ...ports.clusters,
      named(name, invocation) {
        const vms = ports.clusters.named(name, invocation)
        return vms && guard('proxmox', vms)
      },
    },
  })
}

/** One of everything that gc mends, and a proxy that is well. */
async function disorder() {
  const lab = await openGcLab()
  const foreign = foreignIn(lab)
  for (const uid of ['well', 'orphan']) lab.request(uid)
  lab.request('expired', { spec: { ttlSeconds: 300 } })
  for (const uid of ['well', 'orphan', 'expired']) await settled(lab, uid)
  lab.request('stalled')
  await atStep(lab, 'stalled', 'configure')
  lab.queues.purge('create')
  lab.ledger.drop('orphan')
  await lab.claims.takeVmid('lab', 5003, 'ghost')
  await lab.claims.takeSlot('clone#lab#vmdata#pve1', 2, 'ghost')
  const node = lab.row('well')?.place?.node === 'pve2' ? 'pve3' : 'pve2'
  const filename = 'egress-test-well-g1.iso'
  await lab.finished(lab.admin.upload({ node, storage: 'local', filename, bytes: new Uint8Array([1]) }))
  await lab.grace()
  return { lab, foreign }
}

async function killedRun(lab: GcLab, where: Where | undefined): Promise<{ seen: string[]; died: boolean }> {
  const seen: string[] = []
  const run = lab.beginGc({ interpose: dyingAt(where, seen) })
  const died = run.then(
    () => false,
    (error: unknown) => {
      if (error instanceof Killed) return true
      throw error
    },
  )
  return { died: await lab.on(died), seen }
}

// Which run is killed: the one that looks for the first time, the one that acts, and the one that ends it.
describe.each([
  [1, 8],
  [2, 6],
  [3, 4],
])('gc killed in run %i', (nth, atLeast) => {
  it('does no harm at any point, and the runs after it go on', async () => {
    let changes = Number.POSITIVE_INFINITY
    let killed = 0
    for (let change = 1; change <= changes; change++) {
      for (const when of ['before', 'after'] as const) {
        const { lab, foreign } = await disorder()
        try {
          await runs(lab, nth - 1)
          const { seen, died } = await killedRun(lab, { change, when })
          if (!died) {
            changes = seen.length
            continue
          }
          killed += 1
          await lab.run()
          await lab.grace()
          await runs(lab, 3)
          try {
            expectOrder(lab, foreign)
            expect(
              lab.ledger
                .rows()
                .filter(({ phase }) => phase === 'Ready')
                .map(({ uid }) => uid)
                .sort(),
            ).toEqual(['stalled', 'well'])
            expect(lab.queues.deadLetters).toEqual([])
          } catch (error) {
            throw new Error(`killed ${when} change ${change}, ${seen[change - 1]}`, { cause: error })
          }
        } finally {
          await lab.close()
        }
      }
    }
    expect(killed).toBeGreaterThanOrEqual(2 * atLeast)
  })
})
