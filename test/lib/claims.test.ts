import { ConditionalCheckFailedException, DynamoDBClient } from '@aws-sdk/client-dynamodb'
import {
  DeleteCommand,
  DynamoDBDocumentClient,
  GetCommand,
  PutCommand,
  QueryCommand,
} from '@aws-sdk/lib-dynamodb'
import { marshall } from '@aws-sdk/util-dynamodb'
import { mockClient } from 'aws-sdk-client-mock'
import 'aws-sdk-client-mock-vitest/extend'
import { beforeEach, describe, expect, it } from 'vitest'
import { createClaims, numberOf, slotPartition } from '../../lib/claims.ts'
import { countOn } from '../../lib/listing.ts'
import { aConfig } from './a-config.ts'
import { aPlace, NOW } from './a-row.ts'

const STAMP = 'drawn just now'
const dynamo = mockClient(DynamoDBDocumentClient)
const client = DynamoDBDocumentClient.from(new DynamoDBClient({ region: 'x' }))
const claims = createClaims({ client, table: 'claims', now: () => NOW, newStamp: () => STAMP })

const conditionFailed = (item?: object) =>
  new ConditionalCheckFailedException({ message: 'no', $metadata: {}, ...(item && { Item: marshall(item) }) })

beforeEach(() => {
  dynamo.reset()
})

const seen = { partition: 'vmid#lab', sort: '5001', owner: 'a', stamp: 's1' }

describe('claims: a condition that failed', () => {
  // Report: awslabs/amazon-kinesis-client#777
  it.each([
    ['in the exception', true],
    ['by a read', false],
  ])('is compared with our own stamp, found %s, before it is believed', async (_, inException) => {
    const found = (item: object) => {
      dynamo.on(PutCommand).rejects(conditionFailed(inException ? item : undefined))
      dynamo.on(GetCommand).resolves({ Item: item })
    }
    found({ owner: 'a', stamp: STAMP })
    expect(await claims.takeVmid('lab', 5001, 'a')).toEqual({ ...seen, stamp: STAMP })
    expect(await claims.keep(seen)).toEqual({ ...seen, stamp: STAMP })
    expect(await claims.leaveVmid({ cluster: 'lab', vmid: 5001 }, 'a', 'orphan', seen)).toBe(true)
    found({ owner: 'a', stamp: 'another' })
    expect(await claims.takeVmid('lab', 5001, 'a')).toBe('its own')
    expect(await claims.keep(seen)).toBeUndefined()
    expect(await claims.leaveVmid({ cluster: 'lab', vmid: 5001 }, 'a', 'orphan', seen)).toBe(false)
    found({ owner: 'b', stamp: 'another' })
    expect(await claims.takeVmid('lab', 5001, 'a')).toBe('another’s')
  })

  it('of a freeing means that it is another’s, and nothing is to be done, or that it was taken anew', async () => {
    dynamo.on(DeleteCommand).rejects(conditionFailed({ owner: 'b', stamp: 's2' }))
    expect(await claims.free(seen)).toBe(true)
    dynamo.on(DeleteCommand).rejects(conditionFailed())
    dynamo.on(GetCommand).resolves({})
    expect(await claims.free(seen)).toBe(true)
    dynamo.on(DeleteCommand).rejects(conditionFailed({ owner: 'a', stamp: 's2' }))
    expect(await claims.free(seen)).toBe(false)
  })
})

describe('claims: trouble at AWS', () => {
  it('is handed up', async () => {
    dynamo.on(PutCommand).rejects(new Error('slow down'))
    dynamo.on(DeleteCommand).rejects(new Error('slow down'))
    dynamo.on(QueryCommand).rejects(new Error('slow down'))
    await expect(claims.takeVmid('lab', 5001, 'a')).rejects.toThrow('slow down')
    await expect(claims.free(seen)).rejects.toThrow('slow down')
    await expect(claims.takeSlot('clone#x', 1, 'a')).rejects.toThrow('slow down')
    await expect(claims.suspect('x', {})).rejects.toThrow('slow down')
  })
})

describe('claims: lists', () => {
  it('are read to their last page', async () => {
    const claim = (sort: string) => ({ partition: 'vmid#lab', sort, owner: 'a' })
    dynamo
      .on(QueryCommand)
      .resolvesOnce({ Items: [claim('5001')], LastEvaluatedKey: { sort: '5001' } })
      .resolvesOnce({ Items: [], LastEvaluatedKey: { sort: '5002' } })
      .resolves({ Items: [claim('5003')] })
    expect((await claims.claimsOf('a')).map(numberOf)).toEqual([
      { cluster: 'lab', vmid: 5001 },
      { cluster: 'lab', vmid: 5003 },
    ])
    expect(dynamo).toHaveReceivedLastCommandWith(QueryCommand, {
      IndexName: 'byOwner',
      ExclusiveStartKey: { sort: '5002' },
    })
  })

  it('of slots are read consistently: the index could hide one just taken', async () => {
    dynamo.on(QueryCommand).resolves({ Items: [] })
    await claims.takeSlot('clone#lab#vmdata', 1, 'a')
    expect(dynamo).toHaveReceivedCommandWith(QueryCommand, { ConsistentRead: true })
  })

  it('count rows on a node to the last page', async () => {
    dynamo
      .on(QueryCommand)
      .resolvesOnce({ Count: 3, LastEvaluatedKey: { uid: 'c' } })
      .resolves({ Count: 2 })
    expect(await countOn(client, 'proxies')('lab', 'pve1')).toBe(5)
    expect(dynamo).toHaveReceivedNthCommandWith(QueryCommand, 2, {
      TableName: 'proxies',
      IndexName: 'byNode',
      Select: 'COUNT',
      ExpressionAttributeValues: { ':placedOn': 'lab/pve1' },
      ExclusiveStartKey: { uid: 'c' },
    })
  })
})

describe('claims: suspects', () => {
  it('expire by themselves, and cannot pass for another item', async () => {
    await claims.suspect('seed#x', { kind: 'seed', partition: 'vmid#lab', sort: '1' })
    expect(dynamo).toHaveReceivedCommandExactlyOnceWith(PutCommand, {
      TableName: 'claims',
      Item: {
        kind: 'seed',
        partition: 'suspect',
        sort: 'seed#x',
        firstSeen: NOW,
        purgeAt: NOW / 1000 + 14 * 86_400,
      },
    })
  })
})

describe('slots', () => {
  it('are counted by storage, of one node unless all see the same', () => {
    const cluster = aConfig().clusters.lab
    if (!cluster) throw new Error('the small configuration has a cluster')
    expect(slotPartition(aPlace, cluster)).toBe('clone#lab#vmdata#pve1')
    expect(slotPartition(aPlace, { ...cluster, storageShared: true })).toBe('clone#lab#vmdata')
  })
})
