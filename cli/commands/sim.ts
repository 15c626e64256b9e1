import type { ArgumentsCamelCase, CommandModule } from 'yargs'
import { isNoGuestImage } from '../../local/no-guest-image.ts'
import { openPorts } from '../../local/ports.ts'
import type { GuestKind } from '../../local/simulated-cluster.ts'
import { dataOption } from '../connection.ts'
import type { Context } from '../context.ts'
import { fittingConfig } from '../fitting-config.ts'
import { aborted, untilSignal } from '../signals.ts'
import { UsageError } from '../usage.ts'
import { faultsCommand, look, nodeCommand, qmCommand, rootCommand, type Where } from './sim-door.ts'

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
        .option('guests', {
          choices: ['loopback', 'qemu'] as const,
          describe:
            'what its machines are: proxies in this process (the default), or real ones emulated by QEMU',
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
        .command(rootCommand(context))
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

type Listening = Where & {
  listen: boolean
  version?: number | undefined
  nodes?: number | undefined
  state: string
  'host-reset': boolean
  deny?: string | undefined
  guests?: GuestKind | undefined
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
    ...(args.guests === undefined ? {} : { guests: args.guests }),
    onNotice: err,
  }).catch((error: unknown) => {
    throw args.deny === undefined && !isNoGuestImage(error) ? error : new UsageError((error as Error).message)
  })
  try {
    out(fittingConfig(cluster, args.guests))
    err('the simulated cluster is up; Ctrl-C ends it, its state stays')
    await aborted(stop.signal)
  } finally {
    await cluster.close()
    stop.release()
  }
}
