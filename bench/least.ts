import { sum } from './statistics.ts'

/**
 * The fewest requests a life can take when each step may be repeated by anyone at any time (a crash, a duplicate, a late
 * message), as far as the invariants of ARCHITECTURE.md demand them. Polls of tasks are left out on both sides.
 *
 * - A change of a VM is preceded, in the same invocation, by a look at the configuration that bears our mark (invariant 3).
 * - What a task was to bring about is seen on the machine and not believed of the task.
 * - Absence is proven by two requests: one that shows a quorum, one that no guest holds the number (invariants 2 and 6).
 *   It is proven when the VM was destroyed, and again before the number is given back, since a call may have run late.
 */
export const CAREFUL: readonly { step: string; requests: number; why: string }[] = [
  {
    step: 'reserve',
    requests: 3,
    why: 'nodes (which is online; also the quorum), nextid, disks left at the number',
  },
  {
    step: 'clone',
    requests: 4,
    why: 'is it there already: quorum, nextid; clone; then the configuration: is it whole?',
  },
  { step: 'seed', requests: 1, why: 'upload' },
  { step: 'configure', requests: 3, why: 'configuration, change, resize' },
  { step: 'start', requests: 3, why: 'configuration, start; then the status: does it run?' },
  { step: 'address', requests: 1, why: 'the agent' },
  { step: 'verify', requests: 0, why: 'not a matter of Proxmox' },
  { step: 'stop', requests: 3, why: 'configuration, stop; then the status: does it stand?' },
  { step: 'unseed', requests: 1, why: 'delete the seed' },
  { step: 'destroy', requests: 5, why: 'configuration, destroy; then quorum, nextid, disks left' },
  { step: 'release', requests: 2, why: 'quorum, nextid' },
]

export const carefulTotal = sum(CAREFUL.map(({ requests }) => requests))
