import type { Config } from '../lib/config.ts'

/** What the preflight asks of the account. */
export type Account = {
  /** Types of those parameters that there are. */
  parameterTypes(names: string[]): Promise<ReadonlyMap<string, string>>
  /** Executions at once that the account allows in the region, and what of them no function has reserved. */
  concurrency(): Promise<{ limit: number; unreserved: number }>
}

/** Executions at once that the stack wants: reserved for scheduled functions, and for batches of the queues. */
type Executions = { reserved: number; batches: number }

/** Lambda keeps this many for functions without a reservation. Source: AWS Lambda, "Configuring reserved concurrency". */
const ALWAYS_UNRESERVED = 100

/**
 * All that is missing for a deployment to work, each with what to do about it; the empty list when nothing is. The files of
 * the stage were read before: what is wrong with them has been said.
 */
export async function preflight(
  stage: string,
  { clusters }: Pick<Config, 'clusters'>,
  executions: Executions,
  account: Account,
): Promise<string[]> {
  if (stage === 'example')
    return [
      'the stage `example` is one to copy: make config/prod.yml and infra/stages/prod.yml from it, then deploy with --stage prod',
    ]
  return [
    ...(await missingTokens(stage, clusters, account)),
    ...(await missingConcurrency(executions, account)),
  ]
}

/** A cluster may name two parameters; while no token is being replaced, one of them is enough. */
async function missingTokens(
  stage: string,
  clusters: Config['clusters'],
  account: Account,
): Promise<string[]> {
  const wanted = Object.entries(clusters).map(([cluster, { token }]) => ({
    cluster,
    names: [token].flat().flatMap((source) => ('ssm' in source ? [source.ssm] : [])),
  }))
  const types = await account.parameterTypes(wanted.flatMap(({ names }) => names))
  const missing = wanted
    .filter(({ names }) => !names.some((name) => types.has(name)))
    .map(
      ({ cluster, names }) =>
        `no token of cluster ${cluster} in parameter ${names[0]}: store it with  npx egress token set --cluster ${cluster} --stage ${stage}`,
    )
  const open = [...types]
    .filter(([, type]) => type !== 'SecureString')
    .map(
      ([name, type]) =>
        `parameter ${name} is a ${type}: anyone who may read parameters reads the token; make it a SecureString`,
    )
  return [...missing, ...open]
}

async function missingConcurrency({ reserved, batches }: Executions, account: Account): Promise<string[]> {
  const { limit, unreserved } = await account.concurrency()
  const ask = 'ask for more: Service Quotas, AWS Lambda, Concurrent executions (L-B99A9384)'
  if (reserved > 0 && limit - reserved < ALWAYS_UNRESERVED)
    return [
      `the account allows ${limit} executions at once, of which Lambda lets nobody reserve the last ${ALWAYS_UNRESERVED}: ${ask}`,
    ]
  return unreserved < batches
    ? [`the account has ${unreserved} executions at once to give, the queues may take ${batches}: ${ask}`]
    : []
}
