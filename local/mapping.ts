import { setTimeout as pause } from 'node:timers/promises'
import {
  ChangeMessageVisibilityBatchCommand,
  DeleteMessageBatchCommand,
  type Message,
  ReceiveMessageCommand,
  type SQSClient,
} from '@aws-sdk/client-sqs'
import { counted } from '../lib/counted.ts'
import { succeeded } from './batch-answer.ts'
import type { QueueRef } from './emulators.ts'
import { sqsEvent } from './sqs-event.ts'

export type Mapping = {
  /** Takes no more messages, and waits for the batches in flight. */
  stop(): Promise<void>
}

export type MappingOptions = {
  client: SQSClient
  queue: QueueRef
  /** Batches in the function's hands at once. */
  maximumConcurrency: number
  batchSize?: number
  /** How long a poll waits for a message; a stop waits as long. */
  pollSeconds?: number
  invoke(event: unknown): Promise<unknown>
  /** A batch that came back whole, or a call to the queue that failed. */
  onProblem(problem: { what: string; error: unknown }): void
}

/**
 * Feeds a function from a queue as Lambda's event source mapping does, with ReportBatchItemFailures on: what succeeded is
 * deleted; what did not, and the whole batch of a function that threw or ran out of time, is shown again by the queue when
 * its visibility ends. Source: AWS Lambda, "Using Lambda with Amazon SQS".
 */
export function mapQueue(options: MappingOptions): Mapping {
  const { client, queue, maximumConcurrency, batchSize = 10, pollSeconds = 2, invoke, onProblem } = options
  const QueueUrl = queue.url
  const running = new Set<Promise<void>>()
  let stopping = false

  const polling = poll()

  async function poll(): Promise<void> {
    while (!stopping) {
      if (running.size >= maximumConcurrency) {
        await Promise.race(running)
        continue
      }
      const messages = await receive()
      if (messages.length === 0) continue
      // Taken while the stop came: nobody will work on them here.
      if (stopping) return giveBack(messages)
      const batch = work(messages).finally(() => running.delete(batch))
      running.add(batch)
    }
  }

  async function receive(): Promise<Message[]> {
    try {
      const { Messages = [] } = await client.send(
        new ReceiveMessageCommand({
          QueueUrl,
          MaxNumberOfMessages: batchSize,
          WaitTimeSeconds: pollSeconds,
          MessageSystemAttributeNames: ['All'],
          MessageAttributeNames: ['All'],
        }),
      )
      return Messages
    } catch (error) {
      onProblem({ what: 'the queue did not answer', error })
      await pause(1000)
      return []
    }
  }

  async function work(messages: Message[]): Promise<void> {
    const ids = messages.map(({ MessageId }) => MessageId ?? '')
    try {
      const done = new Set(succeeded(await invoke(sqsEvent(messages, queue)), ids))
      await remove(messages.filter(({ MessageId }) => done.has(MessageId ?? '')))
    } catch (error) {
      onProblem({
        what: `${counted(messages.length, 'message goes', 'messages go')} back to the queue`,
        error,
      })
    }
  }

  async function remove(messages: Message[]): Promise<void> {
    if (messages.length === 0) return
    const { Failed = [] } = await client.send(
      new DeleteMessageBatchCommand({ QueueUrl, Entries: messages.map(entry) }),
    )
    for (const { Id, Message } of Failed) onProblem({ what: `entry ${Id} was not deleted`, error: Message })
  }

  async function giveBack(messages: Message[]): Promise<void> {
    const Entries = messages.map((message, index) => ({ ...entry(message, index), VisibilityTimeout: 0 }))
    await client
      .send(new ChangeMessageVisibilityBatchCommand({ QueueUrl, Entries }))
      .catch((error: unknown) => onProblem({ what: 'messages stay hidden until their time-out', error }))
  }

  return {
    async stop() {
      stopping = true
      await polling
      await Promise.all(running)
    },
  }
}

const entry = ({ ReceiptHandle }: Message, index: number) => ({ Id: String(index), ReceiptHandle })
