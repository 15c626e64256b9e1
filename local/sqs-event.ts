import type { Message, MessageAttributeValue } from '@aws-sdk/client-sqs'
import type { SQSEvent, SQSMessageAttribute, SQSRecord } from 'aws-lambda'
import type { QueueRef } from './emulators.ts'

/** The event that Lambda makes of a batch. Source: AWS Lambda, "Using Lambda with Amazon SQS", example event. */
export function sqsEvent(messages: readonly Message[], queue: QueueRef): SQSEvent {
  return { Records: messages.map((message) => record(message, queue)) }
}

function record(message: Message, { arn }: QueueRef): SQSRecord {
  const { MessageId, ReceiptHandle, Body, MD5OfBody, MD5OfMessageAttributes, Attributes } = message
  return {
    messageId: MessageId ?? '',
    receiptHandle: ReceiptHandle ?? '',
    body: Body ?? '',
    attributes: {
      ...Attributes,
      ApproximateReceiveCount: Attributes?.ApproximateReceiveCount ?? '1',
      SentTimestamp: Attributes?.SentTimestamp ?? '',
      SenderId: Attributes?.SenderId ?? '',
      ApproximateFirstReceiveTimestamp: Attributes?.ApproximateFirstReceiveTimestamp ?? '',
    },
    messageAttributes: Object.fromEntries(
      Object.entries(message.MessageAttributes ?? {}).map(([name, value]) => [name, attribute(value)]),
    ),
    md5OfBody: MD5OfBody ?? '',
    ...(MD5OfMessageAttributes === undefined ? {} : { md5OfMessageAttributes: MD5OfMessageAttributes }),
    eventSource: 'aws:sqs',
    eventSourceARN: arn,
    awsRegion: arn.split(':')[3] ?? '',
  }
}

function attribute({ DataType, StringValue, BinaryValue }: MessageAttributeValue): SQSMessageAttribute {
  return {
    ...(StringValue === undefined ? {} : { stringValue: StringValue }),
    ...(BinaryValue === undefined ? {} : { binaryValue: Buffer.from(BinaryValue).toString('base64') }),
    stringListValues: [],
    binaryListValues: [],
    dataType: DataType ?? 'String',
  }
}
