import { createDeadLetters, type DeadLetters } from '../lib/dead-letters.ts'
import type { Letter } from '../lib/letter.ts'
import { type Remedy, remedyFor } from '../lib/redrive.ts'
import type { Connection } from './connection.ts'
import type { Context } from './context.ts'
import { readStandings } from './rows.ts'
import { untilSignal } from './signals.ts'
import { Unmet } from './usage.ts'

/** A letter, and what can be done about it as its row stands now. */
export type Judged = { letter: Letter; remedy: Remedy }

export type LetterDesk = {
  /** Shows every letter once, judged; Ctrl-C gives back what is held and ends the command. @throws {Unmet} */
  look(visit: (page: Judged[]) => Promise<void> | void): Promise<void>
  remove: DeadLetters['remove']
  /** Without a configuration at hand, what is the default there. */
  stallMs: number
}

const DEFAULT_STALL_SECONDS = 900

/** The dead letters of both queues, as the commands of `egress dlq` see them. */
export function openLetterDesk(connection: Connection, { isTTY }: Pick<Context, 'isTTY'>): LetterDesk {
  const letters = createDeadLetters({
    client: connection.sqs,
    urls: { create: connection.place('createDlqUrl'), delete: connection.place('deleteDlqUrl') },
  })
  const table = connection.place('table')
  const stallMs = (connection.config()?.timings.stallSeconds ?? DEFAULT_STALL_SECONDS) * 1000

  async function judged(page: Letter[]): Promise<Judged[]> {
    const uids = page.flatMap(({ kind, uid }) => (kind === 'event' || uid === undefined ? [] : [uid]))
    const rows = await readStandings(connection.rows, table, uids)
    return page.map((letter) => ({
      letter,
      remedy: remedyFor(letter, rows.get(letter.uid ?? ''), { now: Date.now(), stallMs }),
    }))
  }

  return {
    stallMs,
    remove: letters.remove,
    async look(visit) {
      const stop = untilSignal()
      const progress = isTTY ? progressLine() : undefined
      try {
        await letters.look({
          signal: stop.signal,
          visit: async (page) => visit(await judged(page)),
          ...(progress && { onProgress: progress.show }),
        })
      } catch (error) {
        if (!stop.signal.aborted) throw error
        throw new Unmet('called off; the letters that were being looked at are given back')
      } finally {
        progress?.clear()
        stop.release()
      }
    },
  }
}

/** One line that is written over, on a terminal. */
function progressLine() {
  const clear = () => void process.stderr.write('\r\u001b[K')
  return {
    clear,
    show: (seen: number, about: number) =>
      void process.stderr.write(
        `\r\u001b[Klooking at dead letters: ${seen} of about ${Math.max(seen, about)}`,
      ),
  }
}
