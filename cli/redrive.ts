import { createHash } from 'node:crypto'
import { SendMessageCommand } from '@aws-sdk/client-sqs'
import type { Letter } from '../lib/letter.ts'
import { type Side, UnreadableRow } from '../lib/record.ts'
import { type Remedy, redriveOf } from '../lib/redrive.ts'
import type { Connection } from './connection.ts'
import type { Judged, LetterDesk } from './letter-desk.ts'
import { readStandings } from './rows.ts'

export type Redriven =
  | { kind: 'sent'; uid?: string; messageId?: string; why: string }
  | { kind: 'left'; uid?: string; messageId: string; why: string }

/** Runs again what letters stand for. A letter is removed only after what stands in for it was accepted. */
export function createRedrive(connection: Connection, desk: LetterDesk, tell: (result: Redriven) => void) {
  // What fails anew meanwhile is not driven round in circles: the turn that each row was redriven from, and each event.
  const sent = new Map<string, number>()
  const events = new Set<string>()

  async function send(side: Side, body: string, letter?: Letter): Promise<void> {
    const QueueUrl = connection.place(side === 'create' ? 'createQueueUrl' : 'deleteQueueUrl')
    const MessageAttributes = letter && traceOf(letter)
    await connection.sqs.send(
      new SendMessageCommand({
        QueueUrl,
        MessageBody: body,
        ...(MessageAttributes && { MessageAttributes }),
      }),
    )
  }

  async function resume(
    { side, message, why }: Extract<Remedy, { kind: 'resume' }>,
    letter?: Letter,
  ): Promise<void> {
    await send(side, JSON.stringify(message), letter)
    sent.set(message.uid, message.turn)
    tell({ kind: 'sent', uid: message.uid, why })
  }

  /** `mended` stands in for the body of a published event. */
  async function letter({ letter, remedy }: Judged, mended?: string): Promise<void> {
    const { uid, messageId, turn = 0 } = letter
    const about = { messageId, ...(uid === undefined ? {} : { uid }) }
    const failedAgain = () => tell({ kind: 'left', ...about, why: 'it failed again' })
    if (remedy.kind === 'again') {
      const hash = createHash('sha256').update(letter.body).digest('base64')
      if (events.has(hash)) return failedAgain()
      events.add(hash)
      await send(remedy.side, mended ?? letter.body, letter)
      tell({ kind: 'sent', ...about, why: mended === undefined ? 'sent again' : 'sent mended' })
    } else {
      const before = uid === undefined ? undefined : sent.get(uid)
      if (before !== undefined && turn > before) return failedAgain()
      if (before === undefined) {
        if (remedy.kind !== 'resume')
          return tell({ kind: 'left', ...about, why: `${remedy.kind}: ${remedy.why}` })
        await resume(remedy, letter)
      }
    }
    await desk.remove([letter])
  }

  return {
    letter,
    /** A failed row whose letter was lost, or never came. */
    async row(uid: string): Promise<boolean> {
      if (sent.has(uid)) return true
      const row = (await readStandings(connection.rows, connection.place('table'), [uid])).get(uid)
      if (row instanceof UnreadableRow) throw row
      const remedy = row && redriveOf(row)
      if (remedy) await resume(remedy)
      return remedy !== undefined
    },
  }
}

/** What is run again goes on with the trace that its letter is of. */
const traceOf = ({ attributes }: Letter) =>
  Object.fromEntries(
    ['traceparent', 'tracestate'].flatMap((name) => {
      const value = attributes[name]
      return value ? [[name, { DataType: 'String', StringValue: value }]] : []
    }),
  )
