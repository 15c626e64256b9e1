import type { Moment, Place, Row } from '../../lib/record.ts'
import type { FullSpec, Spec } from '../../lib/spec.ts'

export const NOW = Date.UTC(2026, 0, 1)

export const aPlace: Place = { cluster: 'lab', node: 'pve1', vmid: 5001, template: 9000, storage: 'vmdata' }

export const aSpec: Spec = { zone: 'lab-1', image: 'debian-12' }

export const aFullSpec: FullSpec = {
  zone: 'lab-1',
  image: 'debian-12',
  size: { cores: 1, memoryMiB: 512, diskGiB: 4 },
  proxy: { protocol: 'http', port: 3128, allow: ['10.0.0.0/8'] },
  hasUserData: false,
}

/** A row that has everything a step may rely on, about to clone, with whatever a test wants otherwise. */
export function aRow(changes: { [K in keyof Row]?: Row[K] | undefined } = {}): Row {
  const row = {
    uid: 'a',
    wish: 'present',
    generation: 1,
    name: 'alpha',
    spec: aFullSpec,
    specHash: 'hash',
    phase: 'Provisioning',
    step: 'clone',
    turn: 3,
    since: NOW,
    dueAt: NOW,
    deliveries: 0,
    lookedAgain: 0,
    probed: 0,
    place: aPlace,
    mac: '02:00:00:00:00:01',
    seed: 'local:iso/egress-test-a-g1.iso',
    timeline: [],
    createdAt: NOW,
    requestedAt: NOW,
    ...changes,
  }
  // A change to `undefined` leaves the field out, as in a stored row.
  return Object.fromEntries(Object.entries(row).filter(([, value]) => value !== undefined)) as Row
}

/** Nothing of ours can still be running, and no task ever ended. */
export const calm: Moment = { settled: true, waitedSeconds: 0, endedSecondsAgo: Number.POSITIVE_INFINITY }
