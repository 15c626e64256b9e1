import type { CommandModule } from 'yargs'
import type { LabOptions } from '../../local/lab.ts'
import { isNoGuestImage } from '../../local/no-guest-image.ts'
import type { GuestKind } from '../../local/simulated-cluster.ts'
import { connect, dataOption } from '../connection.ts'
import type { Context } from '../context.ts'
import { demonstrate, type Stage, takeDown, tellUse } from '../demonstration.ts'
import { aborted, untilSignal } from '../signals.ts'
import { Unmet, UsageError } from '../usage.ts'

/** `egress up`: the whole installation on one machine. */
export const upCommand = (context: Context) =>
  ({
    command: 'up',
    describe:
      'Run everything on this machine: queues, tables, functions and, by default, a simulated cluster',
    builder: (argv) =>
      argv
        .option('data', { ...dataOption, group: undefined, describe: 'folder where all data lives' })
        .option('config', {
          type: 'string',
          requiresArg: true,
          describe: 'drive the real clusters of this configuration instead of a simulated one',
        })
        .option('sim', {
          type: 'boolean',
          describe: 'simulate a cluster (the default without --config)',
          conflicts: 'config',
        })
        .option('version', {
          choices: [8, 9],
          describe: 'Proxmox VE version that is simulated',
          conflicts: 'config',
        })
        .option('guests', {
          choices: ['loopback', 'qemu'] as const,
          describe:
            'what its machines are: proxies in this process (the default), or real ones emulated by QEMU',
          conflicts: 'config',
        })
        .option('host-reset', {
          type: 'boolean',
          default: false,
          describe: 'the simulated hosts were reset since the last start: tasks that ran are dead',
        })
        .option('demo', {
          type: 'boolean',
          default: true,
          describe:
            'ask for one proxy, fetch a page through it and tell how to go on; --no-demo leaves it out',
        })
        .option('once', {
          type: 'boolean',
          default: false,
          describe: 'delete the demonstration proxy again, see nothing left, and end',
        })
        .option('log-level', {
          choices: ['debug', 'info', 'warn', 'error'],
          describe: 'of the functions (in up.log)',
        })
        .example('$0 up', 'a simulated cluster and a first proxy, until Ctrl-C')
        .example('$0 up --once', 'the same, and away with it')
        .example('$0 up --config config/homelab.yml', 'a real cluster, without any account'),
    handler: async (args) => {
      const { config } = args
      if (args.sim === false && config === undefined) throw new UsageError('--no-sim needs a --config')
      // Not left to yargs, for whom a default is as good as a flag.
      if (args.once && config !== undefined) {
        throw new UsageError('--once belongs to the demonstration, which runs on a simulated cluster only')
      }
      const stop = untilSignal()
      const { signal } = stop
      try {
        // Only here: no other command waits for emulators and a simulator to load.
        const { startUp } = await import('../../local/up.ts')
        const { telemetry } = await import('../../local/telemetry.ts')
        const up = await startUp({
          folder: args.data,
          clusters: config === undefined ? { lab: { ...labOf(args), onNotice: context.err } } : { config },
          telemetry: telemetry(context.env),
          ...(args.logLevel === undefined ? {} : { logLevel: args.logLevel }),
        })
        const connection = connect({ data: args.data }, {})
        try {
          context.err(`egress is up, data in ${args.data}, log in ${args.data}/up.log`)
          const stage = { up, connection, context, signal }
          const withDemo = args.demo && config === undefined
          if (args.once) {
            if (withDemo) await demonstrate(stage)
            return await takeDown(stage)
          }
          if (withDemo) await show(stage)
          context.err('\nCtrl-C ends it; its data stays, and the next start goes on from there.')
          await aborted(signal)
        } finally {
          connection.close()
          if (signal.aborted) context.err('\nstopping: what is being worked on is finished first')
          await up.close()
        }
      } catch (error) {
        if (isNoGuestImage(error)) throw new UsageError(error.message)
        // Called off by a person: as asked.
        if (!signal.aborted || (error as Error).name !== 'AbortError') throw error
      } finally {
        stop.release()
      }
    },
  }) satisfies CommandModule<object, Flags>

type Flags = {
  data: string
  config?: string | undefined
  sim?: boolean | undefined
  version?: number | undefined
  'host-reset': boolean
  guests?: GuestKind | undefined
  demo: boolean
  once: boolean
  'log-level'?: string | undefined
}

/** A demonstration that fails is no reason to take everything down: it is what one wants to look at. */
async function show(stage: Stage): Promise<void> {
  try {
    tellUse(stage, await demonstrate(stage))
  } catch (error) {
    if (!(error instanceof Unmet)) throw error
    stage.context.err(error.message)
  }
}

type LabFlags = { version?: number | undefined; hostReset: boolean; guests?: GuestKind | undefined }

const labOf = (args: LabFlags): LabOptions => ({
  hostReset: args.hostReset,
  ...(args.guests === undefined ? {} : { guests: args.guests }),
  ...(args.version === undefined ? {} : { version: args.version === 8 ? 8 : 9 }),
})
