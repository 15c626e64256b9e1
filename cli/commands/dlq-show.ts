import type { CommandModule } from 'yargs'
import { escapeControls } from '../../lib/escape-controls.ts'
import { isMeant } from '../../lib/letter.ts'
import { type Connection, connect, withConnection } from '../connection.ts'
import type { Context } from '../context.ts'
import { describeLetter } from '../describe-letter.ts'
import { findProxy } from '../find-proxy.ts'
import { type Judged, openLetterDesk } from '../letter-desk.ts'
import { readableRow } from '../rows.ts'
import { Unmet, UsageError } from '../usage.ts'

type Flags = { data: string; id: string; raw: boolean; json: boolean }

/** `egress dlq show`: all that is known of one dead letter. */
export const showLetterCommand = (context: Context) =>
  ({
    command: 'show <id>',
    describe: 'Show the dead letters of one proxy, or one message: reason, hint, history, what to type',
    builder: (argv) =>
      withConnection(
        argv
          .positional('id', { type: 'string', demandOption: true, describe: 'a uid, or the id of a message' })
          .option('raw', {
            type: 'boolean',
            default: false,
            describe: 'print the body to the letter and nothing else: it may hold a secret of its publisher',
          })
          .option('json', { type: 'boolean', default: false, describe: 'as a JSON list' }),
      )
        .example('$0 dlq show shop-1a2b3c4d', 'for a person')
        .example('$0 dlq show 5d0c1b2e --raw > event.json', 'what was published, to be mended'),
    handler: async (args) => {
      if (args.raw && args.json) throw new UsageError('--raw and --json exclude each other')
      const connection = connect(args, context.env)
      try {
        const found: Judged[] = []
        const others = new Set<string | undefined>()
        await openLetterDesk(connection, context).look((page) => {
          found.push(...page.filter(({ letter }) => isMeant(letter, args.id)))
          for (const { letter } of page) others.add(letter.uid)
        })
        const [first] = found
        if (!first) {
          const uid = others.size === 0 ? args.id : await uidMeant(args.id, connection)
          const hint = others.has(uid) ? `; of ${uid} there is: egress dlq show ${uid}` : ''
          throw new Unmet(`no dead letter is of ${args.id}${hint}`)
        }
        if (args.raw) {
          if (found.length > 1)
            throw new UsageError(`${found.length} letters are of ${args.id}; say which: ${ids(found)}`)
          // To the letter for a file, and for a screen as JSON may say it as well.
          const { body } = first.letter
          process.stdout.write(process.stdout.isTTY ? escapeControls(body) : body)
          return
        }
        found.sort((a, b) => a.letter.diedAt - b.letter.diedAt)
        const table = connection.place('table')
        const uids = new Set(found.flatMap(({ letter: { uid } }) => (uid === undefined ? [] : [uid])))
        const rows = new Map(
          await Promise.all(
            [...uids].map(async (uid) => [uid, await readableRow(connection.rows, table, uid)] as const),
          ),
        )
        if (args.json) {
          const documents = found.map(({ letter: { body, receiptHandle: _, ...letter }, remedy }) => ({
            ...letter,
            ...(letter.kind === 'event' ? {} : { body }),
            remedy,
            row: rows.get(letter.uid ?? ''),
          }))
          return context.out(JSON.stringify(documents, null, 2))
        }
        // The row is the same for all letters of a uid: once is enough.
        const texts = found.map((judged, index) => {
          const isLast = index === found.length - 1
          return describeLetter(judged, isLast ? rows.get(judged.letter.uid ?? '') : undefined, Date.now())
        })
        context.out(texts.join('\n\n'))
      } finally {
        connection.close()
      }
    },
  }) satisfies CommandModule<object, Flags>

const ids = (found: Judged[]) => found.map(({ letter }) => letter.messageId).join(', ')

/** The uid of the proxy that a person means; what is neither a uid nor the name of one proxy, as it is. */
async function uidMeant(id: string, connection: Connection): Promise<string> {
  try {
    return (await findProxy(id, connection)).row.uid
  } catch (error) {
    if (error instanceof Unmet || error instanceof UsageError) return id
    throw error
  }
}
