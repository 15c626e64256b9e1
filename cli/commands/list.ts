import type { CommandModule } from 'yargs'
import type { Row } from '../../lib/record.ts'
import { connect, withConnection } from '../connection.ts'
import type { Context } from '../context.ts'
import { stateText } from '../describe-row.ts'
import { duration } from '../format.ts'
import { allPhases, listRows, type Phases } from '../rows.ts'
import { columns } from '../table.ts'
import { UsageError } from '../usage.ts'

/** `egress list`: all proxies but those that are gone. */
export const listCommand = ({ env, out, err }: Context) =>
  ({
    command: 'list',
    aliases: ['ls'],
    describe: 'List the proxies',
    builder: (argv) =>
      withConnection(
        argv
          .option('phase', {
            array: true,
            choices: allPhases,
            describe: 'only these (default: all but Deleted)',
          })
          .option('all', {
            type: 'boolean',
            default: false,
            describe: 'deleted ones too',
          })
          .option('zone', {
            type: 'string',
            requiresArg: true,
            describe: 'only those asked for in this zone',
          })
          .option('label', {
            type: 'string',
            array: true,
            nargs: 1,
            describe: 'only those with this label: key=value, or key for any value; repeat it for more',
          })
          .option('json', { type: 'boolean', default: false, describe: 'as a JSON list of records' }),
      )
        .example('$0 list', 'what there is')
        .example('$0 list --phase Failed', 'what needs a person')
        .example('$0 list --zone lab-1 --label team=search', 'whose they are')
        .example('$0 list --json', 'for a program'),
    handler: async (args) => {
      const connection = connect(args, env)
      try {
        if (args.all && args.phase) throw new UsageError('--all and --phase exclude each other')
        const standing = allPhases.filter((phase) => args.all || phase !== 'Deleted')
        const phases: Phases = args.phase ?? standing
        const all = await listRows(connection.rows, connection.place('table'), phases, (error) =>
          err(error.message),
        )
        const rows = all.filter((row) => isIn(row, args.zone) && bears(row, args.label ?? []))
        if (args.json) return out(JSON.stringify(rows, null, 2))
        if (rows.length === 0) return err('no proxies')
        out(table(rows, Date.now()))
      } finally {
        connection.close()
      }
    },
  }) satisfies CommandModule<
    object,
    {
      data: string
      phase?: Phases | undefined
      all: boolean
      zone?: string | undefined
      label?: string[] | undefined
      json: boolean
    }
  >

const isIn = ({ spec }: Row, zone: string | undefined) => zone === undefined || spec?.zone === zone

function bears({ spec }: Row, wanted: string[]): boolean {
  const labels = spec?.labels ?? {}
  return wanted.every((text) => {
    const [key = '', ...value] = text.split('=')
    return Object.hasOwn(labels, key) && (value.length === 0 || labels[key] === value.join('='))
  })
}

function table(rows: Row[], now: number): string {
  const lines: string[][] = []
  for (const row of rows) {
    const { place, problem } = row
    lines.push([
      row.uid,
      stateText(row),
      row.endpoint ?? '',
      place ? `${place.vmid} on ${place.node}` : '',
      duration(now - row.requestedAt),
      problem?.code ?? '',
    ])
  }
  return columns(['UID', 'STATE', 'PROXY', 'VM', 'AGE', 'PROBLEM'], lines)
}
