import type { CommandModule } from 'yargs'
import type { Context } from '../context.ts'
import { dropCommand } from './dlq-drop.ts'
import { listLettersCommand } from './dlq-ls.ts'
import { redriveCommand } from './dlq-redrive.ts'
import { showLetterCommand } from './dlq-show.ts'

/** `egress dlq`: what could not be done, and why. */
export const dlqCommand = (context: Context) =>
  ({
    command: 'dlq',
    describe: 'See what could not be done and why, run it again, or drop it',
    builder: (argv) =>
      argv
        .command(listLettersCommand(context))
        .command(showLetterCommand(context))
        .command(redriveCommand(context))
        .command(dropCommand(context))
        .demandCommand(1, 'What about the dead letters?')
        .example('$0 dlq ls', 'what there is, by cause')
        .example('$0 dlq show shop-1a2b3c4d', 'one of them: reason, hint, history')
        .example('$0 dlq redrive shop-1a2b3c4d', 'run it again'),
    handler: () => {},
  }) satisfies CommandModule
