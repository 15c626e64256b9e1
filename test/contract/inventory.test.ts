import { PutCommand } from '@aws-sdk/lib-dynamodb'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createClaims } from '../../lib/claims.ts'
import { createInventory, type Inventory } from '../../lib/inventory.ts'
import { createLedger, type Ledger } from '../../lib/ledger.ts'
import { createReports } from '../../lib/reports.ts'
import { createMemoryClaims } from '../fakes/claims.ts'
import { createMemoryInventory } from '../fakes/inventory.ts'
import { createMemoryLedger } from '../fakes/ledger.ts'
import { aRow, NOW } from '../lib/a-row.ts'
import { type LocalAws, openLocalAws } from './local-aws.ts'

type Opened = {
  inventory: Inventory
  ledger: Ledger
  claims: Pick<ReturnType<typeof createClaims>, 'takeVmid' | 'leaveVmid' | 'takeSlot' | 'suspect'>
  close(): Promise<void>
}
const times = { leaseMs: 90_000, settleMs: 120_000, now: () => NOW }

function defineInventoryContract(name: string, open: () => Promise<Opened>) {
  describe(`inventory contract: ${name}`, () => {
    let opened: Opened
    beforeAll(async () => {
      opened = await open()
    })
    afterAll(() => opened.close())

    async function store(uid: string, changes: Parameters<typeof aRow>[0] = {}) {
      const taken = await opened.ledger.take(uid, { kind: 'event' })
      if (taken.kind !== 'taken') throw new Error(`${uid} is ${taken.kind}`)
      await opened.ledger.save(aRow({ uid, ...changes }), taken.token)
    }

    it('lists every row that is not deleted with what gc needs of it, held or not, and no row that is blank', async () => {
      const problem = { code: 'NoSpace', reason: 'full', firstAt: NOW, lastAt: NOW, times: 1 } as const
      await store('plain')
      await store('failed', { phase: 'Failed', step: undefined, failedStep: 'clone', problem })
      await store('ready', { phase: 'Ready', step: undefined, expiresAt: NOW + 2, seededOn: ['pve2'] })
      await store('gone', { phase: 'Deleted', step: undefined, wish: 'absent' })
      await store('orphan#lab#5001', { phase: 'Deleting', step: 'stop', wish: 'absent', orphanOf: 'gone' })
      await store('held', { expiresAt: NOW + 1, seededOn: ['pve1'] })
      await opened.ledger.take('held', { kind: 'event' })
      await opened.ledger.take('blank', { kind: 'event' })
      const rows = await opened.inventory.rows()
      expect(rows.map(({ uid }) => uid).sort()).toEqual([
        ...['failed', 'held', 'orphan#lab#5001', 'plain', 'ready'],
      ])
      const byUid = new Map(rows.map((row) => [row.uid, row]))
      const { place, seed, turn, dueAt, wish } = aRow()
      expect(byUid.get('plain')).toEqual({
        uid: 'plain',
        phase: 'Provisioning',
        step: 'clone',
        place,
        seed,
        turn,
        dueAt,
        wish,
      })
      // How far a row is that is at rest is left out.
      const whole = {
        uid: 'ready',
        phase: 'Ready',
        place,
        seed,
        wish,
        seededOn: ['pve2'],
        expiresAt: NOW + 2,
      }
      expect(byUid.get('ready')).toEqual(whole)
      expect(byUid.get('failed')).toEqual({ uid: 'failed', phase: 'Failed', place, seed, wish })
      expect(byUid.get('orphan#lab#5001')).toMatchObject({ step: 'stop', orphanOf: 'gone', turn })
      expect(byUid.get('held')).toMatchObject({
        lease: { until: NOW + 90_000 },
        expiresAt: NOW + 1,
        seededOn: ['pve1'],
      })
      expect(JSON.stringify(rows)).not.toContain('token')
    })

    it('reads one row as it is now', async () => {
      await store('one', { address: '10.0.0.7' })
      const address = '10.0.0.7'
      expect(await opened.inventory.row('one')).toMatchObject({ uid: 'one', phase: 'Provisioning', address })
      expect(await opened.inventory.row('blank')).toBeUndefined()
      expect(await opened.inventory.row('nobody')).toBeUndefined()
    })

    it('reads many rows as they are now, tombstones too, and leaves out who has none', async () => {
      const uids = Array.from({ length: 205 }, (_, index) => `many-${index}`)
      for (const uid of uids) await store(uid, { phase: 'Deleted', step: undefined })
      const asked = [...uids, 'nobody', 'blank', ...uids.slice(0, 3)]
      const found = await opened.inventory.rowsOf(asked)
      expect(found.map(({ uid }) => uid).sort()).toEqual(uids.sort())
      expect(found[0]).toMatchObject({ phase: 'Deleted' })
      expect(await opened.inventory.rowsOf([])).toEqual([])
    })

    it('tells claims from suspects', async () => {
      await opened.claims.takeVmid('lab', 5001, 'a')
      await opened.claims.takeSlot('clone#lab#vmdata', 2, 'a')
      await opened.claims.leaveVmid({ cluster: 'lab', vmid: 5002 }, 'a', 'orphan#lab#5002', undefined)
      await opened.claims.suspect('seed#lab#pve1#x', {
        kind: 'seed',
        cluster: 'lab',
        node: 'pve1',
        volume: 'x',
      })
      const { claims, suspects } = await opened.inventory.claims()
      const stamp = expect.any(String)
      expect(claims).toEqual(
        expect.arrayContaining([
          { partition: 'vmid#lab', sort: '5001', owner: 'a', stamp },
          { partition: 'vmid#lab', sort: '5002', owner: 'a', stamp, leaving: 'orphan#lab#5002' },
          { partition: 'clone#lab#vmdata', sort: '0', owner: 'a', stamp },
        ]),
      )
      expect(claims).toHaveLength(3)
      expect(suspects).toEqual([
        expect.objectContaining({ key: 'seed#lab#pve1#x', kind: 'seed', volume: 'x', firstSeen: NOW }),
      ])
    })
  })
}

defineInventoryContract('in memory', async () => {
  const ledger = createMemoryLedger(times)
  const claims = createMemoryClaims(times.now)
  return { ledger, claims, inventory: createMemoryInventory(ledger, claims), close: async () => {} }
})

defineInventoryContract('on tables', async () => {
  const aws = await openLocalAws()
  const { tables } = aws.emulators
  const client = aws.tables
  return {
    inventory: createInventory({ client, tables }),
    ledger: createLedger({ client, table: tables.proxies, ...times }),
    claims: createClaims({ client, table: tables.claims, now: times.now }),
    close: () => aws.close(),
  }
})

describe('on tables alone', () => {
  let aws: LocalAws
  beforeAll(async () => {
    aws = await openLocalAws()
  })
  afterAll(() => aws.close())

  it('the inventory reads an index of many pages whole, and passes over what is no row', async () => {
    const { tables } = aws.emulators
    const client = aws.tables
    const uids = Array.from({ length: 300 }, (_, index) => `proxy-${index}`)
    // Bigger than a page of 1 MB together.
    const seed = `local:iso/${'x'.repeat(8000)}`
    for (const [index, uid] of uids.entries()) {
      const at = index % 2 === 0 ? { phase: 'Ready' as const, step: undefined } : {}
      await client.send(
        new PutCommand({ TableName: tables.proxies, Item: { ...aRow({ uid, seed, ...at }) } }),
      )
    }
    await client.send(
      new PutCommand({
        TableName: tables.proxies,
        Item: { uid: 'userdata#x', generation: 1, userData: '#' },
      }),
    )
    const rows = await createInventory({ client, tables }).rows()
    expect(rows.map(({ uid }) => uid).sort()).toEqual(uids.sort())
  })

  it('the inventory refuses a table with a row that is not of our making', async () => {
    const { tables } = aws.emulators
    const client = aws.tables
    const odd = { uid: 'odd', phase: 'Ready', createdAt: NOW, wish: 'unknown' }
    await client.send(new PutCommand({ TableName: tables.proxies, Item: odd }))
    await expect(createInventory({ client, tables }).rows()).rejects.toThrow()
  })

  it('the report of the run that began last is kept', async () => {
    const table = aws.emulators.tables.claims
    const reports = createReports<{ startedAt: string; n: number }>({
      client: aws.tables,
      table,
      partition: 'gc-report',
    })
    expect(await reports.latest()).toBeUndefined()
    await reports.save({ startedAt: '2026-01-01T00:00:02.000Z', n: 2 })
    await reports.save({ startedAt: '2026-01-01T00:00:01.000Z', n: 1 })
    expect(await reports.latest()).toMatchObject({ n: 2 })
    await reports.save({ startedAt: '2026-01-01T00:00:03.000Z', n: 3 })
    expect(await reports.latest()).toMatchObject({ n: 3 })
    const inventory = createInventory({ client: aws.tables, tables: aws.emulators.tables })
    expect(await inventory.claims()).toEqual({ claims: [], suspects: [] })
  })
})
