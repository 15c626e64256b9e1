import type { CommandModule } from 'yargs'
import { GC_REPORT, type Report } from '../../functions/gc/event.ts'
import { createReports } from '../../lib/reports.ts'
import { type Connection, connect, withConnection } from '../connection.ts'
import type { Context } from '../context.ts'
import { describeGc } from '../describe-gc.ts'
import { duration } from '../format.ts'
import { runHere } from '../run-here.ts'
import { Unmet } from '../usage.ts'

const whats = ['last', 'plan', 'run'] as const
type Args = { data: string; what: (typeof whats)[number]; json: boolean }

/** `egress gc`: what is left over, and what becomes of it. */
export const gcCommand = ({ env, out, err }: Context) =>
  ({
    command: 'gc [what]',
    describe: 'Find what is left over (VMs, seeds, disks, claims, lost messages) and have it mended',
    builder: (argv) =>
      withConnection(
        argv
          .positional('what', {
            choices: whats,
            default: 'last' as const,
            describe: 'the report of the last run, a plan that changes nothing, or a run now',
          })
          .option('json', { type: 'boolean', default: false, describe: 'the report as JSON' }),
      )
        .example('$0 gc', 'what the last run found')
        .example('$0 gc plan', 'what a run would do now')
        .example('$0 gc run', 'a run now, as the schedule runs it'),
    handler: async (args) => {
      const connection = connect(args, env)
      try {
        const report = await reportOf(args.what, connection, env)
        out(args.json ? JSON.stringify(report, null, 2) : describeGc(report))
        if (args.json) return
        err(`began ${duration(Date.now() - Date.parse(report.startedAt))} ago, took ${duration(report.ms)}`)
        const failed = report.actions.filter(({ state }) => state === 'failed').length
        if (failed > 0) throw new Unmet(`${failed} could not be done: the next run tries again`)
      } finally {
        connection.close()
      }
    },
  }) satisfies CommandModule<object, Args>

/** A plan and a run are the function itself, in this process: its clusters must be reachable from here. */
async function reportOf(what: Args['what'], connection: Connection, env: NodeJS.ProcessEnv): Promise<Report> {
  if (what !== 'last') {
    const request = { dryRun: what === 'plan' }
    return runHere(() => import('../../functions/gc/handler.ts'), request, { connection, env })
  }
  const kept = {
    client: connection.rows,
    table: connection.place('claimsTable'),
    partition: GC_REPORT,
  } as const
  const report = await createReports<Report>(kept).latest()
  if (report) return report
  throw new Unmet(
    'no run of gc has been reported yet. `egress gc plan` shows what one would do, `egress gc run` is one now; else it runs on a schedule',
  )
}
