import {
  ConditionalCheckFailedException,
  DynamoDBClient,
  ProvisionedThroughputExceededException,
} from '@aws-sdk/client-dynamodb'
import { DynamoDBDocumentClient, GetCommand, PutCommand, UpdateCommand } from '@aws-sdk/lib-dynamodb'
import { marshall } from '@aws-sdk/util-dynamodb'
import { mockClient } from 'aws-sdk-client-mock'
import 'aws-sdk-client-mock-vitest/extend'
import { beforeEach, describe, expect, it } from 'vitest'
import { createLedger, LostRace } from '../../lib/ledger.ts'
import { aRow, NOW } from './a-row.ts'

// The edges of AWS that no emulator shows; what holds everywhere is in test/contract/ledger.test.ts.

const dynamo = mockClient(DynamoDBDocumentClient)
const ledger = createLedger({
  client: DynamoDBDocumentClient.from(new DynamoDBClient({ region: 'x' })),
  table: 'proxies',
  leaseMs: 90_000,
  settleMs: 120_000,
  now: () => NOW,
  newToken: () => 'mine',
})
const byTurn = { kind: 'turn', turn: 3 } as const
const leased = (token: string, until: number) => ({ ...aRow(), lease: { token, until } })

/** A condition that failed, with the item that stood in its way where the endpoint gives it. */
const conditionFailed = (item?: object) =>
  new ConditionalCheckFailedException({
    message: 'The conditional request failed',
    $metadata: {},
    ...(item && { Item: marshall(item) }),
  })
const throttled = () => new ProvisionedThroughputExceededException({ message: 'slow down', $metadata: {} })

beforeEach(() => {
  dynamo.reset()
})

describe('ledger: one write to take', () => {
  // Report: github-aws-runners/terraform-aws-github-runner#4262
  it('takes and reads with a single conditional update', async () => {
    dynamo.on(UpdateCommand).resolves({ Attributes: leased('mine', NOW + 90_000) })
    expect(await ledger.take('a', byTurn)).toEqual({ kind: 'taken', token: 'mine', row: aRow() })
    expect(dynamo).toHaveReceivedCommandExactlyOnceWith(UpdateCommand, {
      TableName: 'proxies',
      Key: { uid: 'a' },
      UpdateExpression: 'SET #lease = :lease, #turn = if_not_exists(#turn, :zero)',
      ConditionExpression: 'attribute_not_exists(#lease) AND attribute_exists(#uid) AND #turn <= :turn',
      ExpressionAttributeNames: { '#lease': 'lease', '#turn': 'turn', '#uid': 'uid' },
      ExpressionAttributeValues: { ':lease': { token: 'mine', until: NOW + 90_000 }, ':zero': 0, ':turn': 3 },
      ReturnValues: 'ALL_NEW',
      ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
    })
    expect(dynamo).not.toHaveReceivedCommand(GetCommand)
  })

  it('asks nothing of the row for an event', async () => {
    dynamo.on(UpdateCommand).resolves({ Attributes: leased('mine', NOW + 90_000) })
    await ledger.take('a', { kind: 'event' })
    expect(dynamo).toHaveReceivedCommandWith(UpdateCommand, {
      ConditionExpression: 'attribute_not_exists(#lease)',
    })
  })

  it('takes over in a second write that names the dead holder, so that of many one succeeds', async () => {
    dynamo
      .on(UpdateCommand)
      .rejectsOnce(conditionFailed(leased('dead', NOW - 1)))
      .resolves({
        Attributes: { ...leased('mine', NOW + 90_000), deliveries: 1, unsettledUntil: NOW + 120_000 },
      })
    expect(await ledger.take('a', byTurn)).toMatchObject({
      kind: 'taken',
      row: { deliveries: 1, unsettledUntil: NOW + 120_000 },
    })
    expect(dynamo).toHaveReceivedCommandTimes(UpdateCommand, 2)
    expect(dynamo).toHaveReceivedNthCommandWith(UpdateCommand, 2, {
      UpdateExpression:
        'SET #lease = :lease, #turn = if_not_exists(#turn, :zero), #deliveries = if_not_exists(#deliveries, :zero) + :one, #unsettled = :unsettled',
      ConditionExpression: '#lease.#token = :dead AND attribute_exists(#uid) AND #turn <= :turn',
      ExpressionAttributeValues: {
        ':lease': { token: 'mine', until: NOW + 90_000 },
        ':zero': 0,
        ':turn': 3,
        ':dead': 'dead',
        ':one': 1,
        ':unsettled': NOW + 120_000,
      },
    })
  })
})

describe('ledger: a condition that failed', () => {
  // Report: aws-powertools/powertools-lambda-typescript#1573
  it('is judged by the item in the exception, where there is one', async () => {
    dynamo.on(UpdateCommand).rejects(conditionFailed(leased('other', NOW + 5)))
    expect(await ledger.take('a', byTurn)).toEqual({ kind: 'held', until: NOW + 5, turn: 3 })
    expect(dynamo).not.toHaveReceivedCommand(GetCommand)
  })

  it('is judged by one consistent read, where there is none', async () => {
    dynamo.on(UpdateCommand).rejects(conditionFailed())
    dynamo.on(GetCommand).resolves({ Item: leased('other', NOW + 5) })
    expect(await ledger.take('a', byTurn)).toEqual({ kind: 'held', until: NOW + 5, turn: 3 })
    expect(dynamo).toHaveReceivedCommandExactlyOnceWith(GetCommand, {
      TableName: 'proxies',
      Key: { uid: 'a' },
      ConsistentRead: true,
    })
  })

  it('finds no row', async () => {
    dynamo.on(UpdateCommand).rejects(conditionFailed())
    dynamo.on(GetCommand).resolves({})
    expect(await ledger.take('a', byTurn)).toEqual({ kind: 'no-row' })
  })

  it('is our own doing when the SDK repeated a write that had arrived: the row is ours', async () => {
    dynamo.on(UpdateCommand).rejects(conditionFailed(leased('mine', NOW + 90_000)))
    expect(await ledger.take('a', byTurn)).toEqual({ kind: 'taken', token: 'mine', row: aRow() })
    dynamo.reset()
    dynamo.on(UpdateCommand).rejects(conditionFailed())
    dynamo.on(GetCommand).resolves({ Item: leased('mine', NOW + 90_000) })
    expect(await ledger.take('a', byTurn)).toEqual({ kind: 'taken', token: 'mine', row: aRow() })
  })

  it('is our own doing also when the take-over was repeated', async () => {
    const item = { ...leased('mine', NOW + 90_000), deliveries: 1, unsettledUntil: NOW + 120_000 }
    dynamo
      .on(UpdateCommand)
      .rejectsOnce(conditionFailed(leased('dead', NOW - 1)))
      .rejects(conditionFailed(item))
    expect(await ledger.take('a', byTurn)).toMatchObject({
      kind: 'taken',
      token: 'mine',
      row: { deliveries: 1 },
    })
  })

  it('of a take-over means that another was quicker: the message comes back', async () => {
    dynamo
      .on(UpdateCommand)
      .rejectsOnce(conditionFailed(leased('dead', NOW - 1)))
      .rejects(conditionFailed(leased('quicker', NOW + 7)))
    expect(await ledger.take('a', byTurn)).toEqual({ kind: 'held', until: NOW + 7, turn: 3 })
  })

  it('whose cause is gone by the time it is read sends the message back, and loses nothing', async () => {
    dynamo.on(UpdateCommand).rejects(conditionFailed())
    dynamo.on(GetCommand).resolves({ Item: aRow() })
    expect((await ledger.take('a', byTurn)).kind).toBe('held')
    dynamo.on(GetCommand).resolves({})
    expect((await ledger.take('a', { kind: 'event' })).kind).toBe('held')
  })

  it('of a take-over that the holder came back from sends the message back', async () => {
    dynamo
      .on(UpdateCommand)
      .rejectsOnce(conditionFailed(leased('dead', NOW - 1)))
      .rejects(conditionFailed(aRow()))
    expect((await ledger.take('a', byTurn)).kind).toBe('held')
  })
})

describe('ledger: save', () => {
  it('writes the row and lets go of the lease in one conditional write', async () => {
    dynamo.on(PutCommand).resolves({})
    await ledger.save(aRow({ deliveries: 4 }), 'mine')
    expect(dynamo).toHaveReceivedCommandExactlyOnceWith(PutCommand, {
      TableName: 'proxies',
      Item: { ...aRow(), deliveries: 0, savedBy: 'mine' },
      ConditionExpression: '#lease.#token = :token',
      ExpressionAttributeNames: { '#lease': 'lease', '#token': 'token' },
      ExpressionAttributeValues: { ':token': 'mine' },
      ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
    })
  })

  it.each([
    ['with the item', true],
    ['without it', false],
  ])('is done when a repetition finds our own save, the exception coming %s', async (_, withItem) => {
    const item = { ...aRow(), savedBy: 'mine' }
    dynamo.on(PutCommand).rejects(conditionFailed(withItem ? item : undefined))
    dynamo.on(GetCommand).resolves({ Item: item })
    await expect(ledger.save(aRow(), 'mine')).resolves.toBeUndefined()
  })

  it('is done when the next holder has already taken what we saved', async () => {
    dynamo.on(PutCommand).rejects(conditionFailed({ ...leased('next', NOW + 5), savedBy: 'mine' }))
    await expect(ledger.save(aRow(), 'mine')).resolves.toBeUndefined()
  })

  it('is lost to another holder, whose item it brings', async () => {
    dynamo.on(PutCommand).rejects(conditionFailed(leased('other', NOW + 5)))
    const lost: unknown = await ledger.save(aRow(), 'mine').catch((error: unknown) => error)
    expect(lost).toBeInstanceOf(LostRace)
    expect(lost).toMatchObject({
      winner: { lease: { token: 'other' } },
      message: 'the row a was saved by another holder',
    })
  })

  it('is lost where the row is gone', async () => {
    dynamo.on(PutCommand).rejects(conditionFailed())
    dynamo.on(GetCommand).resolves({})
    await expect(ledger.save(aRow(), 'mine')).rejects.toThrow(LostRace)
  })
})

describe('ledger: trouble at AWS', () => {
  it('is handed up as it is, whatever was being done', async () => {
    dynamo.on(UpdateCommand).rejects(throttled())
    dynamo.on(PutCommand).rejects(throttled())
    dynamo.on(GetCommand).rejects(throttled())
    await expect(ledger.take('a', byTurn)).rejects.toThrow(ProvisionedThroughputExceededException)
    await expect(ledger.save(aRow(), 'mine')).rejects.toThrow(ProvisionedThroughputExceededException)
    await expect(ledger.release('a', 'mine')).rejects.toThrow(ProvisionedThroughputExceededException)
    await expect(ledger.read('a')).rejects.toThrow(ProvisionedThroughputExceededException)
  })

  it('is handed up when it strikes the read after a failed condition: nothing is taken for lost or won', async () => {
    dynamo.on(UpdateCommand).rejects(conditionFailed())
    dynamo.on(PutCommand).rejects(conditionFailed())
    dynamo.on(GetCommand).rejects(throttled())
    await expect(ledger.take('a', byTurn)).rejects.toThrow('slow down')
    await expect(ledger.save(aRow(), 'mine')).rejects.toThrow('slow down')
  })

  it('lets nothing go that is no longer ours, and makes no fuss about it', async () => {
    dynamo.on(UpdateCommand).rejects(conditionFailed(leased('other', NOW + 5)))
    await expect(ledger.release('a', 'mine')).resolves.toBeUndefined()
    expect(dynamo).toHaveReceivedCommandWith(UpdateCommand, {
      UpdateExpression: 'REMOVE #lease',
      ConditionExpression: '#lease.#token = :token',
    })
  })
})

describe('ledger: what it reads', () => {
  it('is no row before an event was judged on it', async () => {
    dynamo.on(GetCommand).resolves({ Item: { uid: 'a', turn: 0, lease: { token: 'x', until: 1 } } })
    expect(await ledger.read('a')).toBeUndefined()
  })

  it('is refused when it was never written by us', async () => {
    dynamo.on(GetCommand).resolves({ Item: { uid: 'a', phase: 'Somewhere' } })
    await expect(ledger.read('a')).rejects.toThrow('phase')
  })
})
