import type { Cluster, Config } from './config.ts'
import { Failure } from './failure.ts'
import type { Invocation } from './life-cycle.ts'
import type { Row } from './record.ts'

/** The clusters of the configuration, each connected at its first use and for the life of the process. */
export type Clusters<P> = {
  /** The row's own. @throws {Failure} Misconfigured when its cluster or zone is not configured any more */
  of(row: Row, invocation: Invocation): { cluster: Cluster; vms: P }
  /** Undefined when it is not configured. */
  named(name: string, invocation: Invocation): P | undefined
}

export function createClusters<P>(
  config: Config,
  connect: (cluster: Cluster) => { with(invocation: Invocation): P },
): Clusters<P> {
  const connected = new Map<string, { with(invocation: Invocation): P }>()

  function named(name: string, invocation: Invocation): P | undefined {
    const cluster = config.clusters[name]
    if (!cluster) return undefined
    const client = connected.get(name) ?? connect(cluster)
    connected.set(name, client)
    return client.with(invocation)
  }

  return {
    named,
    of(row, invocation) {
      const name =
        row.place?.cluster ?? config.zones[row.spec?.zone ?? '']?.cluster ?? Object.keys(config.clusters)[0]
      const cluster = name === undefined ? undefined : config.clusters[name]
      const vms = name === undefined ? undefined : named(name, invocation)
      if (cluster && vms) return { cluster, vms }
      throw new Failure('Misconfigured', `cluster ${name} is not configured`, { class: 'permanent' })
    },
  }
}
