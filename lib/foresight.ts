import { askedOfHa } from './asked-of-ha.ts'
import { LOOK_AGAIN } from './attempt.ts'
import type { TaskState } from './life-cycle.ts'
import type { Mark } from './mark.ts'
import type { Outcome } from './outcome.ts'
import type { Moment, Row, StepName } from './record.ts'
import { CRASHING_AFTER } from './worker.ts'

/** What the next delivery will do, in words, and what makes it do so. */
export type Foresight = { what: string; why: string }

/** What was seen of the world; a part that could not be seen is left out, and `blind` says why. */
export type View = {
  sight?:
    | { kind: 'ours'; protection: boolean; held: boolean; mark: Pick<Mark, 'generation' | 'specHash'> }
    | { kind: 'gone'; heldByAnother: boolean }
    | { kind: 'unclear'; outcome: Outcome }
  /** Of our VM. */
  status?: { running: boolean; qmp: string }
  /** The task that the row waits for. */
  task?: TaskState
  blind?: string
}

/** Says what a step will do from its row and what is seen, without running it. Pure: the steps themselves are the authority. */
export function foresee(
  row: Row & Moment,
  view: View,
  lease: { until: number } | undefined,
  now: number,
): Foresight {
  const { step, task } = row
  if (step === undefined) return atRest(row)
  if (lease && lease.until >= now) {
    const until = new Date(lease.until).toISOString()
    return {
      what: 'it goes back to its queue',
      why: `another delivery holds the row, until ${until} at most`,
    }
  }
  if (step === 'report')
    return { what: 'the failure is reported', why: `${row.problem?.code} at ${row.failedStep}` }
  if (row.deliveries >= CRASHING_AFTER)
    return { what: 'it fails as Crashing', why: `${row.deliveries} deliveries in a row died at this step` }
  if (task) {
    if (!view.task) return unseen(view)
    const own = task.step === step
    if (view.task.running && own) return { what: 'it waits', why: 'the task of this step is running' }
    if (view.task.running && step !== 'stop')
      return { what: 'it waits for the task of an earlier step', why: `the task of ${task.step} is running` }
    if (!view.task.running && own && !view.task.ok && !LOOK_AGAIN.has(view.task.error.code)) {
      const { code, message } = view.task.error
      const isFinal = view.task.error.class === 'permanent'
      return { what: isFinal ? `it fails as ${code}` : 'it is tried again', why: message }
    }
  }
  return ofStep(withTaskEnded(row, view.task, now), step, view)
}

/** The row as its step will find it: the worker asks after the task first, and notes how it ended. */
function withTaskEnded(row: Row & Moment, state: TaskState | undefined, now: number): Row & Moment {
  const { task, ...rest } = row
  if (!task || !state || state.running) return row
  return { ...rest, ended: { ...task, ok: state.ok, at: now }, endedSecondsAgo: 0 }
}

function atRest({
  phase,
  wish,
  uid,
  problem,
  spec,
  orphanOf,
  failedStep,
  expiresAt,
  purgeAt,
}: Row): Foresight {
  if (phase === 'Failed')
    return {
      what: `nothing, until a person says egress dlq redrive ${uid}`,
      why: `${wish === 'absent' ? 'its deletion, which was asked for already,' : 'it'} failed at ${failedStep} as ${problem?.code}`,
    }
  if (phase === 'Ready') {
    const end =
      expiresAt === undefined
        ? 'it never expires'
        : `gc deletes it after ${new Date(expiresAt).toISOString()}`
    return { what: 'nothing: no message is on its way', why: `it is ready; check looks after it, ${end}` }
  }
  const until = purgeAt === undefined ? '' : ` until ${new Date(purgeAt * 1000).toISOString()}`
  // Only a request brings a spec.
  if (!spec && orphanOf === undefined)
    return {
      what: 'nothing, ever',
      why: `its deletion came and no request of it ever did; a late one is not met, since its row stays as a tombstone${until}`,
    }
  return { what: 'nothing, ever', why: `it is ${phase.toLowerCase()}; its row stays as a tombstone${until}` }
}

const unseen = ({ blind }: View): Foresight => ({
  what: 'it cannot be said',
  why: blind ?? 'the cluster could not be looked at',
})

function ofStep(row: Row & Moment, step: StepName, view: View): Foresight {
  if (step === 'reserve') {
    return {
      what: 'it claims a VMID',
      why: `on a node of zone ${row.spec?.zone} with a template of ${row.spec?.image}`,
    }
  }
  if (step === 'seed') {
    return row.ended?.step === 'seed' && row.ended.ok
      ? { what: 'on to configure', why: 'the seed was uploaded' }
      : { what: 'it uploads the seed', why: `${row.seed} to node ${row.place?.node}` }
  }
  if (step === 'verify')
    return { what: 'it asks for a page through the proxy', why: `it should answer at ${row.endpoint}` }
  if (step === 'unseed') return unseed(row)
  if (step === 'stop' && !row.settled) return settling
  if (step === 'release') return release(row, view)
  if (!view.sight) return unseen(view)
  return bySight[step as SightStep](row, view, view.sight)
}

function unseed({ seed, seededOn = [], place, swept = [], sweeping, ended, cloned }: Row): Foresight {
  if (seed === undefined) return { what: 'on to destroy', why: 'no seed is left' }
  const done = ended?.step === 'unseed' && ended.ok && sweeping !== undefined ? [...swept, sweeping] : swept
  const left = [...new Set([...seededOn, ...(place ? [place.node] : [])])].filter(
    (node) => !done.includes(node),
  )
  if (left.length > 0) return { what: 'it deletes the seed', why: `${seed} may lie on ${left.join(', ')}` }
  return cloned
    ? { what: 'on to destroy', why: `the seed is deleted on ${done.join(', ')}` }
    : { what: 'it deletes the seed', why: `${seed} may lie on any node with a template` }
}

type Seen = NonNullable<View['sight']>
type SightStep = 'clone' | 'configure' | 'start' | 'address' | 'stop' | 'destroy'

const settling: Foresight = { what: 'it waits', why: 'a call of ours that was not answered may still run' }

/** A sighting that decides by itself: a wait, or a failure for a person. */
function unclear(outcome: Outcome): Foresight {
  if (outcome.kind === 'fail') return { what: `it fails as ${outcome.code}`, why: outcome.reason }
  return {
    what: 'it waits',
    why: 'reason' in outcome ? outcome.reason : 'what is there cannot be judged now',
  }
}

function madeAgain({ lookedAgain, place }: Row): Foresight {
  const why = `nothing of ours is at VMID ${place?.vmid}`
  if (lookedAgain >= 3) return { what: 'it fails as VmGone', why: `${why}, for the fourth time` }
  return { what: 'back to clone', why: `${why}; it is made again (${lookedAgain + 1} of 3)` }
}

const bySight: Record<SightStep, (row: Row & Moment, view: View, sight: Seen) => Foresight> = {
  clone(row, _, sight) {
    if (sight.kind === 'unclear') return unclear(sight.outcome)
    const { place } = row
    if (sight.kind === 'gone') {
      return sight.heldByAnother
        ? { what: 'back to reserve for another number', why: `VMID ${place?.vmid} is held by another` }
        : {
            what: `it clones ${place?.template} to ${place?.vmid}`,
            why: `nothing is there on ${place?.node} yet`,
          }
    }
    const isThis = sight.mark.generation === row.generation && sight.mark.specHash === row.specHash
    return isThis
      ? { what: 'on to seed', why: 'the clone is whole and bears our mark' }
      : { what: 'on to stop', why: `an earlier generation (${sight.mark.generation}) is there still` }
  },
  configure(row, _, sight) {
    if (sight.kind === 'unclear') return unclear(sight.outcome)
    if (sight.kind === 'gone') return madeAgain(row)
    return { what: 'it sends what differs from the wish, then on to start', why: 'the VM is there and ours' }
  },
  start(row, { status }, sight) {
    if (sight.kind === 'unclear') return unclear(sight.outcome)
    if (sight.kind === 'gone') return madeAgain(row)
    if (!status) return { what: 'it cannot be said', why: 'the state of the VM could not be read' }
    if (status.running) return { what: 'on to address', why: 'the VM runs' }
    if (status.qmp === 'stopped' && askedOfHa(row, 'start'))
      return { what: 'it waits', why: 'HA is to start the VM' }
    if (status.qmp === 'stopped') return { what: 'it starts the VM', why: 'it stands still' }
    if (['io-error', 'internal-error', 'guest-panicked'].includes(status.qmp))
      return { what: 'it fails as VmBroken', why: `the VM is in state ${status.qmp}` }
    return { what: 'it waits', why: `the VM is in state ${status.qmp}` }
  },
  address(row, { status }, sight) {
    if (sight.kind === 'unclear') return unclear(sight.outcome)
    if (sight.kind === 'gone') return madeAgain(row)
    if (status && !status.running) return { what: 'back to start', why: `the VM is in state ${status.qmp}` }
    return { what: 'it asks the guest agent for the address', why: `of the NIC ${row.mac}` }
  },
  stop(row, { status }, sight) {
    if (sight.kind === 'unclear') return unclear(sight.outcome)
    if (sight.kind === 'gone') return { what: 'on to unseed', why: 'nothing of ours is at its VMID' }
    if (sight.protection)
      return { what: 'it fails as Protected', why: 'the VM is protected against deletion' }
    if (sight.held) return { what: 'it fails as Protected', why: 'a person tagged the VM to be kept' }
    if (!status) return { what: 'it cannot be said', why: 'the state of the VM could not be read' }
    const stands = !status.running && status.qmp === 'stopped'
    if (!stands && askedOfHa(row, 'stop')) return { what: 'it waits', why: 'HA is to stop the VM' }
    return stands
      ? { what: 'on to unseed', why: 'the VM stands still' }
      : { what: 'it stops the VM', why: `it is in state ${status.qmp}` }
  },
  destroy(row, { status }, sight) {
    if (sight.kind === 'unclear') return unclear(sight.outcome)
    if (sight.kind === 'gone')
      return {
        what: 'it deletes what disks are left, then on to release',
        why: 'nothing of ours is at its VMID',
      }
    if (status?.running) return { what: 'back to stop', why: 'the VM runs again' }
    if (!row.settled) return settling
    return { what: 'it destroys the VM', why: 'it stands still and is ours' }
  },
}

function release(row: Row & Moment, view: View): Foresight {
  if (!row.settled) return settling
  if (!row.place) {
    const end = row.wish === 'present' ? 'on to reserve, for the new generation' : 'it is deleted'
    return { what: `it gives back what it claimed; ${end}`, why: 'it has let go of its place' }
  }
  if (!view.sight) return unseen(view)
  if (view.sight.kind === 'unclear') return unclear(view.sight.outcome)
  if (view.sight.kind === 'ours') return { what: 'back to stop', why: 'a VM of ours is there after all' }
  return { what: 'it lets go of its place', why: 'nothing of ours is at its VMID, by proof' }
}
