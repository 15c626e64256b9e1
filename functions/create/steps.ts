import type { Claims } from '../../lib/claims.ts'
import { createClusters } from '../../lib/clusters.ts'
import type { Cluster, Config } from '../../lib/config.ts'
import type { Connect, Surroundings } from '../../lib/function.ts'
import { type LifeCycle, lifeCycle, type Steps } from '../../lib/life-cycle.ts'
import type { Probe } from '../../lib/probe.ts'
import type { Provider } from '../../lib/proxmox/index.ts'
import type { CreateStep } from '../../lib/record.ts'
import type { UserDataStore } from '../../lib/user-data.ts'
import { address } from './address.ts'
import { clone } from './clone.ts'
import { configure } from './configure.ts'
import { reserve } from './reserve.ts'
import { seed } from './seed.ts'
import { start } from './start.ts'
import { verify } from './verify.ts'

/** Everything the steps may touch; each names the part it does. */
export type Deps = {
  vms: Provider
  claims: Claims
  config: Config
  /** The row's cluster. */
  cluster: Cluster
  userData: UserDataStore
  /** The value of a stored parameter; undefined when there is none of that name. */
  password(parameter: string): Promise<string | undefined>
  /** Rows placed on a node, by index. */
  countOn(cluster: string, node: string): Promise<number>
  probe: Probe
  signal: AbortSignal
}

/** The way of a proxy into life. `report` is the worker's. */
export const steps: Steps<CreateStep, Deps> = {
  reserve: { run: reserve, deadlineSeconds: 300 },
  clone: { run: clone, deadlineSeconds: 1800 },
  seed: { run: seed, deadlineSeconds: 600 },
  configure: { run: configure, deadlineSeconds: 600 },
  start: { run: start, deadlineSeconds: 600 },
  address: {
    run: address,
    deadlineSeconds: 900,
    late: { code: 'AgentNeverUp' },
  },
  verify: {
    run: verify,
    deadlineSeconds: 900,
    late: { code: 'ProxyNeverAnswered' },
  },
}

/** The life cycle, joined with what its steps touch. */
export function cycle(surroundings: Surroundings, connect: Connect<Provider>): LifeCycle {
  const { config, claims, userData, secrets, countOn, probe } = surroundings
  const clusters = createClusters(config, connect)
  return lifeCycle<CreateStep, Deps>(
    steps,
    (row, invocation) => ({
      ...clusters.of(row, invocation),
      config,
      claims,
      userData,
      password: (parameter) => secrets.parameter(parameter),
      countOn,
      probe,
      signal: invocation.signal,
    }),
    config.timings.deadlineSeconds,
  )
}
