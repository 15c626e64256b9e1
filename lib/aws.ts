import { SNSClient } from '@aws-sdk/client-sns'
import { createClaims } from './claims.ts'
import { coldStart } from './cold-start.ts'
import { assemble, type Definition, leaseMs, type Surroundings, settleMs } from './function.ts'
import { batchHandler } from './lambda.ts'
import { createLedger } from './ledger.ts'
import type { LifeCycle } from './life-cycle.ts'
import { countOn } from './listing.ts'
import { probe } from './probe.ts'
import { createPublish } from './topic.ts'
import { createUserDataStore } from './user-data.ts'

/**
 * A function behind a queue, on AWS or on emulators of it: its worker and all that surrounds it. Made once, at cold start.
 * @throws {Error} naming all that is wrong with the environment or the configuration
 */
export function createFunction<E extends { type: string }>(
  definition: Definition<E>,
  environment: Readonly<Record<string, string | undefined>>,
  cycle: (surroundings: Surroundings & { debug(entry: object): void }) => LifeCycle,
) {
  const { env, config, log, debug, measure, client, queues, secrets } = coldStart(environment)
  const table = env.EGRESS_PROXIES_TABLE
  const surroundings: Surroundings = {
    config,
    ledger: createLedger({ client, table, leaseMs: leaseMs(config), settleMs: settleMs(config) }),
    claims: createClaims({ client, table: env.EGRESS_CLAIMS_TABLE }),
    queues,
    userData: createUserDataStore(client, table),
    secrets,
    publish: createPublish(new SNSClient({}), env.EGRESS_TOPIC_ARN),
    probe,
    countOn: countOn(client, table),
    log: (decision) => log.info(decision, 'decision'),
    measure,
  }
  return batchHandler({
    side: definition.side,
    worker: assemble(definition, cycle({ ...surroundings, debug }), surroundings),
    queues,
    onError: (error, messageId) =>
      log.error({ err: error, messageId }, 'the record was not processed; it comes again'),
    measure,
  })
}
