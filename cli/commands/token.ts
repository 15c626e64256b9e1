import type { CommandModule } from 'yargs'
import type { Context } from '../context.ts'
import { rotateTokenCommand } from './token-rotate.ts'
import { setTokenCommand } from './token-set.ts'

/** `egress token`: the one secret that opens a cluster, stored and replaced. */
export const tokenCommand = (context: Context) =>
  ({
    command: 'token',
    describe: "Store a cluster's API token, or replace it without a gap",
    builder: (argv) =>
      argv
        .command(setTokenCommand(context))
        .command(rotateTokenCommand(context))
        .demandCommand(1, 'What about the token?')
        .example('$0 token set --cluster frankfurt --stage prod', 'asks for it, and does not show it')
        .example(
          '$0 token rotate --cluster frankfurt --stage prod',
          'step by step, with the lines to type on the cluster',
        ),
    handler: () => {},
  }) satisfies CommandModule
