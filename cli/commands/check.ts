import type { CommandModule } from 'yargs'
import { REPORTS, type Report, type Round, reportKey, type Summary } from '../../functions/check/event.ts'
import { type Config, loadConfig } from '../../lib/config.ts'
import { createReports } from '../../lib/reports.ts'
import { configFindings } from '../config-findings.ts'
import { type Connection, connect, withConnection } from '../connection.ts'
import type { Context } from '../context.ts'
import { countsText, describeRound } from '../describe-check.ts'
import { duration } from '../format.ts'
import { accessLines, nameLines, roleLines } from '../role-lines.ts'
import { runHere } from '../run-here.ts'
import { Unmet, UsageError } from '../usage.ts'

type Args = {
  data: string
  config?: string | undefined
  stored: boolean
  role: boolean
  pve?: 8 | 9 | undefined
  'token-id': string
  strict: boolean
  all: boolean
  json: boolean
}

/** `egress check`: is everything there that proxies take, and are they still what they were? */
export const checkCommand = (context: Context) =>
  ({
    command: 'check',
    describe: 'Look at clusters, nodes and ready proxies; say what is wrong and what to type',
    builder: (argv) =>
      withConnection(
        argv
          .option('all', {
            type: 'boolean',
            default: false,
            describe: 'what is well and what could not be seen, too',
          })
          .option('strict', { type: 'boolean', default: false, describe: 'exit with 1 for warnings' })
          .option('json', { type: 'boolean', default: false, describe: 'as JSON' })
          .option('stored', {
            type: 'boolean',
            default: false,
            describe: 'the report of the last round instead of a round now',
          })
          .option('role', {
            type: 'boolean',
            default: false,
            describe: 'print the pveum lines that grant what the functions’ calls take',
          })
          .option('pve', {
            choices: [8, 9] as const,
            describe: 'with --role: only for this version of Proxmox VE',
          })
          .option('token-id', {
            type: 'string',
            requiresArg: true,
            default: 'egress@pve!ctl',
            describe: 'with --role: the token, without its secret',
          }),
      )
        .option('config', {
          type: 'string',
          requiresArg: true,
          describe: 'check this configuration and the files that it names, and no cluster',
        })
        .example('$0 check', 'a round now, as the schedule runs it; exit code 2 for a failure')
        .example('$0 check --strict --json', 'for a monitor')
        .example('$0 check --config prod.yml', 'before it is deployed')
        .example('$0 check --role --pve 9', 'what to grant on Proxmox VE 9'),
    handler: async (args) => {
      if (args.stored && (args.role || args.config !== undefined))
        throw new UsageError('--stored shows a round on clusters: it excludes --role and --config')
      if (args.role) return printRoles(args, context)
      if (args.config !== undefined) return checkFile(args.config, args, context)
      const connection = connect(args, context.env)
      try {
        const round = args.stored ? await lastRound(connection) : await roundNow(connection, context)
        show(round, args, context)
      } finally {
        connection.close()
      }
    },
  }) satisfies CommandModule<object, Args>

const roundNow = (connection: Connection, { env }: Context): Promise<Round> =>
  runHere(() => import('../../functions/check/handler.ts'), {}, { connection, env })

async function lastRound(connection: Connection): Promise<Round> {
  const kept = { client: connection.rows, table: connection.place('claimsTable'), partition: REPORTS }
  const summary = await createReports<Summary>(kept).latest()
  if (!summary)
    throw new Unmet('no round of check has been stored yet: it runs on a schedule, or by `egress check`')
  const reports = await Promise.all(
    summary.clusters.map((cluster) => createReports<Report>({ ...kept, sort: reportKey(cluster) }).latest()),
  )
  return { summary, reports: reports.filter((report) => report !== undefined) }
}

/** @throws {Unmet} with exit code 2 for failures, 1 for warnings where they count */
function show(round: Round, { json, all, strict }: Args, { out, err }: Context): void {
  const { summary } = round
  out(json ? JSON.stringify(round, null, 2) : describeRound(round, { all }))
  if (!json)
    err(`looked ${duration(Date.now() - Date.parse(summary.startedAt))} ago, for ${duration(summary.ms)}`)
  const { failure, warning } = summary.counts
  if (failure > 0) throw new Unmet(countsText(summary.counts), 2)
  if (strict && warning > 0) throw new Unmet(countsText(summary.counts))
}

function checkFile(path: string, { strict, json }: Args, { out }: Context): void {
  const findings = configFindings(loadConfig(path))
  if (json) out(JSON.stringify({ config: path, findings }, null, 2))
  else if (findings.length === 0) out(`${path} can be used`)
  else out(findings.map((one) => `${one.level}: ${one.path}: ${one.text}`).join('\n'))
  const count = (level: string) => findings.filter((one) => one.level === level).length
  const counts = { warning: count('warning'), failure: count('failure') }
  if (counts.failure > 0) throw new Unmet(countsText(counts), 2)
  if (strict && counts.warning > 0) throw new Unmet(countsText(counts))
}

function printRoles(args: Args, { env, out }: Context): void {
  const config = args.config === undefined ? connectedConfig(args, env) : loadConfig(args.config)
  if (!/^[^\s'=!]+@[^\s'=!]+![^\s'=!]+$/.test(args['token-id']))
    throw new UsageError(`--token-id: got ${args['token-id']}, wanted user@realm!name`)
  const majors = args.pve === undefined ? ([8, 9] as const) : [args.pve]
  out(['# once for each Proxmox VE cluster, as root on one of its nodes', ...rolesText(majors)].join('\n'))
  for (const [name, cluster] of Object.entries(config?.clusters ?? { '': undefined })) {
    const templates = [
      ...new Set(Object.values(cluster?.images ?? {}).flatMap((byNode) => Object.values(byNode))),
    ]
    const names = cluster ? nameLines({ ...cluster, templates }, args['token-id']) : []
    const hasPool = cluster === undefined || cluster.pool !== undefined
    const title =
      name === '' ? '# where (the names are those of docs/proxmox-setup.md)' : `# where, on cluster ${name}`
    out(
      [
        '',
        title,
        ...names,
        ...accessLines(true, { hasPool }),
        '',
        '# optional: lets a check see everything',
        ...accessLines(false, { hasPool }),
      ].join('\n'),
    )
  }
}

function rolesText(majors: readonly (8 | 9)[]): string[] {
  const [first = 9] = majors
  const shared = new Set(
    majors.map((major) => roleLines(major, true)).reduce((a, b) => a.filter((line) => b.includes(line))),
  )
  return [
    ...majors.flatMap((major) => [
      `# on Proxmox VE ${major}`,
      ...roleLines(major, true).filter((line) => majors.length === 1 || !shared.has(line)),
    ]),
    ...(majors.length === 1 ? [] : ['# on both', ...shared]),
    '# optional: lets a check see everything',
    ...roleLines(first, false),
  ]
}

/** The configuration of the installation that is at hand, if any. */
function connectedConfig(args: Args, env: NodeJS.ProcessEnv): Config | undefined {
  const connection = connect(args, env)
  try {
    return connection.config()
  } finally {
    connection.close()
  }
}
