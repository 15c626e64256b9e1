import type { CommandModule } from 'yargs'
import { createEvents } from '../../functions/create/event.ts'
import { parse as parseDeletion } from '../../functions/delete/event.ts'
import { InvalidEvent, parseEvent } from '../../lib/events.ts'
import { isMeant, type Letter } from '../../lib/letter.ts'
import { checkRequest } from '../../lib/wish.ts'
import { type Connection, connect, withConnection } from '../connection.ts'
import type { Context } from '../context.ts'
import { type Judged, openLetterDesk } from '../letter-desk.ts'
import { createRedrive, type Redriven } from '../redrive.ts'
import { readInput } from '../request-body.ts'
import { refused, Unmet, UsageError } from '../usage.ts'
import { visible } from '../visible.ts'

type Flags = {
  data: string
  id?: string | undefined
  code?: string | undefined
  all: boolean
  body?: string | undefined
  json: boolean
}

/** `egress dlq redrive`: runs again what failed. */
export const redriveCommand = (context: Context) =>
  ({
    command: 'redrive [id]',
    describe: 'Run again what failed, once its cause is mended: one proxy, one message, a cause, or all',
    builder: (argv) =>
      withConnection(
        argv
          .positional('id', { type: 'string', describe: 'a uid, or the id of a message' })
          .option('code', { type: 'string', requiresArg: true, describe: 'all of this cause' })
          .option('all', { type: 'boolean', default: false, describe: 'all there are' })
          .option('body', {
            type: 'string',
            requiresArg: true,
            describe:
              'file with the mended event (- for standard input), in place of the one that was published',
          })
          .option('json', { type: 'boolean', default: false, describe: 'a JSON document a line' }),
      )
        .example('$0 dlq redrive shop-1a2b3c4d', 'run its failed step again')
        .example('$0 dlq redrive --code Forbidden', 'after a privilege was granted')
        .example('$0 dlq redrive 5d0c1b2e --body event.json', 'a published event, mended'),
    handler: async (args) => {
      const { id, code, all, body } = args
      if ([id, code, all || undefined].filter((one) => one !== undefined).length !== 1) {
        throw new UsageError('say what to redrive: a uid or message id, --code <code>, or --all')
      }
      if (body !== undefined && id === undefined)
        throw new UsageError('--body belongs to one message: say which')
      const mended = body === undefined ? undefined : readInput(body)
      const connection = connect(args, context.env)
      try {
        const desk = openLetterDesk(connection, context)
        const counts = { sent: 0, left: 0 }
        const redrive = createRedrive(connection, desk, (result) => {
          counts[result.kind] += 1
          context.out(args.json ? JSON.stringify(result) : lineOf(result))
        })
        if (mended !== undefined && id !== undefined) {
          await redriveMended(await theEvent(desk, id), mended, { connection, desk, redrive, id })
        } else {
          const isAsked = ({ letter }: Judged) =>
            all || (id === undefined ? letter.code === code : isMeant(letter, id))
          await desk.look(async (page) => {
            for (const judged of page.filter(isAsked)) await redrive.letter(judged)
          })
          // A failed row needs no letter to be run again.
          const isDone = counts.sent + counts.left > 0 || (id !== undefined && (await redrive.row(id)))
          if (!isDone)
            throw new Unmet(id === undefined ? 'no such dead letters' : `nothing of ${id} has failed`)
        }
        if (!args.json) context.err(`${counts.sent} sent, ${counts.left} left`)
        if (id !== undefined && counts.sent === 0) throw new Unmet('nothing was sent')
      } finally {
        connection.close()
      }
    },
  }) satisfies CommandModule<object, Flags>

type Desk = ReturnType<typeof openLetterDesk>

async function theEvent(desk: Desk, id: string): Promise<Letter> {
  const found: Letter[] = []
  await desk.look((page) => {
    found.push(
      ...page.map(({ letter }) => letter).filter((letter) => letter.kind === 'event' && isMeant(letter, id)),
    )
  })
  const [letter] = found
  if (!letter) throw new Unmet(`no published event among the dead letters is of ${id}`)
  if (found.length === 1) return letter
  const which = found.map(({ messageId }) => messageId).join(', ')
  throw new UsageError(`${found.length} published events are of ${id}; say which: ${which}`)
}

/** Checked as it will be on the queue, then sent; the letter goes once it is accepted. */
async function redriveMended(
  { side, messageId }: Letter,
  mended: string,
  {
    connection,
    desk,
    redrive,
  }: { connection: Connection; desk: Desk; redrive: ReturnType<typeof createRedrive>; id: string },
): Promise<void> {
  check(side, mended, connection)
  await desk.look(async (page) => {
    for (const judged of page) if (judged.letter.messageId === messageId) await redrive.letter(judged, mended)
  })
}

function check(side: Letter['side'], body: string, connection: Connection): void {
  try {
    if (side === 'delete') return void parseDeletion(body)
    const event = parseEvent(body, createEvents)
    const config = connection.config()
    const unmet = event.type === 'ProxyRequested' && config ? checkRequest(event, config) : []
    if (unmet.length > 0) throw new InvalidEvent(unmet)
  } catch (error) {
    if (error instanceof InvalidEvent) throw refused('the mended event cannot be sent', error.complaints)
    throw error
  }
}

const lineOf = ({ kind, uid, messageId, why }: Redriven) =>
  visible(`${uid ?? messageId ?? ''}  ${kind === 'left' ? 'left: ' : ''}${why}`)
