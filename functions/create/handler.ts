import { createClusters } from '../../lib/clusters.ts'
import { connection } from '../../lib/connection.ts'
import { InvalidEvent, parseEvent } from '../../lib/events.ts'
import { createFunction } from '../../lib/function.ts'
import { lifeCycle } from '../../lib/life-cycle.ts'
import { countOn } from '../../lib/listing.ts'
import { probe } from '../../lib/probe.ts'
import { createProxmox } from '../../lib/proxmox/index.ts'
import type { CreateStep } from '../../lib/record.ts'
import { checkRequest } from '../../lib/wish.ts'
import { type CreateEvent, createEvents } from './event.ts'
import { judge } from './judge.ts'
import { type Deps, steps } from './steps.ts'

/** Behind the create queue: one record, one step of a proxy's way into life. */
export const handler = createFunction({
  side: 'create',
  env: process.env,
  parse(body, config): CreateEvent {
    const message = parseEvent(body, createEvents)
    const complaints = message.type === 'ProxyRequested' ? checkRequest(message, config) : []
    if (complaints.length > 0) throw new InvalidEvent(complaints)
    return message
  },
  keyOf: ({ uid }) => uid,
  judge,
  cycle: ({ config, claims, userData, secrets, documents, proxiesTable, debug }) => {
    const clusters = createClusters(config, (cluster) =>
      createProxmox({ ...connection(cluster, secrets), onCall: (entry) => debug(entry, 'call') }),
    )
    return lifeCycle<CreateStep, Deps>(steps, (row, invocation) => {
      const { cluster, vms } = clusters.of(row, invocation)
      const { signal } = invocation
      const password = (name: string) => secrets.parameter(name)
      return {
        vms,
        claims,
        config,
        cluster,
        userData,
        password,
        countOn: countOn(documents, proxiesTable),
        probe,
        signal,
      }
    })
  },
})
