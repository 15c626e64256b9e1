import type { Queues } from './queue.ts'
import type { Publish } from './topic.ts'
import { type Carrier, traceSend } from './tracing.ts'

/**
 * Queues with a span for each message that is sent, which carries the trace on. `apart` is for those that send about many
 * proxies in one run: each message begins a trace of its own, linked to the run's.
 */
export function tracedQueues<Q extends Pick<Queues, 'send'>>(queues: Q, { apart = false } = {}): Q {
  const from = apart ? 'a new trace' : 'the delivery'
  const traced: Pick<Queues, 'send'> & Partial<Queues> = {
    send(side, message, options) {
      const attributes = {
        ...about(side),
        'egress.message': 'type' in message ? String(message.type) : '',
        'egress.delay_seconds': options.delaySeconds,
      }
      return traceSend({ name: `send ${side}`, attributes, from }, (carrier) =>
        queues.send(side, message, { ...options, ...carried(carrier) }),
      )
    },
  }
  const { bury } = queues as Partial<Queues>
  if (bury)
    traced.bury = (side, body, obituary) => {
      const attributes = { ...about(`${side}-dlq`), 'egress.code': obituary.code }
      return traceSend({ name: `send ${side}-dlq`, attributes, from }, (carrier) =>
        bury(side, body, { ...obituary, ...carried(carrier) }),
      )
    }
  return { ...queues, ...traced }
}

/** The same for outcome events. Who hears of one goes on from there. */
export function tracedPublish(publish: Publish): Publish {
  return (event) => {
    const attributes = {
      'messaging.system': 'aws.sns',
      'messaging.operation.type': 'send',
      'messaging.operation.name': 'publish',
      'messaging.destination.name': 'outcomes',
      'egress.message': event.type,
    }
    return traceSend({ name: 'publish outcomes', attributes, from: 'here' }, (carrier) =>
      Object.keys(carrier).length === 0 ? publish(event) : publish(event, carrier),
    )
  }
}

const about = (queue: string) => ({
  'messaging.system': 'aws_sqs',
  'messaging.operation.type': 'send',
  'messaging.operation.name': 'send',
  'messaging.destination.name': queue,
})

const carried = (carrier: Carrier) => (Object.keys(carrier).length === 0 ? {} : { carrier })
