import { seedFile, vmName } from '../../lib/names.ts'
import { makeSeed, type Seed, SeedError } from '../../lib/nocloud/index.ts'
import { fail, next, type Outcome, task } from '../../lib/outcome.ts'
import type { Moment, RowOf } from '../../lib/record.ts'
import type { Deps } from './steps.ts'

type Seeding = RowOf['seed'] & Moment
type Needs = Pick<Deps, 'vms' | 'config' | 'cluster' | 'userData' | 'password'>

/** Uploads the disc the VM boots with. Repeatable: the same row makes the same bytes under the same name. */
export async function seed(row: Seeding, deps: Needs): Promise<Outcome> {
  if (row.ended?.step === 'seed' && row.ended.ok) return next('configure')
  const { auth } = row.spec.proxy
  const password = auth && (await deps.password(auth.passwordParameter))
  if (auth && password === undefined) {
    return fail('PasswordMissing', `there is no parameter ${auth.passwordParameter}`)
  }
  const userData = row.spec.hasUserData ? await deps.userData.get(row.uid, row.generation) : undefined
  if (row.spec.hasUserData && userData === undefined) {
    return fail('UserDataLost', 'the userData of this generation is not there')
  }
  try {
    const bytes = makeSeed(contents(row, deps, { password, userData }))
    const filename = seedFile(deps.config.deployment, row.uid, row.generation)
    const { node } = row.place
    // An answer that quotes the disc is cut short anywhere, so each line of it counts by itself.
    const secrets = [password ?? '', ...(userData ?? '').split(/\s*\n\s*/)]
    return task(
      await deps.vms.upload({ node, storage: deps.cluster.isoStorage, filename, bytes, secrets }),
      'uploading the seed',
      {
        seededOn: [...new Set([...(row.seededOn ?? []), node])],
      },
    )
  } catch (error) {
    if (!(error instanceof SeedError)) throw error
    return fail(
      'SeedRefused',
      error.message,
      `correct ${error.field}, then publish the proxy with a higher generation`,
    )
  }
}

function contents(
  row: Seeding,
  { config, cluster }: Needs,
  { password, userData }: { password: string | undefined; userData: string | undefined },
): Seed {
  const { port, allow, auth } = row.spec.proxy
  return {
    instanceId: `${row.uid}-g${row.generation}`,
    hostname: vmName({ uid: row.uid, name: row.name }),
    mac: row.mac,
    proxy: {
      port,
      allow,
      ...(auth && password !== undefined ? { auth: { username: auth.username, password } } : {}),
    },
    probeFrom: config.verify.probeFrom,
    memoryMiB: row.spec.size.memoryMiB,
    ...(userData === undefined ? {} : { userData }),
    ipv6: cluster.ipv6,
  }
}
