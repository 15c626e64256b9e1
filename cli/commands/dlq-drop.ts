import { userInfo } from 'node:os'
import { createInterface } from 'node:readline/promises'
import { type DynamoDBDocumentClient, PutCommand } from '@aws-sdk/lib-dynamodb'
import type { CommandModule } from 'yargs'
import { isMeant, type Letter } from '../../lib/letter.ts'
import { connect, withConnection } from '../connection.ts'
import type { Context } from '../context.ts'
import { type Judged, openLetterDesk } from '../letter-desk.ts'
import { Unmet, UsageError } from '../usage.ts'
import { visible } from '../visible.ts'

type Flags = { data: string; id?: string | undefined; overtaken: boolean; reason: string; yes: boolean }

/** How long what was dropped, why and by whom can be read up. */
const KEPT_DAYS = 400

/** `egress dlq drop`: puts dead letters away for good. */
export const dropCommand = (context: Context) =>
  ({
    command: 'drop [id]',
    describe: 'Put dead letters away for good, with a reason that is kept',
    builder: (argv) =>
      withConnection(
        argv
          .positional('id', { type: 'string', describe: 'a uid, or the id of a message' })
          .option('overtaken', {
            type: 'boolean',
            default: false,
            describe: 'all whose row has gone on without them',
          })
          .option('reason', { type: 'string', requiresArg: true, demandOption: true, describe: 'why' })
          .option('yes', { alias: 'y', type: 'boolean', default: false, describe: 'without asking' }),
      )
        .example('$0 dlq drop shop-1a2b3c4d --reason "its team is gone"', '')
        .example('$0 dlq drop --overtaken --reason "seen to by hand" --yes', ''),
    handler: async (args) => {
      const { id, overtaken, reason } = args
      if ((id === undefined) === !overtaken)
        throw new UsageError('say what to drop: a uid or message id, or --overtaken')
      if (reason.trim() === '')
        throw new UsageError('--reason: got nothing, wanted a sentence that explains it later')
      const isInteractive = process.stdin.isTTY === true && process.stderr.isTTY === true
      if (!args.yes && !isInteractive)
        throw new UsageError('nobody can be asked here: say --yes to drop without')
      const connection = connect(args, context.env)
      try {
        const desk = openLetterDesk(connection, context)
        const claims = connection.place('claimsTable')
        const isAsked = ({ letter, remedy }: Judged) =>
          id === undefined ? remedy.kind === 'overtaken' : isMeant(letter, id)
        const meant = new Set<string>()
        // Looked at first and then again: nothing is hidden from others while a person thinks.
        if (!args.yes) {
          await desk.look((page) => {
            for (const { letter, remedy } of page.filter((judged) => isAsked(judged))) {
              meant.add(letter.messageId)
              context.err(describe(letter, remedy))
            }
          })
          if (meant.size === 0) throw new Unmet(nothing(id))
          if (!(await agreed(`Drop ${meant.size === 1 ? 'it' : `these ${meant.size}`}?`)))
            throw new Unmet('nothing was dropped')
        }
        let dropped = 0
        await desk.look(async (page) => {
          for (const judged of page) {
            const { letter } = judged
            if (args.yes ? !isAsked(judged) : !meant.has(letter.messageId)) continue
            // Written down first: a letter that is gone without a trace is what a dead-letter queue is against.
            await record(connection.rows, claims, letter, reason)
            await desk.remove([letter])
            dropped += 1
            context.out(`${letter.messageId}  ${visible(letter.uid ?? '')}  dropped`)
          }
        })
        if (dropped === 0) throw new Unmet(nothing(id))
      } finally {
        connection.close()
      }
    },
  }) satisfies CommandModule<object, Flags>

const nothing = (id: string | undefined) =>
  id === undefined ? 'no dead letter is overtaken' : `no dead letter is of ${id}`

function describe({ code, uid = '', messageId, problem }: Letter, remedy: Judged['remedy']): string {
  const state = 'why' in remedy ? ` [${remedy.kind}: ${remedy.why}]` : ''
  return visible(`${messageId}  ${code}  ${uid}  ${visible(problem.reason ?? '', 120)}${state}`)
}

async function agreed(question: string): Promise<boolean> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr })
  try {
    return /^y(es)?$/i.test((await terminal.question(`${question} [y/N] `)).trim())
  } finally {
    terminal.close()
  }
}

/** In the claims table, in a partition of its own and without an owner: no release frees it. The body stays out, for it may hold a secret. */
async function record(
  client: DynamoDBDocumentClient,
  table: string,
  letter: Letter,
  reason: string,
): Promise<void> {
  const { messageId, side, code, uid, turn, step, diedAt, problem } = letter
  const about = { uid, turn, step, problem: problem.reason }
  const known = Object.entries(about).filter(([, value]) => value !== undefined)
  const Item = {
    partition: 'dropped',
    sort: messageId,
    queue: side,
    code,
    ...Object.fromEntries(known),
    diedAt,
    droppedAt: Date.now(),
    droppedBy: userInfo().username,
    reason,
    purgeAt: Math.floor(Date.now() / 1000) + KEPT_DAYS * 86_400,
  }
  await client.send(new PutCommand({ TableName: table, Item }))
}
