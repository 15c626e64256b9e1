import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import type { CommandModule } from 'yargs'
import type { Context } from '../context.ts'
import { configSchema, eventSchemas, schemaFiles } from '../schemas.ts'
import { UsageError } from '../usage.ts'

const root = new URL('../../', import.meta.url)

/** `egress schema`: the JSON Schemas that events and configuration are checked by. */
export const schemaCommand = ({ out, err }: Context) =>
  ({
    command: 'schema [of]',
    describe: 'Print the JSON Schema of the configuration or of the events',
    builder: (argv) =>
      argv
        .positional('of', { choices: ['config', 'events'] as const, describe: 'which' })
        .option('write', {
          type: 'boolean',
          default: false,
          describe: 'write the checked-in files of this repository anew',
        })
        .example('$0 schema config', 'for an editor')
        .example('$0 schema events', 'for a publisher'),
    handler: (args) => {
      if (args.write) return write(err)
      if (args.of === undefined) throw new UsageError('which schema: config or events?')
      out(JSON.stringify(args.of === 'config' ? configSchema() : eventSchemas(), null, 2))
    },
  }) satisfies CommandModule<object, { of?: 'config' | 'events' | undefined; write: boolean }>

function write(say: (line: string) => void): void {
  for (const [path, text] of Object.entries(schemaFiles())) {
    const target = new URL(path, root)
    mkdirSync(dirname(target.pathname), { recursive: true })
    writeFileSync(target, text)
    say(path)
  }
}
