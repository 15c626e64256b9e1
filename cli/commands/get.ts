import type { CommandModule } from 'yargs'
import { rowNow } from '../../lib/listing.ts'
import type { Row } from '../../lib/record.ts'
import { type Connection, connect, withConnection } from '../connection.ts'
import type { Context } from '../context.ts'
import { describeRow, stateText } from '../describe-row.ts'
import { findProxy } from '../find-proxy.ts'
import { follow } from '../follow.ts'
import { instant } from '../format.ts'
import { untilSignal } from '../signals.ts'
import { visible } from '../visible.ts'

/** `egress get`: all that is known of one proxy. */
export const getCommand = ({ env, out }: Context) =>
  ({
    command: 'get <id>',
    aliases: ['show'],
    describe: 'Show one proxy: where it is, how far, what went wrong',
    builder: (argv) =>
      withConnection(
        argv
          .positional('id', {
            type: 'string',
            demandOption: true,
            describe: 'a uid, or a name: see egress list',
          })
          .option('watch', {
            alias: 'w',
            type: 'boolean',
            default: false,
            describe: 'go on with a line for each change, until it is at rest or Ctrl-C',
          })
          .option('json', { type: 'boolean', default: false, describe: 'the whole record as JSON' }),
      )
        .example('$0 get hello-1a2b3c4d', 'for a person')
        .example('$0 get hello-1a2b3c4d --json', 'for a program')
        .example('$0 get hello-1a2b3c4d --watch', 'until it is ready, or somebody has to look'),
    handler: async (args) => {
      const connection = connect(args, env)
      try {
        const { row } = await findProxy(args.id, connection)
        const isShort = args.watch && args.json
        out(args.json ? JSON.stringify(row, null, isShort ? undefined : 2) : describeRow(row, Date.now()))
        if (args.watch)
          await watch(row, connection, (next) => out(args.json ? JSON.stringify(next) : changeText(next)))
      } finally {
        connection.close()
      }
    },
  }) satisfies CommandModule<object, { data: string; id: string; watch: boolean; json: boolean }>

/** Tells each change after `first`. At rest means that no message is on its way: Ready, Failed or Deleted. */
async function watch(first: Row, connection: Connection, tell: (row: Row) => void): Promise<void> {
  const stop = untilSignal()
  let told = changeKey(first)
  try {
    await follow({
      read: () => rowNow(connection.rows, connection.place('table'))(first.uid),
      onChange(row) {
        if (changeKey(row) === told) return
        told = changeKey(row)
        tell(row)
      },
      ended: (row) => (row?.step === undefined ? { kind: 'met' } : undefined),
      timeoutMs: Number.POSITIVE_INFINITY,
      signal: stop.signal,
    })
  } catch (error) {
    // Called off by a person: as asked.
    if (!stop.signal.aborted) throw error
  } finally {
    stop.release()
  }
}

/** What a person would call a change: not each message, nor each look. */
const changeKey = ({ phase, step, problem, endpoint, generation }: Row) =>
  JSON.stringify([phase, step, problem?.code, problem?.reason, endpoint, generation])

function changeText(row: Row): string {
  const { problem, endpoint } = row
  const told = [
    instant(Date.now()),
    stateText(row),
    endpoint,
    problem && `${problem.code}: ${problem.reason}`,
  ]
  return visible(told.filter((part) => part !== undefined).join('  '))
}
