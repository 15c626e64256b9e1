import { randomUUID } from 'node:crypto'
import { type DynamoDBDocumentClient, GetCommand, PutCommand, UpdateCommand } from '@aws-sdk/lib-dynamodb'
import { conditional, type Item } from './conditional.ts'
import { type BlankRow, Row, readStored, UnreadableRow } from './record.ts'

/** Events may create a row; a message that names a turn acts only on a row that has not gone past it. */
export type Demand = { kind: 'event' } | { kind: 'turn'; turn: number }

export type Taken = { kind: 'taken'; row: Row | BlankRow; token: string }
/** The lease is ours, and nothing can be done with what it is on. */
export type Unreadable = { kind: 'unreadable'; turn: number; token: string; reason: string }
export type NotTaken = { kind: 'no-row' } | { kind: 'stale' } | { kind: 'held'; until: number; turn: number }

/** The row was saved by another since we took it. `winner` is what stands there now. */
export class LostRace extends Error {
  override readonly name = 'LostRace'
  readonly winner: Item | undefined
  constructor(uid: string, winner: Item | undefined) {
    super(`the row ${uid} was saved by another holder`)
    this.winner = winner
  }
}

export type Ledger = {
  /** Takes the lease and reads the row, in one write; a second one when the holder's lease has expired. */
  take(uid: string, demand: Demand): Promise<Taken | Unreadable | NotTaken>
  /** Writes the row and lets go of the lease, in one write. @throws {LostRace} */
  save(row: Row, token: string): Promise<void>
  /** Lets go of the lease; nothing when another has taken it over meanwhile. */
  release(uid: string, token: string): Promise<void>
  read(uid: string): Promise<Row | undefined>
}

// The named parts of conditions.
const noLease = 'attribute_not_exists(#lease)'
const rowExists = 'attribute_exists(#uid)'
const turnNotBehind = '#turn <= :turn'
const heldByTheDead = '#lease.#token = :dead'
const heldByUs = '#lease.#token = :token'

const names = { '#uid': 'uid', '#lease': 'lease', '#turn': 'turn', '#token': 'token' } as const
type Name = keyof typeof names
const pick = (...list: Name[]) => Object.fromEntries(list.map((name) => [name, names[name]]))

/**
 * The keyed lock and the record, one item a proxy. A lease is random per taking, so that two records of one batch are
 * two holders. A lost condition is compared with our own token before it is believed: an SDK retry can fail its own.
 * Source: design of the lease, ARCHITECTURE.md.
 */
export function createLedger(options: {
  client: DynamoDBDocumentClient
  table: string
  leaseMs: number
  settleMs: number
  now?: () => number
  newToken?: () => string
}): Ledger {
  const { client, table, leaseMs, settleMs, now = Date.now, newToken = randomUUID } = options
  const at = (uid: string) => ({ table, key: { uid } })

  async function tryTake(uid: string, demand: Demand, token: string, dead?: string) {
    const lease = { token, until: now() + leaseMs }
    const byTurn = demand.kind === 'turn'
    const conditions = [
      dead === undefined ? noLease : heldByTheDead,
      ...(byTurn ? [rowExists, turnNotBehind] : []),
    ]
    const takeOver = ', #deliveries = if_not_exists(#deliveries, :zero) + :one, #unsettled = :unsettled'
    return conditional(client, at(uid), () =>
      client.send(
        new UpdateCommand({
          TableName: table,
          Key: { uid },
          UpdateExpression: `SET #lease = :lease, #turn = if_not_exists(#turn, :zero)${dead === undefined ? '' : takeOver}`,
          ConditionExpression: conditions.join(' AND '),
          ExpressionAttributeNames: {
            ...pick('#lease', '#turn'),
            ...(byTurn ? pick('#uid') : {}),
            ...(dead === undefined
              ? {}
              : { ...pick('#token'), '#deliveries': 'deliveries', '#unsettled': 'unsettledUntil' }),
          },
          ExpressionAttributeValues: {
            ':lease': lease,
            ':zero': 0,
            ...(byTurn ? { ':turn': demand.turn } : {}),
            ...(dead === undefined ? {} : { ':dead': dead, ':one': 1, ':unsettled': now() + settleMs }),
          },
          ReturnValues: 'ALL_NEW',
          ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
        }),
      ),
    )
  }

  /** A failed taking, judged in the order that keeps a message which is ahead of its holder: no row, turn, lease. */
  function judge(
    winner: Item | undefined,
    demand: Demand,
    token: string,
  ): Taken | Unreadable | NotTaken | { kind: 'dead'; token: string } | { kind: 'free' } {
    if (!winner) return demand.kind === 'turn' ? { kind: 'no-row' } : { kind: 'free' }
    const lease = leaseOf(winner)
    if (lease?.token === token) return takenAs(winner, token)
    const turn = Number(winner.turn)
    if (demand.kind === 'turn' && turn > demand.turn) return { kind: 'stale' }
    if (!lease) return { kind: 'free' }
    return lease.until < now()
      ? { kind: 'dead', token: lease.token }
      : { kind: 'held', until: lease.until, turn }
  }

  return {
    async take(uid, demand) {
      const token = newToken()
      const first = await tryTake(uid, demand, token)
      if (first.done) return takenAs(first.result.Attributes, token)
      const verdict = judge(first.winner, demand, token)
      if (verdict.kind === 'free')
        return { kind: 'held', until: now(), turn: Number(first.winner?.turn ?? 0) }
      if (verdict.kind !== 'dead') return verdict
      const second = await tryTake(uid, demand, token, verdict.token)
      if (second.done) return takenAs(second.result.Attributes, token)
      const last = judge(second.winner, demand, token)
      // Someone else was quicker to take over, or it was let go of meanwhile: the queue brings us back.
      return last.kind === 'dead' || last.kind === 'free' ? { kind: 'held', until: now(), turn: 0 } : last
    },

    async save(row, token) {
      const saved = await conditional(client, at(row.uid), () =>
        client.send(
          new PutCommand({
            TableName: table,
            Item: { ...row, deliveries: 0, savedBy: token },
            ConditionExpression: heldByUs,
            ExpressionAttributeNames: pick('#lease', '#token'),
            ExpressionAttributeValues: { ':token': token },
            ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
          }),
        ),
      )
      if (!saved.done && saved.winner?.savedBy !== token) throw new LostRace(row.uid, saved.winner)
    },

    async release(uid, token) {
      // A condition that fails means the lease is no longer ours: then there is nothing to let go of.
      await conditional(client, at(uid), () =>
        client.send(
          new UpdateCommand({
            TableName: table,
            Key: { uid },
            UpdateExpression: 'REMOVE #lease',
            ConditionExpression: heldByUs,
            ExpressionAttributeNames: pick('#lease', '#token'),
            ExpressionAttributeValues: { ':token': token },
            ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
          }),
        ),
      )
    },

    async read(uid) {
      const { Item: item } = await client.send(
        new GetCommand({ TableName: table, Key: { uid }, ConsistentRead: true }),
      )
      const row = item && rowOf(item)
      return row?.phase === undefined ? undefined : row
    },
  }
}

function leaseOf(item: Item): { token: string; until: number } | undefined {
  // Written by `take` alone, in this shape.
  return item.lease as { token: string; until: number } | undefined
}

/** A row that is ours for now, if it can be read. */
export function takenAs(item: Item | undefined, token: string): Taken | Unreadable {
  try {
    return { kind: 'taken', row: rowOf(item), token }
  } catch (error) {
    if (!(error instanceof UnreadableRow)) throw error
    return { kind: 'unreadable', turn: Number(item?.turn), token, reason: error.message }
  }
}

/** Reads a stored item. A row without a phase is new: only its key was ever written. @throws {UnreadableRow} */
export function rowOf(item: Item | undefined): Row | BlankRow {
  if (item?.phase !== undefined) return readStored(Row, item)
  return {
    uid: String(item?.uid),
    turn: Number(item?.turn ?? 0),
    deliveries: Number(item?.deliveries ?? 0),
    unsettledUntil: typeof item?.unsettledUntil === 'number' ? item.unsettledUntil : undefined,
  }
}
