import { PutCommand } from '@aws-sdk/lib-dynamodb'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { claimedVmids, rowNow, rowsInPhase } from '../../lib/listing.ts'
import { createReports } from '../../lib/reports.ts'
import { aRow } from '../lib/a-row.ts'
import { type LocalAws, openLocalAws } from './local-aws.ts'

let aws: LocalAws
beforeAll(async () => {
  aws = await openLocalAws()
})
afterAll(() => aws.close())

const put = (TableName: string, Item: Record<string, unknown>) =>
  aws.tables.send(new PutCommand({ TableName, Item }))

describe('rows in their table', () => {
  it('are listed by phase over more pages than one, and read one by one', async () => {
    const { proxies } = aws.emulators.tables
    // A page holds 1 MB.
    const reason = 'x'.repeat(60_000)
    const problem = { code: 'NoSpace', reason, firstAt: 1, lastAt: 1, times: 1 } as const
    const uids = Array.from({ length: 30 }, (_, index) => `r${String(index).padStart(2, '0')}`)
    for (const uid of uids) await put(proxies, aRow({ uid, phase: 'Ready', step: undefined, problem }))
    await put(proxies, aRow({ uid: 'other' }))
    await put(proxies, { uid: 'blank', turn: 0 })
    await put(proxies, { ...aRow({ uid: 'damaged', phase: 'Ready', step: undefined }), place: 'nowhere' })
    const told: string[] = []
    const ready = rowsInPhase(aws.tables, proxies, ({ message }) => void told.push(message))
    const rows = await ready('Ready')
    expect(told).toEqual(['the row damaged cannot be read: place: got "nowhere", wanted an object'])
    expect(rows.map(({ uid }) => uid).sort()).toEqual(uids)
    expect(
      await rowsInPhase(aws.tables, proxies, ({ message }) => void told.push(message))('Failed'),
    ).toEqual([])
    expect(await rowNow(aws.tables, proxies)('r07')).toMatchObject({ uid: 'r07', phase: 'Ready' })
    expect(await rowNow(aws.tables, proxies)('blank')).toBeUndefined()
    expect(await rowNow(aws.tables, proxies)('nobody')).toBeUndefined()
  })
})

describe('claims in their table', () => {
  it('tell the VMIDs of one cluster', async () => {
    const { claims } = aws.emulators.tables
    for (const [partition, sort] of [
      ['vmid#lab', '5001'],
      ['vmid#lab', '5002'],
      ['vmid#lab2', '5003'],
      ['clone#lab#vmdata', '0'],
    ])
      await put(claims, { partition, sort, owner: 'a' })
    expect(await claimedVmids(aws.tables, claims)('lab')).toEqual([5001, 5002])
    expect(await claimedVmids(aws.tables, claims)('nowhere')).toEqual([])
  })
})

describe('reports in the table of claims', () => {
  type R = { startedAt: string; n: number }
  const at = (minute: number) => new Date(Date.UTC(2026, 0, 1, 0, minute)).toISOString()

  it('are kept one for each kind, and by an earlier round not written over', async () => {
    const options = {
      client: aws.tables,
      table: aws.emulators.tables.claims,
      partition: 'check-report',
    } as const
    const lab = createReports<R>({ ...options, sort: 'cluster#lab' })
    const all = createReports<R>(options)
    expect(await lab.latest()).toBeUndefined()
    await lab.save({ startedAt: at(5), n: 1 })
    await all.save({ startedAt: at(5), n: 2 })
    await lab.save({ startedAt: at(4), n: 3 })
    expect(await lab.latest()).toEqual({ startedAt: at(5), n: 1 })
    expect(await all.latest()).toEqual({ startedAt: at(5), n: 2 })
    await lab.save({ startedAt: at(6), n: 4 })
    expect(await lab.latest()).toMatchObject({ n: 4 })
  })
})
