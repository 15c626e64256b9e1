import { GetQueueAttributesCommand, type SQSClient } from '@aws-sdk/client-sqs'

/** Roughly, as SQS tells it. */
export type QueueCounts = { visible: number; inFlight: number; delayed: number }

/** How much is in a queue, without taking anything out of it. */
export async function countQueue(client: SQSClient, url: string): Promise<QueueCounts> {
  const { Attributes = {} } = await client.send(
    new GetQueueAttributesCommand({
      QueueUrl: url,
      AttributeNames: [
        'ApproximateNumberOfMessages',
        'ApproximateNumberOfMessagesNotVisible',
        'ApproximateNumberOfMessagesDelayed',
      ],
    }),
  )
  return {
    visible: Number(Attributes.ApproximateNumberOfMessages ?? 0),
    inFlight: Number(Attributes.ApproximateNumberOfMessagesNotVisible ?? 0),
    delayed: Number(Attributes.ApproximateNumberOfMessagesDelayed ?? 0),
  }
}
