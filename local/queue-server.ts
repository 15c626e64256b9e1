import type { DatabaseSync } from 'node:sqlite'
import { buildApp } from 'fauxqs'

/** SQS and SNS on one loopback port. */
export type QueueServer = { port: number; close(): Promise<void> }

/**
 * Serves the SQS and SNS wire protocols with fauxqs, all state in SQLite under `folder`.
 *
 * fauxqs's own `startFauxqs` is not used: it listens on every interface of the machine, and what stands in the queues can
 * make and destroy VMs. Put together from its parts it listens on loopback only; what else it lacks is added here:
 * - addresses of queues come with a host of its invention (`sqs.<region>.localhost`) that does not resolve everywhere;
 * - a visibility of 0 loses the message (its SQL writes NULL into a NOT NULL column after the message left the memory);
 * - nothing ever expires, so dead letters and events would grow for ever;
 * - who held a message when this process was killed is dead, since one process holds them all: it is shown again at once.
 * The package is pinned to one exact version, and test/local/queue-server.test.ts holds each of these.
 */
export async function serveQueues(options: { folder: string; port: number }): Promise<QueueServer> {
  const { SqsStore, SnsStore, S3Store, PersistenceManager } = await parts()
  const disk = new PersistenceManager(options.folder)
  disk.updateMessageReady = (messageId) => {
    disk.db.prepare(`${SHOW} WHERE message_id = ?`).run(messageId)
  }
  disk.db.exec(SHOW)

  const stores = { sqsStore: new SqsStore(), snsStore: new SnsStore(), s3Store: new S3Store() }
  // Without one, the host that the caller used.
  stores.sqsStore.host = ''
  // Before the stores know the disk: what is loaded would be written again, and a written queue drops its messages.
  disk.loadSqsAndSns(stores.sqsStore, stores.snsStore)
  stores.sqsStore.persistence = disk
  stores.snsStore.persistence = disk
  for (const queue of stores.sqsStore.allQueues()) queue.persistence = disk

  // The stores are fauxqs's own, seen through the few words of them that are used here.
  const app = buildApp({ logger: false, stores: stores as never })
  const sweep = setInterval(() => expire(stores.sqsStore, Date.now()), 60_000)
  sweep.unref()
  try {
    await app.listen({ host: '127.0.0.1', port: options.port })
  } catch (error) {
    clearInterval(sweep)
    disk.close()
    throw error
  }
  const address = app.server.address()
  if (address === null || typeof address === 'string') throw new Error('no port was given')
  return {
    port: address.port,
    async close() {
      clearInterval(sweep)
      await app.close()
      disk.close()
    },
  }
}

const SHOW = 'UPDATE sqs_messages SET receipt_handle = NULL, visibility_deadline = NULL'

/** Removes what is older than its queue keeps messages. Source: SQS, MessageRetentionPeriod. */
export function expire(store: SqsStore, nowMs: number): void {
  for (const queue of store.allQueues()) {
    const oldestMs = nowMs - Number(queue.attributes.MessageRetentionPeriod ?? 345_600) * 1000
    const old = (message: Message) => message.sentTimestamp < oldestMs
    const gone = [...queue.messages, ...queue.delayedMessages].filter(old)
    if (gone.length === 0) continue
    queue.messages = queue.messages.filter((message) => !old(message))
    queue.delayedMessages = queue.delayedMessages.filter((message) => !old(message))
    for (const { messageId } of gone) queue.persistence?.deleteMessage(messageId)
  }
}

type Message = { messageId: string; sentTimestamp: number }
type Disk = {
  db: DatabaseSync
  updateMessageReady(messageId: string): void
  deleteMessage(messageId: string): void
  loadSqsAndSns(sqs: SqsStore, sns: SnsStore): void
  close(): void
}
type Queue = {
  attributes: Record<string, string>
  messages: Message[]
  delayedMessages: Message[]
  persistence?: Disk
}
type SqsStore = { host?: string; persistence?: Disk; allQueues(): Iterable<Queue> }
type SnsStore = { persistence?: Disk }

/** fauxqs exports only its finished server, so its parts are taken by their place in the package. */
async function parts(): Promise<{
  SqsStore: new () => SqsStore
  SnsStore: new () => SnsStore
  S3Store: new () => object
  PersistenceManager: new (folder: string) => Disk
}> {
  const from = (path: string) => import(new URL(path, import.meta.resolve('fauxqs')).href)
  const files = ['./sqs/sqsStore.js', './sns/snsStore.js', './s3/s3Store.js', './persistence.js']
  return Object.assign({}, ...(await Promise.all(files.map(from))))
}
