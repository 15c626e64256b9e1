import { existsSync } from 'node:fs'
import type { SourceId } from './resources.ts'

const handler = (room: string) => new URL(`../functions/${room}/handler.ts`, import.meta.url)

/** The functions fed by a queue, and how many of their batches may run at once on one machine. */
export const queueFunctions: Record<SourceId, { handler: URL; maximumConcurrency: number }> = {
  create: { handler: handler('create'), maximumConcurrency: 4 },
  delete: { handler: handler('delete'), maximumConcurrency: 4 },
}

/** The functions run at a rate. */
const scheduled = [
  { name: 'gc', handler: handler('gc'), rateSeconds: 60 },
  { name: 'check', handler: handler('check'), rateSeconds: 300 },
]

/** Those of them that this checkout has. */
export const scheduledFunctions = () => scheduled.filter((one) => existsSync(one.handler))
