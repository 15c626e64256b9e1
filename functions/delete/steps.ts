import type { Claims } from '../../lib/claims.ts'
import { createClusters } from '../../lib/clusters.ts'
import type { Cluster, Config } from '../../lib/config.ts'
import type { Connect, Surroundings } from '../../lib/function.ts'
import { type LifeCycle, lifeCycle, type Steps } from '../../lib/life-cycle.ts'
import type { Provider } from '../../lib/proxmox/index.ts'
import type { DeleteStep } from '../../lib/record.ts'
import { destroy } from './destroy.ts'
import { release } from './release.ts'
import { stop } from './stop.ts'
import { unseed } from './unseed.ts'

/** Everything the steps may touch; each names the part it does. */
export type Deps = {
  vms: Provider
  /** Another cluster's, where an earlier try may have claimed a VMID; undefined when it is not configured. */
  vmsOf(cluster: string): Provider | undefined
  claims: Claims
  config: Config
  /** The row's cluster. */
  cluster: Cluster
}

const HOUR = 3600

/** The way of a proxy out of the world. `report` is the worker's. */
export const steps: Steps<DeleteStep, Deps> = {
  stop: { run: stop, deadlineSeconds: HOUR },
  unseed: { run: unseed, deadlineSeconds: HOUR },
  destroy: { run: destroy, deadlineSeconds: HOUR },
  release: { run: release, deadlineSeconds: HOUR },
}

/** The life cycle, joined with what its steps touch. */
export function cycle({ config, claims }: Surroundings, connect: Connect<Provider>): LifeCycle {
  const clusters = createClusters(config, connect)
  return lifeCycle<DeleteStep, Deps>(
    steps,
    (row, invocation) => ({
      ...clusters.of(row, invocation),
      vmsOf: (name) => clusters.named(name, invocation),
      config,
      claims,
    }),
    config.timings.deadlineSeconds,
  )
}
