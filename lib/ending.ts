import type { Ledger } from './ledger.ts'
import { type Measurement, measured } from './metrics.ts'
import type { Delivery, Queues } from './queue.ts'
import { patched, type Row, sideOf, type TimelineEntry } from './record.ts'
import { deletedEvent, failedEvent, type Publish, readyNews } from './topic.ts'
import type { UserDataStore } from './user-data.ts'
import { type Decided, decided } from './worker.ts'

const TIMELINE_LENGTH = 60

/** How a row comes to rest: the world is told first, then the row is saved; told twice is told with the same event id. */
export function createEnding(options: {
  ledger: Ledger
  queues: Queues
  userData: UserDataStore
  publish: Publish
  tombstoneDays: number
  now: () => number
}) {
  const { ledger, queues, userData, publish, tombstoneDays, now } = options

  /** Ready, or a tombstone. */
  async function finish(row: Row, token: string): Promise<Decided> {
    const rest = {
      step: undefined,
      task: undefined,
      problem: undefined,
      turn: row.turn + 1,
      timeline: timelineOf(row, 'done', now()),
    }
    if (row.wish === 'present') {
      const news = readyNews(row, now())
      if (news) await publish(news)
      const { generation, address, announced } = row
      const first = announced?.generation === generation ? row.readyAt : undefined
      const told = address === undefined ? undefined : { generation, address }
      const ready = { phase: 'Ready', readyAt: first ?? now(), announced: told, lookedAgain: 0 } as const
      await ledger.save(patched(row, { ...rest, ...ready }), token)
      return decided('done', 'ready', [
        ...timeInStep(row, now()),
        ...(news?.type === 'ProxyReady'
          ? [measured('ProxyReady', 1, {}), measured('TimeToReady', news.timeToReadyMs / 1000, {})]
          : []),
      ])
    }
    await userData.remove(row.uid)
    if (row.orphanOf === undefined) await publish(deletedEvent(row, now()))
    const purgeAt = Math.floor(now() / 1000) + tombstoneDays * 86_400
    const tombstone = { ...rest, ...nothingLeft, phase: 'Deleted', purgeAt } as const
    await ledger.save(patched(row, tombstone), token)
    return decided('done', 'deleted', [
      ...timeInStep(row, now()),
      ...(row.orphanOf === undefined ? [measured('ProxyDeleted', 1, {})] : []),
    ])
  }

  /** The last act of a failed life cycle: dead letter, outcome event, rest. */
  async function report(row: Row, token: string, delivery: Delivery): Promise<Decided> {
    const { uid, turn, failedStep, problem, place, task, ended } = row
    if (!problem || !failedStep) throw new Error(`the row ${uid} is to be reported without a problem`)
    const { code, reason, hint } = problem
    await queues.bury(sideOf('report', failedStep), delivery.body, {
      code,
      uid,
      turn,
      step: failedStep,
      failedAt: new Date(problem.lastAt).toISOString(),
      problem: {
        reason,
        hint,
        zone: row.spec?.zone,
        cluster: place?.cluster,
        node: place?.node,
        vmid: place?.vmid,
        upid: task?.upid ?? ended?.upid,
      },
    })
    if (row.orphanOf === undefined) await publish(failedEvent(row))
    const failed = { step: undefined, phase: 'Failed', turn: turn + 1, announced: undefined } as const
    await ledger.save(patched(row, failed), token)
    const failures = row.orphanOf === undefined ? [measured('ProxyFailed', 1, { code })] : []
    return { ...decided('failed', reason, failures), code }
  }

  return { finish, report }
}

/** The timeline with the step that the row leaves; bounded, the oldest go first. */
export function timelineOf(row: Row, outcome: string, now: number): TimelineEntry[] {
  if (row.step === undefined) return row.timeline
  const entry = { step: row.step, at: row.since, ms: now - row.since, outcome: row.problem?.code ?? outcome }
  return [...row.timeline, entry].slice(-TIMELINE_LENGTH)
}

/** What the timeline says of the step that the row leaves, as a measurement. */
export function timeInStep({ step, since }: Row, now: number): Measurement[] {
  return step === undefined ? [] : [measured('TimeInStep', Math.max(0, now - since) / 1000, { step })]
}

/** What a tombstone no longer tells: nothing of it is there. */
const nothingLeft = {
  place: undefined,
  placedOn: undefined,
  cloned: undefined,
  ended: undefined,
  seed: undefined,
  seededOn: undefined,
  swept: undefined,
  sweeping: undefined,
  address: undefined,
  endpoint: undefined,
  announced: undefined,
  unsettledUntil: undefined,
  failedStep: undefined,
  expiresAt: undefined,
}
