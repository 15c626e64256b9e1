import type { CommandModule } from 'yargs'
import type { Cluster } from '../../lib/config.ts'
import { type Administration, isProxmoxError } from '../../lib/proxmox/index.ts'
import type { Context } from '../context.ts'
import { readSecret } from '../read-secret.ts'
import { pathsOf } from '../rotate.ts'
import { openPlace, type PlaceArgs, withPlace } from '../token-place.ts'
import { sourceName } from '../token-store.ts'
import { parseToken, WANTED_TOKEN } from '../token-value.ts'
import { Unmet, UsageError } from '../usage.ts'

type Args = PlaceArgs & { second: boolean; verify: boolean }

/** `egress token set`: from standard input to where the functions read it. */
export const setTokenCommand = ({ env, out, err }: Context) =>
  ({
    command: 'set',
    describe: 'Store a token, which is read from standard input, where the functions look for it',
    builder: (argv) =>
      withPlace(argv)
        .option('second', {
          type: 'boolean',
          default: false,
          describe: 'into the second source, which is tried when the first is refused',
        })
        .option('verify', {
          type: 'boolean',
          default: true,
          describe: 'ask the cluster first; --no-verify stores it unasked',
        })
        .example(
          '$0 token set --cluster frankfurt --stage prod < pve-token',
          'never as an argument, which every process can read',
        ),
    handler: async (args) => {
      const place = openPlace(args, env)
      const source = place.sources[args.second ? 1 : 0]
      if (!source)
        throw new UsageError(`clusters.${place.name}.token has one source: --second needs a second one there`)
      const token = parseToken(await readSecret(process.stdin, `token of ${place.name}`, process.stderr))
      if (!token) throw new UsageError(`standard input holds no token: ${WANTED_TOKEN}`)
      if (args.verify) err(await verified(token.id, place.cluster, place.as(token.value)))
      const { unread } = await place.store.write(source, token.value)
      if (unread) err(unread)
      out(`stored ${token.id} in ${sourceName(source)}`)
    },
  }) satisfies CommandModule<object, Args>

/** Asks the cluster, which changes nothing. @throws {Unmet} for a token that could make no proxy */
export async function verified(id: string, cluster: Cluster, client: Administration): Promise<string> {
  try {
    const version = await client.version()
    const may = await client.ownPrivileges(pathsOf(cluster).slice(0, 2))
    const bare = [...may].filter(([, granted]) => granted.size === 0).map(([path]) => path)
    if (bare.length > 0)
      throw new Unmet(
        `not stored: ${id} may do nothing on ${bare.join(' and ')}. \`egress check --role --token-id '${id}'\` prints what grants it; --no-verify stores it all the same`,
      )
    return `Proxmox VE ${version} accepts ${id}`
  } catch (error) {
    if (!isProxmoxError(error)) throw error
    if (error.code === 'Unauthorized') throw new Unmet(`not stored: the cluster refuses ${id}`)
    throw new Unmet(
      `not stored, as the cluster could not be asked: ${error.message}; --no-verify stores it all the same`,
    )
  } finally {
    await client.close()
  }
}
