import { PublishCommand, SNSClient } from '@aws-sdk/client-sns'
import { mockClient } from 'aws-sdk-client-mock'
import 'aws-sdk-client-mock-vitest/extend'
import { describe, expect, it } from 'vitest'
import { OutcomeEvent } from '../../lib/events.ts'
import type { Problem } from '../../lib/record.ts'
import { createPublish, deletedEvent, failedEvent, readyEvent, readyNews } from '../../lib/topic.ts'
import { aRow, NOW } from './a-row.ts'

const problem: Problem = {
  code: 'NoSpace',
  reason: 'full',
  hint: 'make room',
  firstAt: NOW,
  lastAt: NOW,
  times: 1,
  permanent: true,
}
const ready = aRow({
  generation: 2,
  turn: 17,
  address: '10.0.0.1',
  endpoint: 'http://10.0.0.1:3128',
  requestedAt: NOW - 90_000,
})

describe('outcome events of a row', () => {
  it('say where a ready proxy is, and how long it took since it was asked for', () => {
    expect(readyEvent(ready, NOW)).toEqual({
      type: 'ProxyReady',
      eventId: 'a:2:17',
      uid: 'a',
      generation: 2,
      name: 'alpha',
      endpoint: 'http://10.0.0.1:3128',
      address: '10.0.0.1',
      vmid: 5001,
      node: 'pve1',
      cluster: 'lab',
      timeToReadyMs: 90_000,
    })
  })

  it('say of one that is ready again only what the world does not know', () => {
    const announced = { generation: 2, address: '10.0.0.1' }
    expect(readyNews(ready, NOW)?.type).toBe('ProxyReady')
    expect(readyNews({ ...ready, announced }, NOW)).toBeUndefined()
    expect(readyNews({ ...ready, announced: { ...announced, generation: 1 } }, NOW)?.type).toBe('ProxyReady')
    expect(readyNews({ ...ready, announced: { ...announced, address: '10.0.0.9' } }, NOW)).toEqual({
      type: 'ProxyChanged',
      eventId: 'a:2:17',
      uid: 'a',
      generation: 2,
      endpoint: 'http://10.0.0.1:3128',
      address: '10.0.0.1',
      previousAddress: '10.0.0.9',
    })
  })

  it('say why one failed, at which step, and whether the same request may yet work', () => {
    const failed = aRow({ turn: 9, problem, failedStep: 'clone' })
    expect(failedEvent(failed)).toEqual({
      type: 'ProxyFailed',
      eventId: 'a:1:9',
      uid: 'a',
      generation: 1,
      code: 'NoSpace',
      reason: 'full',
      hint: 'make room',
      step: 'clone',
      retriable: true,
    })
    for (const code of ['Rejected', 'SeedRefused'] as const) {
      expect(failedEvent({ ...failed, problem: { ...problem, code } })).toMatchObject({ retriable: false })
    }
  })

  it('are events by their own schema', () => {
    const all = [readyEvent(ready, NOW), failedEvent(aRow({ problem })), deletedEvent(aRow(), NOW)]
    for (const event of all) expect(OutcomeEvent.parse(event)).toEqual(event)
  })

  it('have the same id on every retry', () => {
    expect(deletedEvent(aRow(), NOW)).toMatchObject({ eventId: 'a:1:3' })
    expect(deletedEvent(aRow(), NOW + 60_000)).toMatchObject({ eventId: 'a:1:3' })
  })

  it('cannot be made of a row that is not what it says', () => {
    expect(() => readyEvent(aRow(), NOW)).toThrow('ready without an address')
    expect(() => failedEvent(aRow())).toThrow('failed without a problem')
  })
})

describe('topic', () => {
  it('publishes an event with its type to filter on', async () => {
    const sns = mockClient(SNSClient)
    const event = readyEvent(ready, NOW)
    await createPublish(new SNSClient({ region: 'x' }), 'arn:aws:sns:x:1:outcomes')(event)
    expect(sns).toHaveReceivedCommandExactlyOnceWith(PublishCommand, {
      TopicArn: 'arn:aws:sns:x:1:outcomes',
      Message: JSON.stringify(event),
      MessageAttributes: { eventType: { DataType: 'String', StringValue: 'ProxyReady' } },
    })
  })

  it('has the trace of an event beside its type', async () => {
    const sns = mockClient(SNSClient)
    const publish = createPublish(new SNSClient({ region: 'x' }), 'arn:aws:sns:x:1:outcomes')
    await publish(readyEvent(ready, NOW), { traceparent: '00-a-b-01' })
    expect(sns).toHaveReceivedCommandExactlyOnceWith(PublishCommand, {
      MessageAttributes: {
        eventType: { DataType: 'String', StringValue: 'ProxyReady' },
        traceparent: { DataType: 'String', StringValue: '00-a-b-01' },
      },
    })
  })

  it('throws what SNS threw, so that the row is not saved as told', async () => {
    const sns = mockClient(SNSClient)
    sns.on(PublishCommand).rejects(new Error('throttled'))
    const publish = createPublish(new SNSClient({ region: 'x' }), 'arn:aws:sns:x:1:outcomes')
    await expect(publish(readyEvent(ready, NOW))).rejects.toThrow('throttled')
  })
})
