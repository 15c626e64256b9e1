import { SendMessageCommand } from '@aws-sdk/client-sqs'
import type { CommandModule } from 'yargs'
import { ProxyDeletionRequested } from '../../functions/delete/event.ts'
import { rowNow } from '../../lib/listing.ts'
import { parseWith } from '../../lib/wanted.ts'
import { type Connection, connect, withConnection } from '../connection.ts'
import type { Context } from '../context.ts'
import { findProxy } from '../find-proxy.ts'
import { deletionEnded, follow } from '../follow.ts'
import { showProgress } from '../progress.ts'
import { refused, Unmet, UsageError } from '../usage.ts'

/** `egress delete`: wishes a proxy gone. */
export const deleteCommand = ({ env, out, err, isTTY }: Context) =>
  ({
    command: 'delete <uid>',
    describe: 'Delete a proxy, for ever: its uid is not used again',
    builder: (argv) =>
      withConnection(
        argv
          .positional('uid', { type: 'string', demandOption: true, describe: 'which one: see egress list' })
          .option('wait', { type: 'boolean', default: false, describe: 'wait until nothing of it is left' })
          .option('timeout', {
            type: 'number',
            default: 900,
            describe: 'seconds to wait at most, with --wait',
          }),
      ).example('$0 delete hello-1a2b3c4d --wait', 'delete it and see it gone'),
    handler: async (args) => {
      const parsed = parseWith(ProxyDeletionRequested, { type: 'ProxyDeletionRequested', uid: args.uid })
      if ('complaints' in parsed) throw refused('this deletion cannot be sent', parsed.complaints)
      const { uid } = parsed.value
      const connection = connect(args, env)
      try {
        if (connection.has('table')) await refuseName(uid, connection)
        const url = connection.place('deleteQueueUrl')
        await connection.sqs.send(
          new SendMessageCommand({ QueueUrl: url, MessageBody: JSON.stringify(parsed.value) }),
        )
        if (!args.wait) return
        const table = connection.place('table')
        const end = await showProgress('delete', { line: err, isTTY }, (onChange) =>
          follow({
            onChange,
            read: () => rowNow(connection.rows, table)(uid),
            ended: deletionEnded,
            timeoutMs: args.timeout * 1000,
          }),
        )
        if (end.kind === 'unmet') throw new Unmet(`${uid}: ${end.reason}`)
        out(`${uid} is gone`)
      } finally {
        connection.close()
      }
    },
  }) satisfies CommandModule<object, { data: string; uid: string; wait: boolean; timeout: number }>

/** What is deleted is said by its uid; a name would be taken for the uid of a proxy that may come one day. */
async function refuseName(uid: string, connection: Connection): Promise<void> {
  const meant = await findProxy(uid, connection).catch((error: unknown) => {
    if (error instanceof Unmet) return undefined
    throw error
  })
  if (!meant || meant.row.uid === uid) return
  const other = meant.row.uid
  throw new UsageError(
    `there is no proxy with the uid ${uid}; the proxy of that name is ${other}: egress delete ${other}`,
  )
}
