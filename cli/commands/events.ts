import type { CommandModule } from 'yargs'
import { connect, withConnection } from '../connection.ts'
import type { Context } from '../context.ts'
import { openSubscription, readQueue } from '../outcome-events.ts'
import { UsageError } from '../usage.ts'
import { visible } from '../visible.ts'

/** `egress events`: what the installation tells the world. */
export const eventsCommand = ({ env, out, err }: Context) =>
  ({
    command: 'events',
    aliases: ['tail'],
    describe: 'Show outcome events as they are published, until Ctrl-C',
    builder: (argv) =>
      withConnection(
        argv
          .option('json', { type: 'boolean', default: false, describe: 'one JSON document a line' })
          .option('take', {
            type: 'boolean',
            default: false,
            describe: 'take what the standing queue has kept (of the last day) instead, removing it, and end',
          })
          .option('count', { type: 'number', requiresArg: true, describe: 'end after so many events' }),
      )
        .example('$0 events', 'watch; others miss nothing, since it listens on a queue of its own')
        .example('$0 events --json --count 1', 'wait for the next one'),
    handler: async (args) => {
      if (args.count !== undefined && !(Number.isInteger(args.count) && args.count > 0))
        throw new UsageError(`--count: got ${args.count}, wanted a whole number, 1 or more`)
      const connection = connect(args, env)
      const stop = new AbortController()
      const end = () => stop.abort()
      for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, end)
      const show = (event: Record<string, unknown>) => out(args.json ? JSON.stringify(event) : line(event))
      const limit = args.count ?? Number.POSITIVE_INFINITY
      try {
        if (args.take) {
          const url = connection.place('eventsQueueUrl')
          await readQueue({ client: connection.sqs, url, signal: stop.signal, show, limit, untilEmpty: true })
          return
        }
        const { sqs, sns } = connection
        const subscription = await openSubscription({
          sqs,
          sns,
          topicArn: connection.place('topicArn'),
        })
        try {
          err('listening; Ctrl-C ends it')
          await readQueue({
            client: sqs,
            url: subscription.url,
            signal: stop.signal,
            show,
            limit,
            untilEmpty: false,
          })
        } finally {
          await subscription.close()
        }
      } finally {
        for (const signal of ['SIGINT', 'SIGTERM'] as const) process.removeListener(signal, end)
        connection.close()
      }
    },
  }) satisfies CommandModule<
    object,
    { data: string; json: boolean; take: boolean; count?: number | undefined }
  >

function line({ type, uid = '', ...event }: Record<string, unknown>): string {
  const rest = { ...event, eventId: undefined }
  const details = Object.entries(rest).flatMap(([key, value]) =>
    value === undefined ? [] : [`${key}=${value}`],
  )
  return visible(`${new Date().toISOString()} ${String(type).padEnd(13)} ${uid} ${details.join(' ')}`)
}
