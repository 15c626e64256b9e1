import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createLedger, type Demand, type Ledger, LostRace, type Taken } from '../../lib/ledger.ts'
import type { Row } from '../../lib/record.ts'
import { createMemoryLedger } from '../fakes/ledger.ts'
import { createMemoryTables } from '../fakes/tables.ts'
import { aRow, NOW } from '../lib/a-row.ts'
import { type LocalAws, openLocalAws } from './local-aws.ts'

// What the worker relies on of its ledger, held to be so of the fake that lives run on by the thousand and of the real one
// on tables, the SDK's clients unmodified.

const LEASE_MS = 90_000
const SETTLE_MS = 120_000
const event: Demand = { kind: 'event' }
const byTurn = (turn: number): Demand => ({ kind: 'turn', turn })

type Options = { leaseMs: number; settleMs: number; now: () => number }

function defineLedgerContract(
  name: string,
  open: () => Promise<(options: Options) => Ledger>,
  shut: () => Promise<void>,
) {
  describe(`ledger contract: ${name}`, () => {
    let make: (options: Options) => Ledger
    let ledger: Ledger
    let now = NOW
    let uid = ''
    let count = 0

    beforeAll(async () => {
      make = await open()
    })
    beforeEach(() => {
      now = NOW
      uid = `row-${++count}`
      ledger = make({ leaseMs: LEASE_MS, settleMs: SETTLE_MS, now: () => now })
    })
    afterAll(shut)

    async function taken(demand: Demand = event): Promise<Taken> {
      const result = await ledger.take(uid, demand)
      if (result.kind !== 'taken') throw new Error(`expected to take the row, which is ${result.kind}`)
      return result
    }
    async function stored(changes: Partial<Row> = {}): Promise<void> {
      const { token } = await taken()
      await ledger.save(aRow({ uid, ...changes }), token)
    }
    const leaseRunsOut = () => {
      now += LEASE_MS + 1
    }
    const won = (results: { kind: string }[]) => results.filter(({ kind }) => kind === 'taken')

    it('lets an event make a row, which is blank until it is saved', async () => {
      expect((await taken()).row).toEqual({ uid, turn: 0, deliveries: 0, unsettledUntil: undefined })
      expect(await ledger.read(uid)).toBeUndefined()
    })

    it('makes no row for a message that names a turn', async () => {
      expect(await ledger.take(uid, byTurn(0))).toEqual({ kind: 'no-row' })
      expect((await taken()).row.turn).toBe(0)
    })

    it('gives back what was saved, and nothing that was left out', async () => {
      const full = aRow({
        uid,
        unsettledUntil: NOW + 5,
        task: { upid: 'UPID:a', step: 'clone', at: NOW },
        ended: { upid: 'UPID:b', step: 'seed', at: NOW, ok: false, code: 'Locked' },
        problem: { code: 'Locked', reason: 'busy', firstAt: NOW, lastAt: NOW, times: 2 },
        timeline: [{ step: 'reserve', at: NOW, ms: 1, outcome: 'clone' }],
        seededOn: ['pve1'],
      })
      const { token } = await taken()
      await ledger.save(full, token)
      expect(await ledger.read(uid)).toEqual(full)
      expect((await taken()).row).toEqual(full)
    })

    it('takes fields that a save left out away', async () => {
      await stored({ address: '10.0.0.1' })
      const { token } = await taken()
      await ledger.save(aRow({ uid, address: undefined }), token)
      expect(await ledger.read(uid)).not.toHaveProperty('address')
    })

    it('lets go of the lease with the save', async () => {
      await stored()
      expect((await taken(byTurn(3))).row).toEqual(aRow({ uid }))
    })

    it('lets one in fifty take a free row at once', async () => {
      await stored()
      const results = await Promise.all(Array.from({ length: 50 }, () => ledger.take(uid, byTurn(3))))
      expect(won(results)).toHaveLength(1)
      const [winner] = won(results) as Taken[]
      expect(winner?.row.deliveries).toBe(0)
      await expect(ledger.save(aRow({ uid, turn: 4 }), winner?.token ?? '')).resolves.toBeUndefined()
    })

    it('lets one of fifty events make a new row', async () => {
      const results = await Promise.all(Array.from({ length: 50 }, () => ledger.take(uid, event)))
      expect(won(results)).toHaveLength(1)
    })

    // Report: github-aws-runners/terraform-aws-github-runner#5453
    // Report: aws-powertools/powertools-lambda-python#1038
    it('lets one in fifty take over a lease that ran out, and counts it once', async () => {
      await stored()
      await taken()
      leaseRunsOut()
      const results = await Promise.all(Array.from({ length: 50 }, () => ledger.take(uid, byTurn(3))))
      expect(won(results)).toHaveLength(1)
      const [winner] = won(results) as Taken[]
      expect(winner?.row).toMatchObject({ deliveries: 1, unsettledUntil: now + SETTLE_MS })
    })

    it('says until when a row is held, and at which turn', async () => {
      await stored()
      await taken()
      now += 1000
      expect(await ledger.take(uid, byTurn(3))).toEqual({ kind: 'held', until: NOW + LEASE_MS, turn: 3 })
    })

    it('keeps a lease up to its last millisecond', async () => {
      await stored()
      await taken()
      now = NOW + LEASE_MS
      expect((await ledger.take(uid, event)).kind).toBe('held')
      now += 1
      expect((await ledger.take(uid, event)).kind).toBe('taken')
    })

    it('turns a message away that is behind the row', async () => {
      await stored()
      expect(await ledger.take(uid, byTurn(2))).toEqual({ kind: 'stale' })
    })

    it('calls a message that is behind stale even while the row is held, or its lease has run out', async () => {
      await stored()
      await taken()
      expect(await ledger.take(uid, byTurn(2))).toEqual({ kind: 'stale' })
      leaseRunsOut()
      expect(await ledger.take(uid, byTurn(2))).toEqual({ kind: 'stale' })
      expect((await taken()).row.deliveries).toBe(1)
    })

    it('calls a row held for a message that is ahead, since its sender may be about to save', async () => {
      await stored()
      await taken()
      expect((await ledger.take(uid, byTurn(4))).kind).toBe('held')
    })

    it('gives a free row to a message that is ahead, which fences its sender', async () => {
      await stored()
      const sender = await taken(byTurn(3))
      leaseRunsOut()
      const ahead = await taken(byTurn(4))
      expect(ahead.row.turn).toBe(3)
      await expect(ledger.save(aRow({ uid, turn: 4 }), sender.token)).rejects.toThrow(LostRace)
    })

    it('counts every lease that ran out, until a save', async () => {
      await stored()
      for (let dead = 0; dead < 3; dead++) {
        await taken()
        leaseRunsOut()
      }
      const { row, token } = await taken()
      expect(row.deliveries).toBe(3)
      await ledger.save(aRow({ uid, deliveries: 3 }), token)
      expect((await taken()).row.deliveries).toBe(0)
    })

    it('keeps what it counted, and that a call may still run, through a release', async () => {
      await stored()
      await taken()
      leaseRunsOut()
      const { token } = await taken()
      const unsettledUntil = now + SETTLE_MS
      await ledger.release(uid, token)
      now += 1000
      expect((await taken()).row).toMatchObject({ deliveries: 1, unsettledUntil })
    })

    it('counts on a row that was never saved, too', async () => {
      await taken()
      leaseRunsOut()
      expect((await taken()).row).toEqual({ uid, turn: 0, deliveries: 1, unsettledUntil: now + SETTLE_MS })
    })

    // Report: awslabs/amazon-dynamodb-lock-client#62
    it('does not save for a holder whose lease was taken over, and names the winner', async () => {
      await stored()
      const first = await taken()
      leaseRunsOut()
      const second = await taken()
      const lost: unknown = await ledger.save(aRow({ uid, turn: 9 }), first.token).catch((error) => error)
      expect(lost).toBeInstanceOf(LostRace)
      expect(lost).toMatchObject({ winner: { uid, turn: 3 } })
      await ledger.save(aRow({ uid, turn: 4 }), second.token)
      expect((await ledger.read(uid))?.turn).toBe(4)
    })

    it('does not let a late repetition of a save undo another’s', async () => {
      await stored()
      const first = await taken()
      await ledger.save(aRow({ uid, turn: 4 }), first.token)
      const second = await taken()
      await ledger.save(aRow({ uid, turn: 5 }), second.token)
      await expect(ledger.save(aRow({ uid, turn: 4 }), first.token)).rejects.toThrow(LostRace)
      expect((await ledger.read(uid))?.turn).toBe(5)
    })

    it('takes a save that is sent again for the first, which had arrived', async () => {
      await stored()
      const { token } = await taken()
      await ledger.save(aRow({ uid, turn: 4 }), token)
      await expect(ledger.save(aRow({ uid, turn: 4 }), token)).resolves.toBeUndefined()
    })

    // Report: awslabs/amazon-dynamodb-lock-client#116
    it('lets go only of a lease that is still one’s own', async () => {
      await stored()
      const first = await taken()
      leaseRunsOut()
      const second = await taken()
      await ledger.release(uid, first.token)
      expect((await ledger.take(uid, event)).kind).toBe('held')
      await ledger.release(uid, second.token)
      expect((await ledger.take(uid, event)).kind).toBe('taken')
    })

    it('makes no row by letting go of one that is not there', async () => {
      await ledger.release(uid, 'nobody')
      expect(await ledger.take(uid, byTurn(0))).toEqual({ kind: 'no-row' })
    })

    it('leaves the lease of a released row free at once, and the row as it was', async () => {
      await stored()
      const { token } = await taken()
      await ledger.release(uid, token)
      expect((await taken(byTurn(3))).row).toEqual(aRow({ uid }))
    })
  })
}

defineLedgerContract(
  'in memory',
  async () => createMemoryLedger,
  async () => {},
)

defineLedgerContract(
  'on tables in memory',
  async () => {
    const { client } = createMemoryTables({ proxies: { partition: 'uid' } })
    return (options) => createLedger({ ...options, client, table: 'proxies' })
  },
  async () => {},
)

defineLedgerContract(
  'on tables in memory, each write sent twice',
  async () => {
    const { client } = createMemoryTables({ proxies: { partition: 'uid' } }, () => 2)
    return (options) => createLedger({ ...options, client, table: 'proxies' })
  },
  async () => {},
)

let aws: LocalAws
defineLedgerContract(
  'on tables',
  async () => {
    aws = await openLocalAws()
    return (options) => createLedger({ ...options, client: aws.tables, table: aws.emulators.tables.proxies })
  },
  () => aws.close(),
)

describe('a ledger whose network loses answers', () => {
  let aws: LocalAws
  let lose = 0

  beforeAll(async () => {
    aws = await openLocalAws()
    const { requestHandler } = aws.tables.config
    const handle = requestHandler.handle.bind(requestHandler)
    requestHandler.handle = async (request, options) => {
      const answer = await handle(request, options)
      if (lose === 0) return answer
      lose -= 1
      // What the SDK itself throws for a connection that is cut; it sends such a request again.
      throw Object.assign(new Error('socket hang up'), { name: 'TimeoutError' })
    }
  })
  afterAll(() => aws.close())

  // Report: aws/aws-sdk-java#2667
  it('has what it took and saved, though the SDK’s repetition fails its own condition', async () => {
    const table = aws.emulators.tables.proxies
    const ledger = createLedger({ client: aws.tables, table, leaseMs: LEASE_MS, settleMs: SETTLE_MS })
    lose = 1
    const first = await ledger.take('a', event)
    expect(first).toMatchObject({ kind: 'taken', row: { uid: 'a', turn: 0 } })
    if (first.kind !== 'taken') return
    lose = 1
    await ledger.save(aRow(), first.token)
    lose = 1
    const second = await ledger.take('a', byTurn(3))
    expect(second).toMatchObject({ kind: 'taken', row: aRow() })
    if (second.kind !== 'taken') return
    lose = 1
    await ledger.release('a', second.token)
    expect(lose).toBe(0)
    expect((await ledger.take('a', byTurn(3))).kind).toBe('taken')
  })

  // Report: awslabs/amazon-kinesis-client#777
  it('has the lease it took over, counted once', async () => {
    const table = aws.emulators.tables.proxies
    let now = NOW
    const ledger = createLedger({
      client: aws.tables,
      table,
      leaseMs: LEASE_MS,
      settleMs: SETTLE_MS,
      now: () => now,
    })
    await ledger.take('b', event)
    now += LEASE_MS + 1
    lose = 2
    expect(await ledger.take('b', event)).toMatchObject({ kind: 'taken', row: { deliveries: 1 } })
    expect(lose).toBe(0)
  })
})
