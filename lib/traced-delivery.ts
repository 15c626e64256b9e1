import type { Delivery } from './queue.ts'
import type { Side } from './record.ts'
import { failed, traceDelivery } from './tracing.ts'
import type { Decided } from './worker.ts'

/**
 * A delivery and what was decided about it as a span: named by the step that was run, or by the message. `continues` is for
 * messages of ours, which go on from what another began.
 */
export function tracedDelivery(
  side: Side,
  delivery: Delivery,
  message: { type: string; continues: boolean },
  work: () => Promise<Decided>,
): Promise<Decided> {
  const { carrier, messageId, receiveCount } = delivery
  const { type, continues } = message
  const attributes = {
    'messaging.system': 'aws_sqs',
    'messaging.operation.type': 'process',
    'messaging.operation.name': 'process',
    'messaging.destination.name': side,
    'messaging.message.id': messageId,
    'egress.message': type,
    'egress.attempt': receiveCount,
  }
  return traceDelivery({ ...(carrier && { carrier }), continues, attributes }, async (span) => {
    const decided = await work()
    const { uid, step, turn, outcome, code } = decided
    span.updateName(type === 'Continue' && step !== undefined ? `step ${step}` : `process ${type}`)
    span.setAttributes({
      'egress.outcome': outcome,
      ...(uid !== undefined && { 'egress.uid': uid }),
      ...(step !== undefined && { 'egress.step': step }),
      ...(turn !== undefined && { 'egress.turn': turn }),
    })
    if (code !== undefined) failed(span, code)
    return decided
  })
}
