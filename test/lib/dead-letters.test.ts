import { PurgeQueueCommand, ReceiveMessageCommand, SendMessageCommand } from '@aws-sdk/client-sqs'
import * as fc from 'fast-check'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createDeadLetters } from '../../lib/dead-letters.ts'
import { isMeant, type Letter, readLetter } from '../../lib/letter.ts'
import { createQueues } from '../../lib/queue.ts'
import type { Row } from '../../lib/record.ts'
import { redriveOf, remedyFor } from '../../lib/redrive.ts'
import { type LocalAws, openLocalAws } from '../contract/local-aws.ts'
import { aRow, NOW } from './a-row.ts'

const at = { now: NOW, stallMs: 900_000 }
const report = { kind: 'report', side: 'create', turn: 7 } as const
const message = { kind: 'message', side: 'create', turn: 3 } as const
const failedRow = (changes: Partial<Row> = {}) =>
  aRow({ phase: 'Failed', step: undefined, failedStep: 'clone', turn: 8, ...changes })

describe('what can be done about a letter', () => {
  it.each<[string, Parameters<typeof remedyFor>[0], Row | undefined, object]>([
    [
      'of a failed row: its step again',
      report,
      failedRow(),
      { kind: 'resume', side: 'create', message: { turn: 8 } },
    ],
    [
      'of a failed deletion: on the other queue',
      report,
      failedRow({ failedStep: 'destroy' }),
      { kind: 'resume', side: 'delete' },
    ],
    [
      'of an earlier failure: the same',
      { ...report, turn: 2 },
      failedRow(),
      { kind: 'resume', message: { turn: 8 } },
    ],
    ['that is ahead of its row: it stays', { ...report, turn: 9 }, failedRow(), { kind: 'pending' }],
    ['whose row is gone: overtaken', report, undefined, { kind: 'overtaken' }],
    [
      'whose row is ready: overtaken',
      report,
      aRow({ phase: 'Ready', step: undefined, turn: 20 }),
      { kind: 'overtaken' },
    ],
    [
      'whose row was asked for anew: overtaken',
      report,
      aRow({ step: 'seed', turn: 20 }),
      { kind: 'overtaken' },
    ],
    [
      'of a row that is being reported still: it stays',
      report,
      aRow({ step: 'report', failedStep: 'clone', turn: 7 }),
      { kind: 'pending' },
    ],
    [
      'of a publisher: sent again',
      { kind: 'event', side: 'delete' },
      undefined,
      { kind: 'again', side: 'delete' },
    ],
    [
      'of a row that stalled: a kick',
      message,
      aRow({ dueAt: NOW - 900_001 }),
      {
        kind: 'resume',
        side: 'create',
        message: { type: 'Resume', uid: 'a', turn: 3 },
        why: 'kicked at clone',
      },
    ],
    [
      'of a report that stalled: a kick on the queue of the step that failed',
      message,
      aRow({ step: 'report', failedStep: 'stop', dueAt: 0 }),
      { kind: 'resume', side: 'delete' },
    ],
    ['of a row on its way: it stays', message, aRow(), { kind: 'pending' }],
    ['of a turn long past: overtaken', { ...message, turn: 2 }, aRow({ dueAt: 0 }), { kind: 'overtaken' }],
    [
      'of our own, its row failed since: its step again',
      message,
      failedRow(),
      { kind: 'resume', message: { turn: 8 } },
    ],
  ])('%s', (_, letter, row, expected) => {
    expect(remedyFor(letter, row, at)).toMatchObject(expected)
  })

  it('is nothing but a redrive for a row without a letter, and only for a failed one', () => {
    expect(redriveOf(failedRow())?.message).toEqual({ type: 'Resume', uid: 'a', turn: 8 })
    expect(redriveOf(aRow())).toBeUndefined()
  })
})

const attribute = (StringValue: string) => ({ DataType: 'String', StringValue })
const read = (Body: string, attributes: Record<string, string> = {}) =>
  readLetter('create', {
    MessageId: 'm-12345678',
    ReceiptHandle: 'r',
    Body,
    Attributes: { SentTimestamp: '5' },
    MessageAttributes: Object.fromEntries(
      Object.entries(attributes).map(([name, text]) => [name, attribute(text)]),
    ),
  })

describe('a letter', () => {
  it.each<[string, string, Record<string, string>, object]>([
    [
      'of a failed life cycle',
      '{"type":"Continue","uid":"a","turn":3}',
      {
        code: 'NoSpace',
        uid: 'a',
        turn: '3',
        step: 'clone',
        failedAt: '2026-01-01T00:00:00.000Z',
        problem: '{"reason":"full"}',
      },
      {
        kind: 'report',
        code: 'NoSpace',
        uid: 'a',
        turn: 3,
        step: 'clone',
        diedAt: NOW,
        problem: { reason: 'full' },
      },
    ],
    [
      'of SQS with one of ours',
      '{"type":"Resume","uid":"a","turn":3}',
      {},
      { kind: 'message', code: 'Undelivered', uid: 'a', turn: 3, diedAt: 5 },
    ],
    [
      'of SQS with an event',
      '{"type":"ProxyRequested","uid":"b"}',
      {},
      { kind: 'event', code: 'Undelivered', uid: 'b' },
    ],
    [
      'in an EventBridge envelope',
      '{"detail-type":"x","detail":{"uid":"c"}}',
      {},
      { kind: 'event', uid: 'c' },
    ],
    [
      'in an SNS envelope',
      `{"Type":"Notification","Message":${JSON.stringify('{"uid":"d"}')}}`,
      {},
      { uid: 'd' },
    ],
    ['that is not JSON', 'hello', { code: 'InvalidEvent' }, { kind: 'event', code: 'InvalidEvent' }],
    [
      'with a problem that is none',
      '{}',
      { code: 'InvalidEvent', problem: '[1]', failedAt: 'yesterday' },
      { problem: {}, diedAt: 5 },
    ],
  ])('%s is read', (_, body, attributes, expected) => {
    expect(read(body, attributes)).toMatchObject({ ...expected, body })
  })

  it('whatever is in it is read without a throw', () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.string(), fc.json()),
        fc.dictionary(fc.string(), fc.string()),
        (body, attributes) => {
          expect(read(body, attributes).body).toBe(body)
        },
      ),
    )
  })

  it('is meant by its uid, its id, or enough of its id', () => {
    const letter = read('{"uid":"a"}')
    for (const id of ['a', 'm-12345678', 'm-123456']) expect(isMeant(letter, id)).toBe(true)
    for (const id of ['m-1', 'b', '']) expect(isMeant(letter, id)).toBe(false)
  })
})

describe('a look at the dead letters', () => {
  let aws: LocalAws
  let urls: { create: string; delete: string }
  beforeAll(async () => {
    aws = await openLocalAws()
    const { queues } = aws.emulators
    urls = { create: queues.create.deadLetters.url, delete: queues.delete.deadLetters.url }
  })
  afterAll(() => aws.close())
  beforeEach(async () => {
    for (const QueueUrl of Object.values(urls)) await aws.sqs.send(new PurgeQueueCommand({ QueueUrl }))
  })

  const put = (side: 'create' | 'delete', uid: string) =>
    aws.sqs.send(new SendMessageCommand({ QueueUrl: urls[side], MessageBody: JSON.stringify({ uid }) }))
  const open = () => createDeadLetters({ client: aws.sqs, urls })
  const waiting = async () => {
    const pages = Object.values(urls).map(async (QueueUrl) => {
      const all = new Set<string | undefined>()
      for (;;) {
        const { Messages = [] } = await aws.sqs.send(
          new ReceiveMessageCommand({ QueueUrl, MaxNumberOfMessages: 10 }),
        )
        if (Messages.length === 0) return all.size
        for (const { MessageId } of Messages) all.add(MessageId)
      }
    })
    return (await Promise.all(pages)).reduce((sum, size) => sum + size, 0)
  }

  it('shows each of hundreds once, tells how far it is, and gives all back', async () => {
    const names = Array.from({ length: 250 }, (_, index) => `p${index}`)
    for (const uid of names) await put(uid.endsWith('7') ? 'delete' : 'create', uid)
    const seen: string[] = []
    let last = { seen: 0, about: 0 }
    await open().look({
      visit: (page) => void seen.push(...page.map(({ uid = '' }) => uid)),
      onProgress: (count, about) => {
        last = { seen: count, about }
      },
    })
    expect(seen.sort()).toEqual(names.sort())
    expect(last).toEqual({ seen: 250, about: 250 })
    expect(await waiting()).toBe(250)
  })

  it('gives back what was not removed', async () => {
    for (let index = 0; index < 25; index++) await put('create', `p${index}`)
    const letters = open()
    await letters.look({ visit: (page) => letters.remove(page.filter(({ uid }) => uid?.endsWith('3'))) })
    expect(await waiting()).toBe(22)
  })

  it('gives all back when a visitor fails, in the other queue too', async () => {
    for (let index = 0; index < 40; index++) await put(index % 2 ? 'create' : 'delete', `p${index}`)
    const look = open().look({
      visit() {
        throw new Error('the table is not there')
      },
    })
    await expect(look).rejects.toThrow('the table is not there')
    expect(await waiting()).toBe(40)
  })

  it('gives all back when it is called off', async () => {
    for (let index = 0; index < 40; index++) await put('create', `p${index}`)
    const stop = new AbortController()
    const pages: Letter[][] = []
    const look = open().look({
      signal: stop.signal,
      visit(page) {
        pages.push(page)
        stop.abort()
      },
    })
    await expect(look).rejects.toThrow()
    expect(pages).toHaveLength(1)
    expect(await waiting()).toBe(40)
  })

  it('shows pages of both queues one after the other', async () => {
    for (let index = 0; index < 40; index++) await put(index % 2 ? 'create' : 'delete', `p${index}`)
    let inside = 0
    let most = 0
    await open().look({
      async visit() {
        inside += 1
        most = Math.max(most, inside)
        await new Promise((resolve) => setImmediate(resolve))
        inside -= 1
      },
    })
    expect(most).toBe(1)
  })
})

it('a letter that could not be removed is an error, not a success', async () => {
  const client = { send: async () => ({ Failed: [{ Id: '0', Message: 'the handle has expired' }] }) }
  // Only `send` is used of the client.
  const letters = createDeadLetters({ client: client as never, urls: { create: 'c', delete: 'd' } })
  await expect(letters.remove([read('{}')])).rejects.toThrow(
    '1 letter could not be removed: the handle has expired',
  )
})

it('a buried message is read as it was buried', async () => {
  const sent: { MessageBody?: string; MessageAttributes?: Record<string, { StringValue?: string }> }[] = []
  const client = { send: async ({ input }: { input: (typeof sent)[0] }) => void sent.push(input) }
  const urls = { queue: 'q', deadLetters: 'd' }
  // Only `send` is used of the client.
  const queues = createQueues({ client: client as never, urls: { create: urls, delete: urls } })
  const problem = { reason: 'full', hint: 'make room', zone: 'lab-1', node: 'pve1', vmid: 5001 }
  const failedAt = '2026-01-01T00:00:00.000Z'
  await queues.bury('create', 'x', { code: 'NoSpace', uid: 'a', turn: 3, step: 'clone', failedAt, problem })
  const { MessageBody: Body, MessageAttributes } = sent[0] ?? {}
  const letter = readLetter('create', { Body, MessageAttributes } as never)
  expect(letter).toMatchObject({
    kind: 'report',
    code: 'NoSpace',
    uid: 'a',
    turn: 3,
    step: 'clone',
    diedAt: NOW,
    problem,
  })
})
