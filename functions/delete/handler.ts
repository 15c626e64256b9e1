import { createClusters } from '../../lib/clusters.ts'
import { connection } from '../../lib/connection.ts'
import { parseEvent } from '../../lib/events.ts'
import { createFunction } from '../../lib/function.ts'
import { lifeCycle } from '../../lib/life-cycle.ts'
import { createProxmox } from '../../lib/proxmox/index.ts'
import type { DeleteStep } from '../../lib/record.ts'
import { type DeleteEvent, deleteEvents } from './event.ts'
import { judge } from './judge.ts'
import { type Deps, steps } from './steps.ts'

/** Behind the delete queue: one record, one step of a proxy's way out of the world. */
export const handler = createFunction({
  side: 'delete',
  env: process.env,
  parse: (body): DeleteEvent => parseEvent(body, deleteEvents),
  keyOf: (event) => (event.type === 'Orphan' ? `orphan#${event.cluster}#${event.vmid}` : event.uid),
  judge,
  cycle: ({ config, claims, secrets, debug }) => {
    const clusters = createClusters(config, (cluster) =>
      createProxmox({ ...connection(cluster, secrets), onCall: (entry) => debug(entry, 'call') }),
    )
    return lifeCycle<DeleteStep, Deps>(steps, (row, invocation) => ({
      ...clusters.of(row, invocation),
      vmsOf: (name) => clusters.named(name, invocation),
      claims,
      config,
    }))
  },
})
