import { SendMessageCommand } from '@aws-sdk/client-sqs'
import type { CommandModule } from 'yargs'
import { rowNow } from '../../lib/listing.ts'
import { hashSpec } from '../../lib/spec.ts'
import { connect, withConnection } from '../connection.ts'
import type { Context } from '../context.ts'
import { follow, requestEnded } from '../follow.ts'
import { duration } from '../format.ts'
import { showProgress } from '../progress.ts'
import { type RequestFlags, requestBody } from '../request-body.ts'
import { Unmet } from '../usage.ts'

const what = 'What to ask for:'
const text = (describe: string) => ({ type: 'string', requiresArg: true, describe, group: what }) as const
const list = (describe: string) => ({ ...text(describe), array: true, nargs: 1 }) as const

/** `egress request`: asks for a proxy. */
export const requestCommand = ({ env, out, err, isTTY }: Context) =>
  ({
    command: 'request',
    describe: 'Ask for a proxy',
    builder: (argv) =>
      withConnection(
        argv
          .option('file', {
            ...text('a request as JSON or YAML, - for standard input; flags win over it'),
            alias: 'f',
          })
          .option('name', { ...text('what a person calls it: letters, digits and hyphens'), alias: 'n' })
          .option('zone', text('where: a zone of the configuration'))
          .option('image', text('from which image'))
          .option('uid', text('your own id for it, for ever (default: the name and 8 hex digits)'))
          .option('generation', text('a higher one replaces the proxy of this uid (default: 1)'))
          .option('cores', text('processor cores'))
          .option('memory-mib', text('memory in MiB'))
          .option('disk-gib', text('disk in GiB'))
          .option('port', text('port the proxy listens on'))
          .option('allow', list('address range that may use it, such as 10.0.0.0/8; repeat it for more'))
          .option('username', text('ask clients for this user'))
          .option('password-parameter', text('name of the stored parameter that holds the password'))
          .option('user-data', text('file with extra cloud-config for the VM'))
          .option('ttl', text('seconds until it is deleted by itself'))
          .option('label', list('key=value, kept with it; repeat it for more'))
          .option('wait', {
            type: 'boolean',
            default: false,
            describe: 'wait until it is ready, showing each step',
          })
          .option('timeout', {
            type: 'number',
            default: 900,
            describe: 'seconds to wait at most, with --wait',
          })
          .option('json', { type: 'boolean', default: false, describe: 'print the result as JSON' }),
      )
        .example(
          '$0 request --name hello --zone lab-1 --image debian-12 --wait',
          'ask, and wait for its address',
        )
        .example('$0 request -f proxy.yml --allow 192.0.2.0/24', 'a file, but for other clients')
        .example('cat proxy.json | $0 request -f -', 'from another program'),
    handler: async (args) => {
      const connection = connect(args, env)
      try {
        const config = connection.config()
        if (!config) err('not checked against a configuration: --config or EGRESS_CONFIG names it')
        const body = requestBody(args, config)
        const url = connection.place('createQueueUrl')
        await connection.sqs.send(
          new SendMessageCommand({ QueueUrl: url, MessageBody: JSON.stringify(body) }),
        )
        const { uid, generation, name, spec } = body
        if (!args.wait) return out(args.json ? JSON.stringify({ uid, generation }) : uid)

        if (!args.json) out(uid)
        const table = connection.place('table')
        const end = await showProgress('create', { line: err, isTTY }, (onChange) =>
          follow({
            onChange,
            read: () => rowNow(connection.rows, table)(uid),
            ended: requestEnded({ generation, specHash: hashSpec(name, spec) }),
            timeoutMs: args.timeout * 1000,
          }),
        )
        if (args.json) out(JSON.stringify(end.row ?? { uid, generation }))
        if (end.kind === 'unmet') throw new Unmet(`${uid}: ${end.reason}`)
        const { endpoint = '', readyAt = 0, requestedAt = 0 } = end.row ?? {}
        if (!args.json) out(endpoint)
        err(`ready after ${duration(readyAt - requestedAt)}`)
      } finally {
        connection.close()
      }
    },
  }) satisfies CommandModule<object, RequestFlags & Flags>

type Flags = { data: string; wait: boolean; timeout: number; json: boolean }
