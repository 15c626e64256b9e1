import { SSMClient } from '@aws-sdk/client-ssm'
import type { Argv } from 'yargs'
import { type Cluster, loadConfig } from '../lib/config.ts'
import { connection } from '../lib/connection.ts'
import { type Administration, createAdministration } from '../lib/proxmox/index.ts'
import { createSecrets, type Secrets, type Source } from '../lib/secrets.ts'
import { createTokenStore, type TokenStore } from './token-store.ts'
import { UsageError } from './usage.ts'

export type PlaceArgs = { cluster: string; config?: string | undefined; 'kms-key'?: string | undefined }

/** One cluster of a configuration: where its tokens are kept, and the cluster itself as the holder of one. */
export type TokenPlace = {
  name: string
  cluster: Cluster
  sources: Source[]
  secrets: Secrets
  store: TokenStore
  as(token: string): Administration
  /** The flags that name it, to be typed again. */
  args: string
}

export const withPlace = <T>(argv: Argv<T>) =>
  argv
    .option('cluster', {
      type: 'string',
      requiresArg: true,
      demandOption: true,
      describe: 'name of the cluster in the configuration',
    })
    .option('config', {
      type: 'string',
      requiresArg: true,
      describe: "the stage's configuration (or EGRESS_CONFIG)",
    })
    .option('kms-key', {
      type: 'string',
      requiresArg: true,
      describe: 'key that encrypts the parameter, unless it is the account’s own of SSM',
    })

/** @throws {UsageError} for a cluster or a configuration that is not there */
export function openPlace(args: PlaceArgs, env: NodeJS.ProcessEnv): TokenPlace {
  const path = args.config ?? env.EGRESS_CONFIG
  if (path === undefined) throw new UsageError('no configuration: give --config or set EGRESS_CONFIG')
  const config = loadConfig(path)
  const cluster = config.clusters[args.cluster]
  if (!cluster)
    throw new UsageError(
      `--cluster: got ${args.cluster}, wanted one of ${Object.keys(config.clusters).join(', ')}`,
    )
  let client: SSMClient | undefined
  const ssm = () => (client ??= new SSMClient({}))
  const secrets = createSecrets({ ssm, parameters: config.parameters })
  const { endpoints, ca } = connection(cluster, secrets)
  return {
    name: args.cluster,
    cluster,
    sources: [cluster.token].flat(),
    secrets,
    store: createTokenStore(ssm, args['kms-key']),
    as: (token) =>
      createAdministration(
        { endpoints, ...(ca === undefined ? {} : { ca }), token: { get: async () => [token] } },
        { signal: new AbortController().signal },
      ),
    args: `--cluster ${args.cluster} --config ${path}`,
  }
}
