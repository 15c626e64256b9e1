import { DeleteMessageCommand, type Message, ReceiveMessageCommand } from '@aws-sdk/client-sqs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createQueues, type Delivery, type Queues } from '../../lib/queue.ts'
import type { Side } from '../../lib/record.ts'
import { createMemoryQueues, type DeadLetter } from '../fakes/queues.ts'
import { NOW } from '../lib/a-row.ts'
import { type LocalAws, openLocalAws } from './local-aws.ts'

type Opened = {
  queues: Queues
  /** Waits until the queue shows a message. */
  receive(side: Side): Promise<Delivery>
  /** Whether the queue shows nothing now. */
  isSilent(side: Side): Promise<boolean>
  acknowledge(side: Side, delivery: Delivery): Promise<void>
  deadLetter(side: Side): Promise<Pick<DeadLetter, 'body' | 'obituary'>>
  close(): Promise<void>
}

const ours = { type: 'Continue', uid: 'a', turn: 4 }

function defineQueuesContract(name: string, open: () => Promise<Opened>) {
  describe(`queues contract: ${name}`, () => {
    let opened: Opened
    const bothSides: Side[] = ['create', 'delete']

    beforeAll(async () => {
      opened = await open()
    })
    afterAll(() => opened.close())

    async function received(side: Side): Promise<Delivery> {
      const delivery = await opened.receive(side)
      await opened.acknowledge(side, delivery)
      return delivery
    }

    it.each(bothSides)('brings a message on the %s queue, once it was acknowledged no more', async (side) => {
      await opened.queues.send(side, ours, { delaySeconds: 0 })
      const delivery = await received(side)
      expect(JSON.parse(delivery.body)).toEqual(ours)
      expect(delivery.receiveCount).toBe(1)
      expect(await opened.isSilent(side)).toBe(true)
      expect(await opened.isSilent(side === 'create' ? 'delete' : 'create')).toBe(true)
    })

    it('brings what a message and a dead letter carry of a trace', async () => {
      const carrier = { traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`, tracestate: 'shop=1,x=2' }
      await opened.queues.send('create', ours, { delaySeconds: 0, carrier })
      expect((await received('create')).carrier).toEqual(carrier)
      // All that there can be: SQS takes ten attributes.
      const whole = {
        code: 'Forbidden',
        uid: 'a',
        turn: 4,
        step: 'clone',
        failedAt: new Date(NOW).toISOString(),
      }
      await opened.queues.bury('create', 'x', { ...whole, problem: { reason: 'r' }, carrier })
      expect((await opened.deadLetter('create')).obituary).toMatchObject({ ...whole, carrier })
    })

    it('holds a message back for its delay', async () => {
      await opened.queues.send('create', ours, { delaySeconds: 0.2 })
      expect(await opened.isSilent('create')).toBe(true)
      expect((await received('create')).receiveCount).toBe(1)
    })

    it('hides what is being worked on, and shows it again when told to, counting', async () => {
      await opened.queues.send('create', ours, { delaySeconds: 0 })
      const first = await opened.receive('create')
      expect(await opened.isSilent('create')).toBe(true)
      await opened.queues.showAgainIn('create', first, 1)
      const second = await received('create')
      expect(second).toMatchObject({ messageId: first.messageId, body: first.body, receiveCount: 2 })
    })

    it('takes a time of nothing for a second', async () => {
      await opened.queues.send('create', ours, { delaySeconds: 0 })
      await opened.queues.showAgainIn('create', await opened.receive('create'), 0)
      expect(await opened.isSilent('create')).toBe(true)
      expect((await received('create')).receiveCount).toBe(2)
    })

    it('does nothing for a delivery that was acknowledged', async () => {
      await opened.queues.send('create', ours, { delaySeconds: 0 })
      const delivery = await received('create')
      await opened.queues.showAgainIn('create', delivery, 1)
      expect(await opened.isSilent('create')).toBe(true)
    })

    it.each(bothSides)(
      'buries a body among the dead letters of the %s queue, to the letter',
      async (side) => {
        const body = ' {"type": "ProxyReqested",\n "naïve": "€"} '
        const problem = {
          reason: 'type: got "ProxyReqested", wanted ProxyRequested',
          hint: 'look',
          vmid: 5001,
        }
        await opened.queues.bury(side, body, {
          code: 'InvalidEvent',
          uid: 'a',
          turn: 4,
          step: 'clone',
          failedAt: '2026-01-01T00:00:00.000Z',
          problem,
        })
        expect(await opened.deadLetter(side)).toEqual({
          body,
          obituary: {
            code: 'InvalidEvent',
            uid: 'a',
            turn: 4,
            step: 'clone',
            failedAt: '2026-01-01T00:00:00.000Z',
            problem,
          },
        })
      },
    )

    it('buries what is not even known by a uid', async () => {
      await opened.queues.bury('create', 'not JSON', { code: 'InvalidEvent', failedAt: 'now', problem: {} })
      expect(await opened.deadLetter('create')).toEqual({
        body: 'not JSON',
        obituary: { code: 'InvalidEvent', failedAt: 'now', problem: {} },
      })
    })
  })
}

defineQueuesContract('in memory', async () => {
  let now = NOW
  const queues = createMemoryQueues(() => now, 360_000)
  return {
    queues,
    async receive(side) {
      for (;;) {
        const [delivery] = queues.receive(side)
        if (delivery) return delivery
        const next = queues.nextAt()
        if (next === undefined) throw new Error('nothing will ever come')
        now = Math.max(now, next)
      }
    },
    isSilent: async (side) => queues.receive(side).length === 0,
    acknowledge: async (side, delivery) => queues.acknowledge(side, delivery),
    async deadLetter(side) {
      const index = queues.deadLetters.findIndex((letter) => letter.side === side)
      const [letter] = queues.deadLetters.splice(index, 1)
      if (!letter) throw new Error('no dead letter')
      return { body: letter.body, obituary: letter.obituary }
    },
    close: async () => {},
  }
})

/** The attributes of a message. */
const textsOf = ({ MessageAttributes = {} }: Message): Record<string, string> =>
  Object.fromEntries(Object.entries(MessageAttributes).map(([key, value]) => [key, value.StringValue ?? '']))

/** The real queues, read as the event source mapping reads them. */
function overSqs(aws: LocalAws): Opened {
  const { sqs, emulators } = aws
  const urls = {
    create: { queue: emulators.queues.create.url, deadLetters: emulators.queues.create.deadLetters.url },
    delete: { queue: emulators.queues.delete.url, deadLetters: emulators.queues.delete.deadLetters.url },
  }
  async function receiveFrom(QueueUrl: string, WaitTimeSeconds: number): Promise<Message | undefined> {
    const { Messages: messages = [] } = await sqs.send(
      new ReceiveMessageCommand({
        QueueUrl,
        WaitTimeSeconds,
        MessageSystemAttributeNames: ['ApproximateReceiveCount'],
        MessageAttributeNames: ['All'],
      }),
    )
    return messages[0]
  }
  async function remove(QueueUrl: string, ReceiptHandle: string | undefined): Promise<void> {
    await sqs.send(new DeleteMessageCommand({ QueueUrl, ReceiptHandle }))
  }
  return {
    queues: createQueues({ client: sqs, urls }),
    async receive(side) {
      const message = await receiveFrom(urls[side].queue, 10)
      if (!message) throw new Error('nothing came')
      return {
        messageId: message.MessageId ?? '',
        body: message.Body ?? '',
        receiptHandle: message.ReceiptHandle ?? '',
        receiveCount: Number(message.Attributes?.ApproximateReceiveCount),
        carrier: textsOf(message),
      }
    },
    isSilent: async (side) => (await receiveFrom(urls[side].queue, 0)) === undefined,
    acknowledge: (side, { receiptHandle }) => remove(urls[side].queue, receiptHandle),
    async deadLetter(side) {
      const message = await receiveFrom(urls[side].deadLetters, 10)
      if (!message) throw new Error('no dead letter')
      await remove(urls[side].deadLetters, message.ReceiptHandle)
      const { problem, turn, traceparent, tracestate, ...rest } = textsOf(message)
      return {
        body: message.Body ?? '',
        obituary: {
          code: '',
          failedAt: '',
          ...rest,
          ...(turn === undefined ? {} : { turn: Number(turn) }),
          problem: JSON.parse(problem ?? ''),
          ...(traceparent && tracestate && { carrier: { traceparent, tracestate } }),
        },
      }
    },
    close: () => aws.close(),
  }
}

defineQueuesContract('over SQS', async () => overSqs(await openLocalAws()))
