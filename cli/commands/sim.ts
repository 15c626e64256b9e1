import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { stringify } from 'yaml'
import type { ArgumentsCamelCase, CommandModule } from 'yargs'
import { openPorts } from '../../local/ports.ts'
import { readRun } from '../../local/run-file.ts'
import type { SimulatedCluster } from '../../local/simulated-cluster.ts'
import { dataOption } from '../connection.ts'
import type { Context } from '../context.ts'
import { aborted, untilSignal } from '../signals.ts'
import { Unmet, UsageError } from '../usage.ts'

/** `egress sim`: a simulated Proxmox VE cluster by hand, and a look into the one that runs. */
export const simCommand = (context: Context) =>
  ({
    command: 'sim',
    describe:
      'Run a simulated cluster by itself, or look into the running one and make things go wrong there',
    builder: (argv) =>
      argv
        .option('data', {
          ...dataOption,
          group: undefined,
          describe: 'data folder of the egress up that is meant',
        })
        .option('admin', {
          type: 'string',
          requiresArg: true,
          describe: "address of another simulator's door, as egress sim --listen prints it",
        })
        .option('listen', { type: 'boolean', default: false, describe: 'run one until Ctrl-C' })
        .option('version', { choices: [8, 9], describe: 'Proxmox VE version of it' })
        .option('nodes', {
          type: 'number',
          requiresArg: true,
          describe: 'how many nodes (3)',
        })
        .option('state', {
          type: 'string',
          default: '.egress/sim-listen',
          describe: 'folder where its state lives',
        })
        .option('host-reset', {
          type: 'boolean',
          default: false,
          describe: 'its hosts were reset since: tasks that ran are dead',
        })
        .option('deny', {
          type: 'string',
          requiresArg: true,
          describe: 'a privilege that its token lacks, such as VM.PowerMgmt',
        })
        .command(look('vms', 'List its VMs', context))
        .command(look('volumes', 'List its disks and ISO images', context))
        .command(look('tasks', 'List its tasks', context))
        .command(look('nodes', 'List its nodes and their state', context))
        .command(look('calls', 'List the last calls it has answered', context))
        .command(faultsCommand(context))
        .command(nodeCommand(context))
        .command(qmCommand(context))
        .example('$0 sim --listen --nodes 2 --deny VM.PowerMgmt', 'a cluster whose token lacks a privilege')
        .example('$0 sim vms', 'the VMs of the running egress up')
        .example('$0 sim node pve2 down', 'switch a node off')
        .example('$0 sim qm --node pve1 unlock 101', 'what one would type as root on the host'),
    handler: async (args) => {
      if (!args.listen)
        throw new UsageError('say --listen to run one, or what to look at: see egress sim --help')
      await listen(args, context)
    },
  }) satisfies CommandModule<object, Listening>

type Where = { data: string; admin?: string | undefined }
type Listening = Where & {
  listen: boolean
  version?: number | undefined
  nodes?: number | undefined
  state: string
  'host-reset': boolean
  deny?: string | undefined
}

async function listen(args: ArgumentsCamelCase<Listening>, { out, err }: Context): Promise<void> {
  // Only here: a look into the running one does not wait for a simulator to load.
  const { openCluster } = await import('../../local/simulated-cluster.ts')
  const stop = untilSignal()
  const cluster = await openCluster({
    folder: args.state,
    ports: openPorts(args.state),
    hostReset: args.hostReset,
    ...(args.version === undefined ? {} : { version: args.version === 8 ? 8 : 9 }),
    ...(args.nodes === undefined ? {} : { nodes: args.nodes }),
    ...(args.deny === undefined ? {} : { deny: args.deny }),
  }).catch((error: unknown) => {
    throw args.deny === undefined ? error : new UsageError((error as Error).message)
  })
  try {
    out(snippet(cluster))
    err('the simulated cluster is up; Ctrl-C ends it, its state stays')
    await aborted(stop.signal)
  } finally {
    await cluster.close()
    stop.release()
  }
}

/** A configuration that fits: save it, and `egress up --config` drives this cluster. */
function snippet({ endpoints, admin, tokenFile }: SimulatedCluster): string {
  const nodes = endpoints.map(({ node }) => node)
  const images = Object.fromEntries(nodes.map((node, index) => [node, 9000 + index]))
  const config = {
    deployment: 'byhand',
    clusters: {
      lab: {
        endpoints,
        token: { file: resolve(tokenFile) },
        pool: 'egress',
        storage: 'vmdata',
        isoStorage: 'local',
        bridge: 'vmbr0',
        addressRanges: ['127.0.0.0/8'],
        vmids: { from: 100, to: 999 },
        images: { 'debian-12': images },
      },
    },
    zones: { 'lab-1': { cluster: 'lab', nodes } },
    defaults: {
      size: { cores: 1, memoryMiB: 512, diskGiB: 4 },
      proxy: { protocol: 'http', port: 8080, allow: ['127.0.0.0/8'] },
    },
    verify: { probe: 'tcp', probeFrom: ['127.0.0.0/8'] },
    timings: { functionTimeoutSeconds: 20, maxClockSkewSeconds: 0, bootSeconds: 3, settleSeconds: 30 },
    parameters: { file: 'parameters.yml' },
  }
  return `# door for scripts: ${admin} (egress sim vms --admin ${admin})\n${stringify(config)}`
}

const look = (room: string, describe: string, context: Context) =>
  ({
    command: room,
    describe,
    builder: (argv) => argv,
    handler: async (args) => context.out(JSON.stringify(await ask(args, 'GET', `/${room}`), null, 2)),
  }) satisfies CommandModule<Where, Where>

const faultsCommand = ({ out }: Context) =>
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

const nodeCommand = ({ out }: Context) =>
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

const qmCommand = ({ out, err }: Context) =>
  ({
    command: 'qm [argv..]',
    describe: 'Run qm as root of a host would: unlock, destroy, config, list, status, stop, start, set',
    builder: (argv) =>
      argv
        .option('node', { type: 'string', demandOption: true, requiresArg: true, describe: 'the host' })
        // What is not ours is qm's.
        .parserConfiguration({ 'unknown-options-as-args': true })
        .positional('argv', { type: 'string', array: true, default: [], describe: "qm's own words" })
        .strict(false)
        .example('$0 sim qm --node pve1 destroy 101 --purge --destroy-unreferenced-disks 1', ''),
    handler: async ({ node, argv, ...where }) => {
      const answer = await ask(where, 'POST', '/qm', { node, argv: argv.map(String) })
      const { exitCode, stdout, stderr } = answer as { exitCode: number; stdout: string; stderr: string }
      if (stdout) out(stdout.trimEnd())
      if (exitCode !== 0) throw new Unmet(stderr.trimEnd())
      if (stderr) err(stderr.trimEnd())
    },
  }) satisfies CommandModule<Where, Where & { node: string; argv: string[] }>

async function ask(where: Where, method: string, path: string, body?: unknown): Promise<unknown> {
  const door = where.admin ?? readRun(where.data)?.sim?.admin
  if (door === undefined) {
    throw new UsageError(
      `no simulated cluster runs on ${where.data}: start egress up, or name another's door with --admin`,
    )
  }
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
