import yargs from 'yargs'
import { ConfigError } from '../lib/config.ts'
import { escapeControls } from '../lib/escape-controls.ts'
import { UnreadableFile } from '../lib/read-text.ts'
import { FolderInUse } from '../local/lock.ts'
import { checkCommand } from './commands/check.ts'
import { deleteCommand } from './commands/delete.ts'
import { dlqCommand } from './commands/dlq.ts'
import { eventsCommand } from './commands/events.ts'
import { explainCommand } from './commands/explain.ts'
import { gcCommand } from './commands/gc.ts'
import { getCommand } from './commands/get.ts'
import { listCommand } from './commands/list.ts'
import { requestCommand } from './commands/request.ts'
import { schemaCommand } from './commands/schema.ts'
import { simCommand } from './commands/sim.ts'
import { tokenCommand } from './commands/token.ts'
import { upCommand } from './commands/up.ts'
import type { Context } from './context.ts'
import { refuseStageName, stageVariables } from './on-stage.ts'
import { refuseMisgiven } from './refuse-misgiven.ts'
import { Unmet, UsageError } from './usage.ts'

/** Runs one command line. Returns the exit code: 0 fine, 1 the wish was not met, 2 the command cannot be carried out as given. */
export async function main(argv: string[], env: NodeJS.ProcessEnv): Promise<number> {
  const context: Context = {
    env: { ...env },
    // Whatever is shown may hold what others wrote, and a terminal obeys it.
    out: (line) => void process.stdout.write(`${escapeControls(line)}\n`),
    err: (line) => void process.stderr.write(`${escapeControls(line)}\n`),
    isTTY: isLive(env),
  }
  // A reader that has seen enough (`egress list | head`) is no error.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(0)
    throw error
  })
  try {
    await commandLine(context).parseAsync(argv)
    return 0
  } catch (error) {
    return explain(error, context)
  }
}

/** A live display is drawn on standard output, so not into a pipe, and needs some room. */
const isLive = (env: NodeJS.ProcessEnv) =>
  process.stdout.isTTY === true &&
  process.stderr.isTTY === true &&
  process.stdout.columns >= 40 &&
  env.CI === undefined

/** A dot is a part of a word, and no path into an object. */
const PARSER = { 'dot-notation': false }

function commandLine(context: Context) {
  return yargs()
    .scriptName('egress')
    .parserConfiguration(PARSER)
    .usage(
      '$0 <command>\n\nForward proxies on Proxmox VE, from a wish to a working address and back to nothing.',
    )
    .command(upCommand(context))
    .command(requestCommand(context))
    .command(deleteCommand(context))
    .command(getCommand(context))
    .command(listCommand(context))
    .command(dlqCommand(context))
    .command(explainCommand(context))
    .command(eventsCommand(context))
    .command(checkCommand(context))
    .command(gcCommand(context))
    .command(tokenCommand(context))
    .command(simCommand(context))
    .command(schemaCommand(context))
    .option('stage', {
      type: 'string',
      requiresArg: true,
      describe:
        'a stage on AWS, by name: finds its queues and tables in its parameter /egress/stages/<stage>',
    })
    .check((given, known) => {
      // Typed as the aliases alone; they are all that is known of the flags.
      refuseMisgiven(given, known as unknown as Parameters<typeof refuseMisgiven>[1])
      return true
    }, true)
    .middleware(async ({ stage, _: [command] }) => {
      if (stage !== undefined) refuseStageName(stage)
      // A token is stored before its stage is there.
      if (stage !== undefined && command !== 'token') Object.assign(context.env, await stageVariables(stage))
    })
    .completion('completion', 'Print a completion script: add it to ~/.bashrc or ~/.zshrc')
    .example('$0 up', 'start everything on this machine, with a simulated cluster')
    .example(
      '$0 request --name hello --zone lab-1 --image debian-12 --wait',
      'ask for a proxy and wait for it',
    )
    .example('$0 list', 'see what there is')
    .demandCommand(1, 'Which command?')
    .recommendCommands()
    .strictCommands()
    .strict()
    .help()
    .version(false)
    .wrap(Math.min(110, process.stdout.columns ?? 100))
    .exitProcess(false)
    .fail((message, error, { showHelp }) => {
      // yargs calls it for its own complaints (some of them errors of its own class) and for what a command threw.
      if (error && error.name !== 'YError') throw error
      const complaint = message ?? error.message
      let next = 'See egress --help, or --help after the command.'
      // Who left out a word is shown which there are.
      if (/^(What|Which) .*\?$|^Not enough non-option arguments/.test(complaint)) {
        showHelp((help) => {
          next = `\n${help}`
        })
      }
      throw new UsageError(`${complaint}\n${next}`)
    })
}

function explain(error: unknown, { env, err }: Context): number {
  if (error instanceof Unmet) {
    err(error.message)
    return error.exitCode
  }
  if (
    error instanceof UsageError ||
    error instanceof ConfigError ||
    error instanceof FolderInUse ||
    error instanceof UnreadableFile ||
    isUnreadable(error)
  ) {
    err(`egress: ${error.message}`)
    return 2
  }
  const { message, stack } = error instanceof Error ? error : new Error(String(error))
  err(
    env.EGRESS_DEBUG ? `egress: ${stack}` : `egress: ${message || String(error)} (EGRESS_DEBUG=1 shows more)`,
  )
  return 1
}

/** A file that was named and cannot be opened; Node's message says which. */
const isUnreadable = (error: unknown): error is NodeJS.ErrnoException =>
  error instanceof Error && 'syscall' in error && error.syscall === 'open'
