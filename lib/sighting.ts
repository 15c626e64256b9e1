import { type Bearing, evidenceOf, type Mark, markLine, markOf, ownership } from './mark.ts'
import { fail, type Outcome, wait } from './outcome.ts'
import type { Moment, Place, Row } from './record.ts'
import { placeholders, symptoms } from './symptoms.ts'

export type At = { node: string; vmid: number }

/** What is at a VMID; lib/proxmox's Look is one. Only `absent` is a proof that nothing is there. */
export type Look<C> =
  | { kind: 'vm'; node: string; config: C }
  | { kind: 'absent' }
  | { kind: 'hidden'; node?: string }
  | { kind: 'container'; node: string }
  | { kind: 'unknown'; reason: string }

/** The part of the provider that looking takes. */
export type Eyes<C extends Bearing & { digest: string }> = {
  look(at: At, expecting?: 'nothing'): Promise<Look<C>>
  runningTasks(filter: { node: string }): Promise<readonly { type: string; id: string }[]>
  configure(vm: At, change: { set: { description: string }; digest: string }): Promise<void>
}

export type Sight<C> =
  | { kind: 'ours'; vm: At; config: C; mark: Mark }
  /** Nothing of ours is at the VMID, nor can still appear there. */
  | { kind: 'gone'; heldByAnother: boolean }
  /** It cannot be known now, or a person must act. */
  | { kind: 'unclear'; outcome: Outcome }

/** Locks that Proxmox takes away by itself when their work is done. An unknown kind is waited for as well. */
const LOCK_CAP_SECONDS = 6 * 3600
/** Locks of a VM in the making or unmaking: when no task is behind one, no API token can remove it. */
const HALF_MADE = new Set(['clone', 'create', 'destroyed'])
/** Only the token that began a task may see it, and a clone takes hours: no task to be seen is then no proof that none runs. */
const UNSEEN = 'a task of a token that was replaced may still be at work there'
/** A clone enters its pool, and a destroyed VM leaves it, at the end of the task; pveproxy's workers see that a little later. */
const POOL_LAG_SECONDS = 60

const unclear = (outcome: Outcome): { kind: 'unclear'; outcome: Outcome } => ({ kind: 'unclear', outcome })
const settling = () => unclear(wait('a call that was not answered may still run', 10))

/**
 * Looks at the row's VMID and says whether our VM is there and may be changed. Nothing that changes a VM is sent before
 * this said `ours`. A mark that a person edited away is written again where name and seed prove the VM ours. Expecting
 * nothing makes no difference to what is found, only to the order of the questions.
 */
export async function see<C extends Bearing & { digest: string }>(
  row: Row & Moment,
  eyes: Eyes<C>,
  deployment: string,
  expecting?: 'nothing',
): Promise<Sight<C>> {
  const { place } = row
  if (!place) return row.settled ? { kind: 'gone', heldByAnother: false } : settling()
  return judge(await eyes.look(place, expecting), row, place, eyes, deployment)
}

/** `see` for one who has looked already. */
export async function judge<C extends Bearing & { digest: string }>(
  look: Look<C>,
  row: Row & Moment,
  place: Place,
  eyes: Eyes<C>,
  deployment: string,
): Promise<Sight<C>> {
  if (look.kind === 'unknown') return unclear(wait(look.reason, 5))
  if (look.kind === 'absent') return row.settled ? { kind: 'gone', heldByAnother: false } : settling()
  if (look.kind === 'container') return row.settled ? { kind: 'gone', heldByAnother: true } : settling()
  if (look.kind === 'hidden') return judgeHidden(row, place, eyes)

  const { node, config } = look
  const vm = { node, vmid: place.vmid }
  const owner = ownership(config, row, deployment)
  if (owner.kind === 'foreign') return row.settled ? { kind: 'gone', heldByAnother: true } : settling()
  if (owner.kind === 'nameless') return unclear(await judgeHalfMade(row, place, eyes, vm, config.lock))
  const mark = owner.kind === 'ours' ? owner.mark : markOf(row, deployment)
  if (owner.kind === 'doubtful' || !mark) return unclear(markLost(row, vm, deployment))
  const { lock } = config
  if (lock !== undefined && HALF_MADE.has(lock))
    return unclear(await judgeHalfMade(row, place, eyes, vm, lock))
  if (lock !== undefined && lock !== 'suspended') {
    return unclear(wait(`VM ${vm.vmid} is locked (${lock})`, 15, { capSeconds: LOCK_CAP_SECONDS }))
  }
  if (owner.kind === 'ours') return { kind: 'ours', vm, config, mark }
  const description = [config.description?.trimEnd(), markLine(mark)].filter(Boolean).join('\n\n')
  await eyes.configure(vm, { set: { description }, digest: config.digest })
  return unclear(wait('the mark was edited away and is written again', 0))
}

/** Our token may not see what holds the number: our VM outside its pool, in the making or unmaking, or another's. */
async function judgeHidden<C extends Bearing & { digest: string }>(
  row: Row & Moment,
  place: Place,
  eyes: Eyes<C>,
): Promise<Sight<C>> {
  const { ended } = row
  if (!row.settled) return settling()
  if (await busy(place, eyes)) return unclear(wait('a task of ours is still running there', 5))
  if (ended?.unseen) return unclear(wait(UNSEEN, 15, { capSeconds: LOCK_CAP_SECONDS }))
  if (row.endedSecondsAgo < POOL_LAG_SECONDS) return unclear(wait('the VM is not in its pool yet', 5))
  if (ended?.step === 'destroy' && ended.ok) return { kind: 'gone', heldByAnother: true }
  if (ended?.step === 'destroy' && ended.code === 'TaskLost')
    return unclear(stuckLock(row, place, 'destroyed'))
  if (row.cloned || (ended?.step === 'clone' && ended.ok)) return unclear(outOfPool(row, place))
  if (mayHaveLeftSomething(row)) return unclear(stuckLock(row, place, 'clone'))
  return { kind: 'gone', heldByAnother: true }
}

/** A VM in the making or unmaking: whose, and is anyone still at work on it? */
async function judgeHalfMade<C extends Bearing & { digest: string }>(
  row: Row & Moment,
  place: Place,
  eyes: Eyes<C>,
  vm: At,
  lock = 'clone',
): Promise<Outcome> {
  const reason = `VM ${vm.vmid} is locked (${lock})`
  if (!row.settled || (await busy(place, eyes))) return wait(reason, 3)
  if (row.ended?.unseen) return wait(`${reason}: ${UNSEEN}`, 15, { capSeconds: LOCK_CAP_SECONDS })
  if (row.cloned || row.ended?.ok || mayHaveLeftSomething(row)) return stuckLock(row, vm, lock)
  // No clone of ours can have reached this number, so it is another's in the making.
  return wait(reason, 5, { capSeconds: LOCK_CAP_SECONDS })
}

/** Whether a call of ours to this place was cut short in a way that leaves a half-made VM. */
const mayHaveLeftSomething = (row: Row) => row.unsettledUntil !== undefined || row.ended?.code === 'TaskLost'

/** A clone carries the template's VMID in its task, so any clone of the template may be the one to this VMID. */
async function busy<C extends Bearing & { digest: string }>(place: Place, eyes: Eyes<C>): Promise<boolean> {
  const tasks = await eyes.runningTasks({ node: place.node })
  return tasks.some(
    ({ type, id }) => id === String(place.vmid) || (type === 'qmclone' && id === String(place.template)),
  )
}

function stuckLock({ uid }: Row, { node, vmid }: At, lock: string): Outcome {
  return fail(
    'StuckLock',
    `VM ${vmid} on ${node} was left half made (lock ${lock}) and no task is at work on it`,
    symptoms.StuckLock.hint({ ...placeholders, uid, node, vmid }),
  )
}

function outOfPool(row: Row, { vmid }: At): Outcome {
  return fail('Forbidden', `our token may no longer see VM ${vmid} of ${row.uid}`)
}

function markLost(row: Row, vm: At, deployment: string): Outcome {
  return fail(
    'MarkLost',
    `VM ${vm.vmid} looks like ours, but bears no mark, so it is not touched`,
    symptoms.MarkLost.hint({ ...placeholders, uid: row.uid, ...vm, ...evidenceOf(row, deployment) }),
  )
}
