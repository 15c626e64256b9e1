import { readFileSync } from 'node:fs'
import type { Argv, CommandModule } from 'yargs'
import { shown } from '../../lib/wanted.ts'
import { readRun } from '../../local/run-file.ts'
import type { Context } from '../context.ts'
import { Unmet, UsageError } from '../usage.ts'

// What `egress sim` does through the door of a simulator that runs already.

export type Where = { data: string; admin?: string | undefined }

/** Prints one of the simulator's lists as it is. */
export const look = (room: string, describe: string, context: Context) =>
  ({
    command: room,
    describe,
    builder: (argv) => argv,
    handler: async (args) => context.out(JSON.stringify(await ask(args, 'GET', `/${room}`), null, 2)),
  }) satisfies CommandModule<Where, Where>

export const faultsCommand = ({ out }: Context) =>
  ({
    command: 'faults',
    describe: 'List what is set to go wrong, add to it or clear it',
    builder: (argv) =>
      argv
        .option('add', { type: 'string', requiresArg: true, describe: 'a rule as JSON, or a file with one' })
        .option('remove', { type: 'string', requiresArg: true, describe: 'id of a rule' })
        .option('clear', { type: 'boolean', default: false, describe: 'remove all rules' })
        .example(
          `$0 sim faults --add '{"match":{"path":"/clone$"},"times":3,"effect":{"kind":"answer","answer":{"status":596,"reason":"Broken pipe"}}}'`,
          'the next three clones are answered 596',
        ),
    handler: async (args) => {
      if (args.clear) await ask(args, 'DELETE', '/faults')
      if (args.remove !== undefined) await ask(args, 'DELETE', `/faults/${encodeURIComponent(args.remove)}`)
      if (args.add !== undefined) await ask(args, 'POST', '/faults', ruleIn(args.add))
      out(JSON.stringify(await ask(args, 'GET', '/faults'), null, 2))
    },
  }) satisfies CommandModule<
    Where,
    Where & { add?: string | undefined; remove?: string | undefined; clear: boolean }
  >

const nodeStates = ['up', 'down', 'unreachable', 'hung', 'no-quorum', 'reset'] as const

export const nodeCommand = ({ out }: Context) =>
  ({
    command: 'node <node> <state>',
    describe: 'Put a node into a state',
    builder: (argv) =>
      argv
        .positional('node', { type: 'string', demandOption: true, describe: 'such as pve1' })
        .positional('state', {
          choices: nodeStates,
          demandOption: true,
          describe: 'reset: power-cycle the host',
        })
        .example('$0 sim node pve2 down', 'switch it off'),
    handler: async ({ node, state, ...where }) => {
      const wish = state === 'reset' ? { reset: true } : { state }
      out(JSON.stringify(await ask(where, 'POST', `/nodes/${encodeURIComponent(node)}`, wish), null, 2))
    },
  }) satisfies CommandModule<Where, Where & { node: string; state: (typeof nodeStates)[number] }>

export const qmCommand = (context: Context) =>
  ({
    command: 'qm [argv..]',
    describe: 'Run qm as root of a host would: unlock, destroy, config, list, status, stop, start, set',
    builder: (argv) =>
      shellOptions(argv).example(
        '$0 sim qm --node pve1 destroy 101 --purge --destroy-unreferenced-disks 1',
        '',
      ),
    handler: (args) => type('/qm', args, context),
  }) satisfies CommandModule<Where, Where & Shell>

export const rootCommand = (context: Context) =>
  ({
    command: 'root [argv..]',
    describe:
      'Type a line as root on a host, of qm, pveum, pvesm, pvesh, pvenode, pvecm; several with && between',
    builder: (argv) =>
      shellOptions(argv)
        .example(
          "$0 sim root --node pve1 pveum acl delete /storage/local --roles EgressSeeds --users egress@pve --tokens 'egress@pve!ctl'",
          'take a right away',
        )
        .example(
          '$0 sim root --node pve1 "qm unlock 101 && qm destroy 101 --purge"',
          'a line as a hint has it',
        ),
    handler: (args) => type('/root', args, context),
  }) satisfies CommandModule<Where, Where & Shell>

type Shell = { node: string; argv: string[] }

const shellOptions = (argv: Argv<Where>) =>
  argv
    .option('node', { type: 'string', demandOption: true, requiresArg: true, describe: 'the host' })
    // What is not ours is that program's.
    .parserConfiguration({ 'unknown-options-as-args': true })
    .positional('argv', { type: 'string', array: true, default: [], describe: 'the words as typed there' })
    .strict(false)

async function type(path: string, { node, argv, ...where }: Where & Shell, { out, err }: Context) {
  const answer = await ask(where, 'POST', path, { node, argv: argv.map(String) })
  const { exitCode, stdout, stderr } = answer as { exitCode: number; stdout: string; stderr: string }
  if (stdout) out(stdout.trimEnd())
  if (exitCode !== 0) throw new Unmet(stderr.trimEnd())
  if (stderr) err(stderr.trimEnd())
}

async function ask(where: Where, method: string, path: string, body?: unknown): Promise<unknown> {
  const door = where.admin ?? readRun(where.data)?.sim?.admin
  if (door === undefined) {
    throw new UsageError(
      `no simulated cluster runs on ${where.data}: start egress up, or name another's door with --admin`,
    )
  }
  if (!/^https?:/.test(URL.parse(door)?.protocol ?? ''))
    throw new UsageError(`--admin: got ${shown(door)}, wanted an address such as http://127.0.0.1:8006`)
  const answer = await fetch(`${door}${path}`, {
    method,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const content: unknown = await answer.json()
  if (!answer.ok) throw new UsageError((content as { error: string }).error)
  return content
}

function ruleIn(text: string): unknown {
  const json = text.trimStart().startsWith('{') ? text : readFileSync(text, 'utf8')
  try {
    return JSON.parse(json)
  } catch (cause) {
    throw new UsageError(`the rule is not JSON: ${(cause as Error).message}`)
  }
}
