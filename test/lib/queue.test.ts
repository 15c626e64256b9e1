import { ChangeMessageVisibilityCommand, SendMessageCommand, SQSClient } from '@aws-sdk/client-sqs'
import { mockClient } from 'aws-sdk-client-mock'
import 'aws-sdk-client-mock-vitest/extend'
import fc from 'fast-check'
import { beforeEach, describe, expect, it } from 'vitest'
import { createQueues, type Delivery, type Obituary } from '../../lib/queue.ts'

const sqs = mockClient(SQSClient)
const failures: string[] = []
const queues = createQueues({
  client: new SQSClient({ region: 'x' }),
  urls: {
    create: { queue: 'https://sqs/create', deadLetters: 'https://sqs/create-dlq' },
    delete: { queue: 'https://sqs/delete', deadLetters: 'https://sqs/delete-dlq' },
  },
  onVisibilityFailure: ({ message }) => failures.push(message),
})
const delivery: Delivery = { messageId: 'm', body: '{}', receiptHandle: 'receipt', receiveCount: 1 }

beforeEach(() => {
  sqs.reset()
  failures.length = 0
})

/** What one burial sent as attributes, by name. */
async function attributes(over: Partial<Obituary>): Promise<Record<string, string>> {
  sqs.reset()
  await queues.bury('create', 'body', { code: 'Locked', failedAt: 'now', problem: {}, ...over })
  const [call] = sqs.commandCalls(SendMessageCommand)
  const sent = call?.args[0].input.MessageAttributes ?? {}
  return Object.fromEntries(Object.entries(sent).map(([name, { StringValue }]) => [name, StringValue ?? '']))
}

describe('queue: sending', () => {
  it.each([
    [-5, 0],
    [0, 0],
    [0.1, 1],
    [30, 30],
    [899.5, 900],
    [86_400, 900],
  ])('turns a delay of %d s into what SQS takes: %d', async (delaySeconds, DelaySeconds) => {
    await queues.send('delete', { type: 'Continue', uid: 'a', turn: 4 }, { delaySeconds })
    expect(sqs).toHaveReceivedCommandExactlyOnceWith(SendMessageCommand, {
      QueueUrl: 'https://sqs/delete',
      MessageBody: '{"type":"Continue","uid":"a","turn":4}',
      DelaySeconds,
    })
  })

  it('hands up what SQS threw, so that the row is not saved without its message', async () => {
    sqs.on(SendMessageCommand).rejects(new Error('throttled'))
    await expect(queues.send('create', {}, { delaySeconds: 0 })).rejects.toThrow('throttled')
    await expect(queues.bury('create', '', { code: 'Locked', failedAt: 'now', problem: {} })).rejects.toThrow(
      'throttled',
    )
  })
})

describe('queue: visibility', () => {
  it.each([
    [0, 1],
    [0.2, 1],
    [12.3, 13],
    [1e6, 43_200],
  ])('asks for %d s within what SQS takes: %d', async (seconds, VisibilityTimeout) => {
    sqs.on(ChangeMessageVisibilityCommand).resolves({})
    await queues.showAgainIn('create', delivery, seconds)
    expect(sqs).toHaveReceivedCommandExactlyOnceWith(ChangeMessageVisibilityCommand, {
      QueueUrl: 'https://sqs/create',
      ReceiptHandle: 'receipt',
      VisibilityTimeout,
    })
  })

  it('is no error of the step when it cannot be changed, but is told', async () => {
    sqs.on(ChangeMessageVisibilityCommand).rejects(new Error('no such receipt'))
    await expect(queues.showAgainIn('create', delivery, 5)).resolves.toBeUndefined()
    expect(failures).toEqual(['Error: no such receipt'])
  })
})

describe('queue: dead letters', () => {
  it('bear the body to the letter and what an operator filters by', async () => {
    await queues.bury('delete', ' {"as":"it came"} ', {
      code: 'StuckLock',
      uid: 'a',
      turn: 9,
      step: 'clone',
      failedAt: '2026-01-01T00:00:00.000Z',
      problem: { reason: 'stuck', hint: undefined, vmid: 5001 },
    })
    const text = (StringValue: string) => ({ DataType: 'String', StringValue })
    expect(sqs).toHaveReceivedCommandExactlyOnceWith(SendMessageCommand, {
      QueueUrl: 'https://sqs/delete-dlq',
      MessageBody: ' {"as":"it came"} ',
      MessageAttributes: {
        code: text('StuckLock'),
        uid: text('a'),
        turn: text('9'),
        step: text('clone'),
        failedAt: text('2026-01-01T00:00:00.000Z'),
        problem: text('{"reason":"stuck","vmid":5001}'),
      },
    })
  })

  it('have no attribute without a value, which SQS refuses', async () => {
    expect(Object.keys(await attributes({ uid: '' }))).toEqual(['code', 'failedAt', 'problem'])
    expect(await attributes({ turn: 0 })).toMatchObject({ turn: '0' })
  })

  it('have at most ten attributes, of 4 KiB and of characters that SQS takes, whatever a problem says', async () => {
    const text = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 60 }),
      fc.string({ unit: 'binary', minLength: 3000, maxLength: 6000 }),
      fc.constantFrom(
        '🚀'.repeat(3000),
        '\u0000\u001b[31m'.repeat(900),
        '\ufffe\uffff',
        '"'.repeat(5000),
        '\ud800'.repeat(2000),
      ),
    )
    const problems = fc.record({
      reason: text,
      hint: fc.option(text, { nil: undefined }),
      upid: fc.option(text, { nil: undefined }),
      vmid: fc.nat(),
    })
    await fc.assert(
      fc.asyncProperty(problems, async (problem) => {
        const sent = await attributes({ uid: 'a', turn: 1, step: 'clone', problem })
        expect(Object.keys(sent).length).toBeLessThanOrEqual(10)
        const { problem: shown = '' } = sent
        expect(Buffer.byteLength(shown)).toBeLessThanOrEqual(4096)
        expect(shown).toMatch(/^[\t\n\r\u{20}-\u{d7ff}\u{e000}-\u{fffd}\u{10000}-\u{10ffff}]*$/u)
        expect(JSON.parse(shown)).toHaveProperty('reason')
      }),
    )
  })

  it('cut a long reason between characters, and leave what else is known of the failure', async () => {
    const { problem = '' } = await attributes({
      problem: { reason: `a${'🚀'.repeat(3000)}`, hint: 'x', node: 'pve1' },
    })
    expect(JSON.parse(problem)).toEqual({ reason: `a${'🚀'.repeat(499)}…`, node: 'pve1' })
  })

  it('hold no control characters for a terminal to obey', async () => {
    const { problem = '' } = await attributes({
      problem: { reason: 'a\u001b[2Jb\u0000c\td', hint: 'x\u009b', node: 'pve1' },
    })
    expect(JSON.parse(problem)).toEqual({ reason: 'a [2Jb c\td', hint: 'x ', node: 'pve1' })
  })
})
