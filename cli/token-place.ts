import { existsSync } from 'node:fs'
import { SSMClient } from '@aws-sdk/client-ssm'
import type { Argv } from 'yargs'
import * as z from 'zod'
import { type Cluster, loadConfig } from '../lib/config.ts'
import { connection } from '../lib/connection.ts'
import { type Administration, createAdministration } from '../lib/proxmox/index.ts'
import { readText } from '../lib/read-text.ts'
import { readYaml } from '../lib/read-yaml.ts'
import { createSecrets, type Secrets, type Source } from '../lib/secrets.ts'
import { readRun } from '../local/run-file.ts'
import { dataOption } from './connection.ts'
import { createTokenStore, type TokenStore } from './token-store.ts'
import { UsageError } from './usage.ts'

export type PlaceArgs = {
  cluster: string
  data: string
  config?: string | undefined
  stage?: string | undefined
  'kms-key'?: string | undefined
}

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
    .option('data', dataOption)
    .option('config', {
      type: 'string',
      requiresArg: true,
      group: dataOption.group,
      describe: "another configuration (or EGRESS_CONFIG); a stage's is config/<stage>.yml",
    })
    .option('kms-key', {
      type: 'string',
      requiresArg: true,
      describe: "key that encrypts the parameter, unless it is the stage's or the account's own of SSM",
    })

/** @throws {UsageError} for a cluster, a configuration or a stage that is not there */
export function openPlace(args: PlaceArgs, env: NodeJS.ProcessEnv): TokenPlace {
  const { path, flags, region, key } = whereOf(args, env)
  const config = loadConfig(path)
  const cluster = config.clusters[args.cluster]
  if (!cluster)
    throw new UsageError(
      `--cluster: got ${args.cluster}, wanted one of ${Object.keys(config.clusters).join(', ')}`,
    )
  let client: SSMClient | undefined
  const ssm = () => (client ??= new SSMClient(region === undefined ? {} : { region }))
  const secrets = createSecrets({ ssm, parameters: config.parameters })
  const { endpoints, ca } = connection(cluster, secrets)
  return {
    name: args.cluster,
    cluster,
    sources: [cluster.token].flat(),
    secrets,
    store: createTokenStore(ssm, args['kms-key'] ?? key),
    as: (token) =>
      createAdministration(
        { endpoints, ...(ca === undefined ? {} : { ca }), token: { get: async () => [token] } },
        { signal: new AbortController().signal },
      ),
    args: [`--cluster ${args.cluster}`, ...flags].join(' '),
  }
}

type Where = { path: string; flags: string[]; region?: string | undefined; key?: string | undefined }

/** A stage's token is stored before the stage is deployed, so what is asked is its files, and nothing of the account. */
function whereOf({ stage, config, data }: PlaceArgs, env: NodeJS.ProcessEnv): Where {
  const named = config === undefined ? [] : [`--config ${config}`]
  if (stage !== undefined) {
    const path = config ?? `config/${stage}.yml`
    if (!existsSync(path))
      throw new UsageError(
        `stage ${stage} has no ${path} here: run this where its files are, or give --config`,
      )
    const { region, secretsKeyArn: key } = ofStage(stage)
    return { path, flags: [`--stage ${stage}`, ...named], region, key }
  }
  if (config !== undefined) return { path: config, flags: named }
  const { EGRESS_CONFIG: path } = env
  if (path !== undefined) return { path, flags: [`--config ${path}`] }
  const run = readRun(data)
  if (run) return { path: run.config, flags: data === dataOption.default ? [] : [`--data ${data}`] }
  throw new UsageError(
    `no egress up runs on ${data}, and no configuration is named: give --stage or --config, or set EGRESS_CONFIG`,
  )
}

/** What of infra/stages/<stage>.yml says where secrets go; packaging reads all of it. */
const StageFile = z.object({ region: z.string(), secretsKeyArn: z.string().optional() })

/** Where the stage is, or is going to be. Nothing, for the SDK's own defaults, when its file is elsewhere. */
function ofStage(stage: string): Partial<z.infer<typeof StageFile>> {
  const path = `infra/stages/${stage}.yml`
  if (!existsSync(path)) return {}
  const read = readYaml(readText(path))
  if ('fault' in read) throw new UsageError(`${path}: got ${read.fault}, wanted YAML`)
  const file = StageFile.safeParse(read.document)
  if (!file.success) throw new UsageError(`${path} names no region`)
  return file.data
}
