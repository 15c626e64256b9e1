import type { CommandModule } from 'yargs'
import { momentOf } from '../../lib/attempt.ts'
import { foresee } from '../../lib/foresight.ts'
import { lookClosely, nothingSeen } from '../close-look.ts'
import { type Connection, connect, withConnection } from '../connection.ts'
import type { Context } from '../context.ts'
import { describeExplained, type Explained } from '../describe-close-look.ts'
import { findProxy } from '../find-proxy.ts'
import { countQueue } from '../queue-counts.ts'
import { claimsOf, type LeasedRow } from '../rows.ts'

const DEFAULT_STALL_SECONDS = 900

/** `egress explain`: what a proxy is doing, and what it will do next. */
export const explainCommand = ({ env, out }: Context) =>
  ({
    command: 'explain <id>',
    describe: 'Explain one proxy: its row, its VM as it is now, and what happens next and why',
    builder: (argv) =>
      withConnection(
        argv
          .positional('id', { type: 'string', demandOption: true, describe: 'a uid, or a name' })
          .option('json', { type: 'boolean', default: false, describe: 'as JSON' }),
      )
        .example('$0 explain shop-1a2b3c4d', 'why is it not ready yet?')
        .example('$0 explain shop', 'by its name'),
    handler: async (args) => {
      const connection = connect(args, env)
      try {
        const found = await findProxy(args.id, connection)
        const explained = await explain(found, connection, Date.now())
        out(args.json ? json(explained) : describeExplained(explained, Date.now()))
      } finally {
        connection.close()
      }
    },
  }) satisfies CommandModule<object, { data: string; id: string; json: boolean }>

async function explain({ row, lease }: LeasedRow, connection: Connection, now: number): Promise<Explained> {
  const { rows: client, place, sqs } = connection
  const config = connection.config()
  const [look, claims, create, others] = await Promise.all([
    config
      ? lookClosely(row, config)
      : nothingSeen('the cluster: no configuration, --config or EGRESS_CONFIG names it'),
    claimsOf(client, place('claimsTable'), row.uid),
    countQueue(sqs, place('createQueueUrl')),
    countQueue(sqs, place('deleteQueueUrl')),
  ])
  return {
    row,
    lease,
    look,
    claims,
    queues: { create, delete: others },
    next: foresee({ ...row, ...momentOf(row, now) }, look.view, lease, now),
    stallSeconds: config?.timings.stallSeconds ?? DEFAULT_STALL_SECONDS,
  }
}

/** Sets as lists. */
const json = (explained: Explained) =>
  JSON.stringify(explained, (_, value: unknown) => (value instanceof Set ? [...value] : value), 2)
