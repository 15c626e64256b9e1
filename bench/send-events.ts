import { SendMessageBatchCommand, type SQSClient } from '@aws-sdk/client-sqs'

/** Publishes events on a queue, ten a request. @throws {Error} when the queue did not take one of them */
export async function sendEvents(client: SQSClient, QueueUrl: string, events: object[]): Promise<void> {
  for (let first = 0; first < events.length; first += 10) {
    const Entries = events
      .slice(first, first + 10)
      .map((event, index) => ({ Id: String(index), MessageBody: JSON.stringify(event) }))
    const { Failed = [] } = await client.send(new SendMessageBatchCommand({ QueueUrl, Entries }))
    if (Failed.length > 0) throw new Error(`not sent: ${JSON.stringify(Failed)}`)
  }
}
