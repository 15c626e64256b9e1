import { createFunction } from '../../lib/aws.ts'
import { connection } from '../../lib/connection.ts'
import { createProxmox } from '../../lib/proxmox/index.ts'
import { definition } from './definition.ts'
import { cycle } from './steps.ts'

/** Behind the create queue: one record, one step of a proxy's way into life. */
export const handler = createFunction(definition, process.env, (surroundings) =>
  cycle(surroundings, (cluster) =>
    createProxmox({ ...connection(cluster, surroundings.secrets), onCall: surroundings.debug }),
  ),
)
