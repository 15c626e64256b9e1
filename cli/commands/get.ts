import type { CommandModule } from 'yargs'
import { connect, withConnection } from '../connection.ts'
import type { Context } from '../context.ts'
import { describeRow } from '../describe-row.ts'
import { readRow } from '../rows.ts'
import { Unmet } from '../usage.ts'

/** `egress get`: all that is known of one proxy. */
export const getCommand = ({ env, out }: Context) =>
  ({
    command: 'get <uid>',
    aliases: ['show'],
    describe: 'Show one proxy: where it is, how far, what went wrong',
    builder: (argv) =>
      withConnection(
        argv
          .positional('uid', { type: 'string', demandOption: true, describe: 'which one: see egress list' })
          .option('json', { type: 'boolean', default: false, describe: 'the whole record as JSON' }),
      )
        .example('$0 get hello-1a2b3c4d', 'for a person')
        .example('$0 get hello-1a2b3c4d --json', 'for a program'),
    handler: async (args) => {
      const connection = connect(args, env)
      try {
        const row = await readRow(connection.rows, connection.place('table'), args.uid)
        if (!row) throw new Unmet(`there is no proxy with the uid ${args.uid}`)
        out(args.json ? JSON.stringify(row, null, 2) : describeRow(row, Date.now()))
      } finally {
        connection.close()
      }
    },
  }) satisfies CommandModule<object, { data: string; uid: string; json: boolean }>
