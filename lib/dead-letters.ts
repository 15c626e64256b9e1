import {
  ChangeMessageVisibilityBatchCommand,
  DeleteMessageBatchCommand,
  GetQueueAttributesCommand,
  ReceiveMessageCommand,
  type SQSClient,
} from '@aws-sdk/client-sqs'
import { counted } from './counted.ts'
import { type Letter, readLetter } from './letter.ts'
import type { Side } from './record.ts'

export type DeadLetters = {
  /**
   * Shows each letter of both queues once, a page at a time. A letter is hidden from others only while the look lasts: it is
   * given back at the end, also when the look is called off or fails, and comes back by itself when the process dies.
   */
  look(options: {
    /** May remove letters of its page; the others are given back. */
    visit(letters: Letter[]): Promise<void> | void
    signal?: AbortSignal
    onProgress?(seen: number, about: number): void
  }): Promise<void>
  remove(letters: readonly Letter[]): Promise<void>
}

const PAGE = 10
/** How many pages in a row may bring nothing new before the queue counts as seen: a queue of AWS is many. */
const STALE_PAGES = 3
const LEAST_HIDDEN_SECONDS = 30
const MOST_HIDDEN_SECONDS = 600
/** Letters that are surely read in a second, wherever the queue is. */
const LETTERS_A_SECOND = 50

export function createDeadLetters(options: {
  client: SQSClient
  urls: Record<Side, string>
  now?: () => number
}): DeadLetters {
  const { client, urls, now = Date.now } = options
  const removed = new Set<string>()

  async function remove(letters: readonly Letter[]): Promise<void> {
    for (const side of SIDES) {
      for (const page of pages(letters.filter((letter) => letter.side === side))) {
        const { Failed = [] } = await client.send(
          new DeleteMessageBatchCommand({ QueueUrl: urls[side], Entries: entries(page) }),
        )
        const failed = new Set(Failed.map(({ Id }) => Number(Id)))
        page.forEach((letter, index) => {
          if (!failed.has(index)) removed.add(letter.messageId)
        })
        if (failed.size > 0)
          throw new Error(`${counted(failed.size, 'letter')} could not be removed: ${Failed[0]?.Message}`)
      }
    }
  }

  /** Called off, it stops between two pages: what is on its way here already would be hidden and never given back. */
  async function lookAt(side: Side, look: Looking): Promise<void> {
    const { seen, visit, isOver } = look
    const hiddenSeconds = hiddenFor(look.about)
    const held = new Map<string, { letter: Letter; untilMs: number }>()
    try {
      for (let stale = 0; stale < STALE_PAGES && !isOver(); ) {
        const letters = await receive(side, hiddenSeconds)
        if (letters.length === 0) break
        const untilMs = now() + hiddenSeconds * 1000
        for (const letter of letters) held.set(letter.messageId, { letter, untilMs })
        const fresh = letters.filter(({ messageId }) => !seen.has(messageId))
        for (const { messageId } of fresh) seen.add(messageId)
        stale = fresh.length === 0 ? stale + 1 : 0
        if (fresh.length > 0 && !isOver()) await visit(fresh)
        forgetReturned(held, now())
      }
    } catch (error) {
      look.fail()
      throw error
    } finally {
      const left = [...held.values()].map(({ letter }) => letter)
      await giveBack(
        side,
        left.filter(({ messageId }) => !removed.has(messageId)),
      )
    }
  }

  async function receive(side: Side, VisibilityTimeout: number): Promise<Letter[]> {
    const { Messages = [] } = await client.send(
      new ReceiveMessageCommand({
        QueueUrl: urls[side],
        MaxNumberOfMessages: PAGE,
        VisibilityTimeout,
        // Without a wait only some of AWS's servers are asked, and an empty answer says nothing.
        WaitTimeSeconds: 1,
        MessageAttributeNames: ['All'],
        MessageSystemAttributeNames: ['SentTimestamp', 'ApproximateReceiveCount'],
      }),
    )
    return Messages.map((message) => readLetter(side, message))
  }

  /** One that came back by itself meanwhile cannot be given back, and need not be. */
  async function giveBack(side: Side, letters: readonly Letter[]): Promise<void> {
    for (const page of pages(letters)) {
      const Entries = entries(page).map((entry) => ({ ...entry, VisibilityTimeout: 0 }))
      await client.send(new ChangeMessageVisibilityBatchCommand({ QueueUrl: urls[side], Entries }))
    }
  }

  async function count(side: Side): Promise<number> {
    const { Attributes } = await client.send(
      new GetQueueAttributesCommand({
        QueueUrl: urls[side],
        AttributeNames: ['ApproximateNumberOfMessages', 'ApproximateNumberOfMessagesNotVisible'],
      }),
    )
    return Object.values(Attributes ?? {}).reduce((sum, text) => sum + Number(text), 0)
  }

  return {
    remove,
    async look({ visit, signal, onProgress }) {
      const [create, others] = await Promise.all(SIDES.map(count))
      const about = (create ?? 0) + (others ?? 0)
      const seen = new Set<string>()
      let hasFailed = false
      // The queues are read at the same time, their pages shown one after the other.
      let shown: Promise<void> = Promise.resolve()
      const looking: Looking = {
        about,
        seen,
        isOver: () => hasFailed || signal?.aborted === true,
        fail: () => {
          hasFailed = true
        },
        visit(page) {
          const turn = shown.then(() => visit(page)).then(() => onProgress?.(seen.size, about))
          shown = turn.catch(() => undefined)
          return turn
        },
      }
      const ends = await Promise.allSettled(SIDES.map((side) => lookAt(side, looking)))
      for (const end of ends) if (end.status === 'rejected') throw end.reason
      signal?.throwIfAborted()
    },
  }
}

type Looking = {
  /** Letters in both queues, roughly. */
  about: number
  /** By message id, over both queues. */
  seen: Set<string>
  visit(page: Letter[]): Promise<void>
  isOver(): boolean
  fail(): void
}

/** What is back by itself need not be given back. The map is in the order of arrival, but for what came twice. */
function forgetReturned(held: Map<string, { untilMs: number }>, nowMs: number): void {
  for (const [id, { untilMs }] of held) {
    if (untilMs > nowMs) return
    held.delete(id)
  }
}

const SIDES = ['create', 'delete'] as const

/** Long enough that no letter comes back before the last was seen, or it would be shown again and again. */
const hiddenFor = (letters: number) =>
  Math.min(MOST_HIDDEN_SECONDS, LEAST_HIDDEN_SECONDS + Math.ceil(letters / LETTERS_A_SECOND))

const entries = (page: readonly Letter[]) =>
  page.map(({ receiptHandle }, index) => ({ Id: String(index), ReceiptHandle: receiptHandle }))

function* pages<T>(list: readonly T[]): Iterable<T[]> {
  for (let from = 0; from < list.length; from += PAGE) yield list.slice(from, from + PAGE)
}
