import { describe, expect, it } from 'vitest'
import { expire } from '../../local/queue-server.ts'

describe('queue-server', () => {
  it('lets messages go once their queue has kept them long enough, ready and delayed, on disk too', () => {
    const deleted: string[] = []
    const message = (messageId: string, sentTimestamp: number) => ({ messageId, sentTimestamp })
    const queue = {
      attributes: { MessageRetentionPeriod: '60' },
      messages: [message('old', 39_000), message('young', 41_000)],
      delayedMessages: [message('old-delayed', 1), message('young-delayed', 40_000)],
      persistence: { deleteMessage: (id: string) => void deleted.push(id) } as never,
    }
    expire({ allQueues: () => [queue] }, 100_000)
    expect(queue.messages.map(({ messageId }) => messageId)).toEqual(['young'])
    expect(queue.delayedMessages.map(({ messageId }) => messageId)).toEqual(['young-delayed'])
    expect(deleted).toEqual(['old', 'old-delayed'])
  })
})
