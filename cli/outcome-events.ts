import { randomBytes } from 'node:crypto'
import { type SNSClient, SubscribeCommand, UnsubscribeCommand } from '@aws-sdk/client-sns'
import {
  CreateQueueCommand,
  DeleteMessageCommand,
  DeleteQueueCommand,
  GetQueueAttributesCommand,
  type Message,
  ReceiveMessageCommand,
  SetQueueAttributesCommand,
  type SQSClient,
} from '@aws-sdk/client-sqs'
import * as z from 'zod'
import { shown } from '../lib/wanted.ts'

/** A queue of our own on the topic, for as long as we listen: nobody else's events are taken away. */
export async function openSubscription(options: {
  sqs: SQSClient
  sns: SNSClient
  topicArn: string
}): Promise<{ url: string; close(): Promise<void> }> {
  const { sqs, sns, topicArn } = options
  const name = `egress-listener-${randomBytes(6).toString('hex')}`
  const { QueueUrl: url = '' } = await sqs.send(
    new CreateQueueCommand({ QueueName: name, Attributes: { MessageRetentionPeriod: '3600' } }),
  )
  const removeQueue = () => sqs.send(new DeleteQueueCommand({ QueueUrl: url }))
  try {
    const { Attributes } = await sqs.send(
      new GetQueueAttributesCommand({ QueueUrl: url, AttributeNames: ['QueueArn'] }),
    )
    const arn = Attributes?.QueueArn ?? ''
    await sqs.send(
      new SetQueueAttributesCommand({ QueueUrl: url, Attributes: { Policy: policy(arn, topicArn) } }),
    )
    const { SubscriptionArn } = await sns.send(
      new SubscribeCommand({
        TopicArn: topicArn,
        Protocol: 'sqs',
        Endpoint: arn,
        Attributes: { RawMessageDelivery: 'true' },
        ReturnSubscriptionArn: true,
      }),
    )
    return {
      url,
      async close() {
        await sns.send(new UnsubscribeCommand({ SubscriptionArn }))
        await removeQueue()
      },
    }
  } catch (error) {
    await removeQueue()
    throw error
  }
}

/** Shows and removes what comes to the queue, until told to stop, until so many were shown, or until it is empty. */
export async function readQueue(options: {
  client: SQSClient
  url: string
  signal: AbortSignal
  show(event: Record<string, unknown>): void
  limit: number
  untilEmpty: boolean
}): Promise<void> {
  const { client, url: QueueUrl, signal, show, limit, untilEmpty } = options
  for (let count = 0; count < limit && !signal.aborted; ) {
    const messages = await receive(client, QueueUrl, Math.min(10, limit - count), untilEmpty ? 0 : 20, signal)
    if (untilEmpty && messages.length === 0) return
    for (const { Body = '', ReceiptHandle } of messages) {
      show(opened(Body))
      count += 1
      await client.send(new DeleteMessageCommand({ QueueUrl, ReceiptHandle }))
    }
  }
}

async function receive(
  client: SQSClient,
  QueueUrl: string,
  MaxNumberOfMessages: number,
  WaitTimeSeconds: number,
  abortSignal: AbortSignal,
): Promise<Message[]> {
  try {
    const { Messages = [] } = await client.send(
      new ReceiveMessageCommand({ QueueUrl, MaxNumberOfMessages, WaitTimeSeconds }),
      { abortSignal },
    )
    return Messages
  } catch (error) {
    if (abortSignal.aborted) return []
    throw error
  }
}

/** The standing queue gets the topic's envelope, ours the bare event. What is no event is shown as such: the next ones lie behind it. */
function opened(body: string): Record<string, unknown> {
  const document = objectIn(body)
  const event = document?.Type === 'Notification' ? objectIn(document.Message) : document
  return event ?? { type: 'NoEvent', body: shown(body) }
}

function objectIn(text: unknown): Record<string, unknown> | undefined {
  const parsed = Json.safeParse(text)
  return parsed.success ? parsed.data : undefined
}

const Json = z
  .string()
  .transform((text, context): unknown => {
    try {
      return JSON.parse(text)
    } catch {
      context.addIssue('no JSON')
      return z.NEVER
    }
  })
  .pipe(z.record(z.string(), z.unknown()))

const policy = (queueArn: string, topicArn: string) =>
  JSON.stringify({
    Version: '2012-10-17',
    Statement: [
      {
        Effect: 'Allow',
        Principal: { Service: 'sns.amazonaws.com' },
        Action: 'sqs:SendMessage',
        Resource: queueArn,
        Condition: { ArnEquals: { 'aws:SourceArn': topicArn } },
      },
    ],
  })
