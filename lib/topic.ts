import { PublishCommand, type SNSClient } from '@aws-sdk/client-sns'
import type { OutcomeEvent } from './events.ts'
import type { Row } from './record.ts'
import type { Carrier } from './tracing.ts'

export type Publish = (event: OutcomeEvent, carrier?: Carrier) => Promise<void>

/** Tells the world, at least once; subscribers filter on the attribute `eventType`. */
export function createPublish(client: SNSClient, topicArn: string): Publish {
  return async (event, carrier = {}) => {
    const attributes = Object.entries({ eventType: event.type, ...carrier })
    await client.send(
      new PublishCommand({
        TopicArn: topicArn,
        Message: JSON.stringify(event),
        MessageAttributes: Object.fromEntries(
          attributes.map(([name, value]) => [name, { DataType: 'String', StringValue: value }]),
        ),
      }),
    )
  }
}

/** What every event about a row says. The id is that of the row's turn as taken: the same on every retry. */
const about = ({ uid, generation, turn }: Row) => ({
  eventId: `${uid}:${generation}:${turn}`,
  uid,
  generation,
})

/** @throws {Error} for a row that is not complete, which no life cycle ends with */
export function readyEvent(row: Row, now: number): OutcomeEvent {
  const { name, endpoint, address, place } = row
  if (name === undefined || endpoint === undefined || address === undefined || !place) {
    throw new Error(`the row ${row.uid} is ready without an address`)
  }
  const { vmid, node, cluster } = place
  const timeToReadyMs = now - row.requestedAt
  return { type: 'ProxyReady', ...about(row), name, endpoint, address, vmid, node, cluster, timeToReadyMs }
}

/** @throws {Error} for a row that is not complete */
export function changedEvent(row: Row, previousAddress: string): OutcomeEvent {
  const { endpoint, address } = row
  if (endpoint === undefined || address === undefined)
    throw new Error(`the row ${row.uid} changed to no address`)
  return { type: 'ProxyChanged', ...about(row), endpoint, address, previousAddress }
}

/**
 * What the world does not know yet of a row that comes to rest as ready: that it is there, or that its address is another.
 * A proxy that was taken up again and is where it was is nothing new.
 */
export function readyNews(row: Row, now: number): OutcomeEvent | undefined {
  const { announced, generation, address } = row
  if (announced?.generation !== generation) return readyEvent(row, now)
  return announced.address === address ? undefined : changedEvent(row, announced.address)
}

export const deletedEvent = (row: Row, now: number): OutcomeEvent => ({
  type: 'ProxyDeleted',
  ...about(row),
  deletedAt: new Date(now).toISOString(),
})

/** @throws {Error} for a row without a problem */
export function failedEvent(row: Row): OutcomeEvent {
  const { problem, failedStep } = row
  if (!problem) throw new Error(`the row ${row.uid} failed without a problem`)
  return {
    type: 'ProxyFailed',
    ...about(row),
    code: problem.code,
    reason: problem.reason,
    ...(problem.hint === undefined ? {} : { hint: problem.hint }),
    ...(failedStep === undefined ? {} : { step: failedStep }),
    retriable: problem.code !== 'Rejected' && problem.code !== 'SeedRefused',
  }
}
