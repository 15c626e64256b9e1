import { setTimeout as sleep } from 'node:timers/promises'
import type { CommandModule } from 'yargs'
import { readText } from '../../lib/read-text.ts'
import type { Context } from '../context.ts'
import { readSecret } from '../read-secret.ts'
import { type RotationPorts, rotate } from '../rotate.ts'
import { openPlace, type PlaceArgs, type TokenPlace, withPlace } from '../token-place.ts'
import { parseToken, WANTED_TOKEN } from '../token-value.ts'
import { UsageError } from '../usage.ts'

type Args = PlaceArgs & { 'admin-token-file'?: string | undefined; old?: string | undefined }

/** `egress token rotate`: a new token in the place of the old one, and no proxy notices. */
export const rotateTokenCommand = ({ env, out, err }: Context) =>
  ({
    command: 'rotate',
    describe: 'Replace a token by a new one without a gap; run it again and it goes on where it stopped',
    builder: (argv) =>
      withPlace(argv)
        .option('admin-token-file', {
          type: 'string',
          requiresArg: true,
          describe:
            'a token with User.Modify and Permissions.Modify, which is stored nowhere; - reads it from standard input. Without it, the lines to type are printed',
        })
        .option('old', {
          type: 'string',
          requiresArg: true,
          describe: 'which stored token is to go, user@realm!name, where the cluster cannot be asked',
        })
        .example(
          '$0 token rotate --cluster frankfurt --stage prod --admin-token-file -',
          'asks for an administrator’s token, and does everything',
        ),
    handler: async (args) => {
      const place = openPlace(args, env)
      const admin = await adminToken(args['admin-token-file'], place.name)
      const client = admin === undefined ? undefined : place.as(admin)
      try {
        await rotate(rotationPorts(place, { admin: client, out, err, sleep, now: Date.now }), args.old)
      } finally {
        await client?.close()
      }
    },
  }) satisfies CommandModule<object, Args>

/** A rotation at a place. @throws {UsageError} where only one token can be stored */
export function rotationPorts(
  place: TokenPlace,
  outside: Pick<RotationPorts, 'admin' | 'out' | 'err' | 'sleep' | 'now'>,
): RotationPorts {
  const [first, second] = place.sources
  if (!first || !second)
    throw new UsageError(
      `clusters.${place.name}.token has one source: add a second one, deploy, and rotate then`,
    )
  const sources = [first, second] as const
  return {
    store: {
      read: (index) => place.secrets.read(sources[index], { fresh: true }),
      async write(index, value) {
        const { unread } = await place.store.write(sources[index], value)
        if (unread) outside.err(unread)
      },
      removeSecond: () => place.store.remove(second),
    },
    as: place.as,
    typing: place,
    ...outside,
  }
}

async function adminToken(file: string | undefined, cluster: string): Promise<string | undefined> {
  if (file === undefined) return undefined
  const text =
    file === '-'
      ? await readSecret(process.stdin, `administrator's token of ${cluster}`, process.stderr)
      : readText(file)
  const token = parseToken(text)
  if (!token) throw new UsageError(`--admin-token-file ${file} holds no token: ${WANTED_TOKEN}`)
  return token.value
}
