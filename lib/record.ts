import * as z from 'zod'
import { FailureCode } from './failure.ts'
import { FullSpec, ProxyName, Uid } from './spec.ts'
import { complaintLine, parseWith } from './wanted.ts'

/** Epoch milliseconds. */
const Instant = z.number()

export const CREATE_STEPS = ['reserve', 'clone', 'seed', 'configure', 'start', 'address', 'verify'] as const
export const DELETE_STEPS = ['stop', 'unseed', 'destroy', 'release'] as const
export type CreateStep = (typeof CREATE_STEPS)[number]
export type DeleteStep = (typeof DELETE_STEPS)[number]
/** `report` is in both life cycles; its queue is that of the step that failed. */
export const StepName = z.enum([...CREATE_STEPS, ...DELETE_STEPS, 'report'])
export type StepName = z.infer<typeof StepName>

export const Phase = z.enum(['Pending', 'Provisioning', 'Ready', 'Failed', 'Deleting', 'Deleted'])
export type Phase = z.infer<typeof Phase>

/** Where the proxy's VM is, or is to be. The node is where it was last seen. */
export const Place = z.object({
  cluster: z.string(),
  node: z.string(),
  vmid: z.number(),
  template: z.number(),
  storage: z.string(),
})
export type Place = z.infer<typeof Place>

export const Problem = z.object({
  code: FailureCode,
  reason: z.string(),
  hint: z.string().optional(),
  /** Start of the stretch in which nothing but transient errors came, whatever their codes. */
  firstAt: Instant,
  lastAt: Instant,
  times: z.number(),
  permanent: z.boolean().optional(),
})
export type Problem = z.infer<typeof Problem>

const TaskRef = z.object({ upid: z.string(), step: StepName, at: Instant })
const EndedTask = TaskRef.extend({
  ok: z.boolean(),
  code: FailureCode.optional(),
  /** Begun by a token that was replaced since, so nobody of us may see how it ended, or whether. */
  unseen: z.boolean().optional(),
})
export type EndedTask = z.infer<typeof EndedTask>

export const TimelineEntry = z.object({ step: StepName, at: Instant, ms: z.number(), outcome: z.string() })
export type TimelineEntry = z.infer<typeof TimelineEntry>

/** One proxy's record, the single truth about it. Written only under its lease. */
export const Row = z.object({
  uid: z.string(),
  wish: z.enum(['present', 'absent']),
  generation: z.number(),
  /** Absent for a row that a deletion made before its request, and for an orphan. */
  name: ProxyName.optional(),
  spec: FullSpec.optional(),
  specHash: z.string().optional(),
  /** An orphan's: the uid that its VM's mark names. */
  orphanOf: Uid.optional(),
  phase: Phase,
  /** None at rest. */
  step: StepName.optional(),
  failedStep: StepName.optional(),
  turn: z.number(),
  /** When the step was entered, moved on by the time in which Proxmox did not answer. */
  since: Instant,
  /** Since when the step waits with a patience of its own: for a lock, for its place in a queue. Left out of `since` as well. */
  parkedAt: Instant.optional(),
  /** What kind of such waiting that is. */
  parkedFor: z.string().optional(),
  /** Since when tasks of this step, each begun anew, have ended in nothing but transient errors. */
  failingSince: Instant.optional(),
  dueAt: Instant,
  /** Until then a call of ours may still run unseen. Kept after it has passed: it tells that one ever might have, at this place. */
  unsettledUntil: Instant.optional(),
  /** Expired leases taken over since the last save. */
  deliveries: z.number().default(0),
  /** Times the VM was found gone and made again. */
  lookedAgain: z.number().default(0),
  /** VMIDs tried by `reserve` so far. */
  probed: z.number().default(0),
  place: Place.optional(),
  /** VMIDs that bear a left-over volume which no look had shown: a clone tripped over it. Not taken again. */
  littered: z.array(z.number()).optional(),
  /** `cluster/node`, for the index by node. */
  placedOn: z.string().optional(),
  /** The VM at the place was seen, whole and ours. */
  cloned: z.boolean().optional(),
  task: TaskRef.optional(),
  /** The last task the worker saw end. */
  ended: EndedTask.optional(),
  /** Volume id of the seed, from the moment it is intended until it is proven gone. */
  seed: z.string().optional(),
  /** Nodes to which a seed may have been uploaded. */
  seededOn: z.array(z.string()).optional(),
  /** Nodes whose ISO storage is known to be without the seed. */
  swept: z.array(z.string()).optional(),
  sweeping: z.string().optional(),
  mac: z.string().optional(),
  address: z.string().optional(),
  endpoint: z.string().optional(),
  problem: Problem.optional(),
  timeline: z.array(TimelineEntry).default([]),
  createdAt: Instant,
  /** When the present generation was asked for. */
  requestedAt: Instant,
  readyAt: Instant.optional(),
  /** What the world was told last about where this proxy is; absent when it was told of none, or of a failure since. */
  announced: z.object({ generation: z.number(), address: z.string() }).optional(),
  expiresAt: Instant.optional(),
  /** Epoch seconds; DynamoDB's TTL attribute, only on tombstones, judged in code too. */
  purgeAt: z.number().optional(),
})
export type Row = z.infer<typeof Row>

/** A stored row of another shape than ours: changed by hand, or written by a version that knows more. */
export class UnreadableRow extends Error {
  override readonly name = 'UnreadableRow'
  readonly uid: string
  constructor(uid: string, complaints: string[]) {
    super(`the row ${uid} cannot be read: ${complaints.slice(0, 5).join('; ')}`)
    this.uid = uid
  }
}

/** Reads a stored item as a row, or as the part of one that `schema` asks for. @throws {UnreadableRow} naming the fields */
export function readStored<T>(schema: z.ZodType<T>, item: Record<string, unknown>): T {
  const parsed = parseWith(schema, item)
  if ('value' in parsed) return parsed.value
  throw new UnreadableRow(String(item.uid), parsed.complaints.map(complaintLine))
}

/** What a taken row may still be: only the key, when no event was ever judged on it. */
export type BlankRow = {
  uid: string
  turn: number
  phase?: undefined
  deliveries: number
  unsettledUntil?: number | undefined
}

type With<K extends keyof Row> = Row & { [P in K]-?: NonNullable<Row[P]> }
/** A row whose proxy was asked for. */
export type Wished = With<'name' | 'spec' | 'specHash'>
/** … has a VMID, a MAC and a name for its seed. */
export type Placed = Wished & With<'place' | 'mac' | 'seed'>
/** … and an address. */
export type Addressed = Placed & With<'address'>

/** What the clock says about a row; worked out by the worker, since no step reads a clock. */
export type Moment = {
  /** No call of ours can still be running unseen. */
  settled: boolean
  /** Since the step was entered, Proxmox's outages left out. */
  waitedSeconds: number
  /** Since `ended.at`; infinite when no task has ended. */
  endedSecondsAgo: number
}

/** The step's own task has ended well since the step was entered, so that the machine is as the task was to leave it, or was a moment ago. */
export const accomplished = (row: Row & Moment, step: StepName): boolean =>
  row.ended?.step === step && row.ended.ok && row.endedSecondsAgo <= row.waitedSeconds

/** What each step may rely on. */
export type RowOf = {
  reserve: Wished
  clone: Placed
  seed: Placed
  configure: Placed
  start: Placed
  address: Placed
  verify: Addressed
  stop: Row
  unseed: Row
  destroy: Row
  release: Row
}

const needs: { [S in keyof RowOf]: readonly (keyof Row)[] } = {
  reserve: ['name', 'spec', 'specHash'],
  clone: ['name', 'spec', 'specHash', 'place', 'mac', 'seed'],
  seed: ['name', 'spec', 'specHash', 'place', 'mac', 'seed'],
  configure: ['name', 'spec', 'specHash', 'place', 'mac', 'seed'],
  start: ['name', 'spec', 'specHash', 'place', 'mac', 'seed'],
  address: ['name', 'spec', 'specHash', 'place', 'mac', 'seed'],
  verify: ['name', 'spec', 'specHash', 'place', 'mac', 'seed', 'address'],
  stop: [],
  unseed: [],
  destroy: [],
  release: [],
}

/** Narrows a row to what its step relies on. @throws {Error} naming the missing field: such a row was never written by us. */
export function rowFor<S extends keyof RowOf>(step: S, row: Row): RowOf[S] {
  const missing = needs[step].filter((field) => row[field] === undefined)
  if (missing.length > 0) throw new Error(`row ${row.uid} is at step ${step} without ${missing.join(', ')}`)
  // Each field of RowOf[S] beyond Row's was just seen to be there.
  return row as RowOf[S]
}

/** The part of a row a step may change. An explicit `undefined` removes the field. */
export type Patch = {
  [K in
    | 'place'
    | 'seed'
    | 'seededOn'
    | 'swept'
    | 'sweeping'
    | 'mac'
    | 'address'
    | 'endpoint'
    | 'lookedAgain'
    | 'probed'
    | 'littered'
    | 'cloned'
    | 'task'
    | 'ended'
    | 'unsettledUntil']?: Row[K] | undefined
}

export type Side = 'create' | 'delete'

/** A row without a past, but for what its key has seen: leases that ran out. */
export function firstRow(blank: Row | BlankRow, wish: Row['wish'], now: number): Row {
  const { uid, turn, deliveries, unsettledUntil } = blank
  return {
    uid,
    turn,
    deliveries,
    ...(unsettledUntil === undefined ? {} : { unsettledUntil }),
    wish,
    generation: 0,
    phase: wish === 'present' ? 'Pending' : 'Deleting',
    since: now,
    dueAt: now,
    lookedAgain: 0,
    probed: 0,
    timeline: [],
    createdAt: now,
    requestedAt: now,
  }
}

/** The row with a patch applied; a field patched to `undefined` is gone. */
export function patched(row: Row, patch: { [K in keyof Row]?: Row[K] | undefined }): Row {
  const entries = Object.entries({ ...row, ...patch }).filter(([, value]) => value !== undefined)
  // A patch can only remove optional fields: `Patch` and the callers name no other.
  return Object.fromEntries(entries) as Row
}

/** The function, and so the queue, a step belongs to. */
export function sideOf(step: StepName, failedStep?: StepName): Side {
  const judged = step === 'report' ? failedStep : step
  return (DELETE_STEPS as readonly (StepName | undefined)[]).includes(judged) ? 'delete' : 'create'
}
