import type { Claims } from '../lib/claims.ts'
import type { Ledger } from '../lib/ledger.ts'
import type { Exchange } from '../lib/proxmox/index.ts'
import { type Lab, type LabOptions, type Outside, openLab } from '../test/lab/lab.ts'
import { labOptions, NO_WAYS, type Ways } from './conditions.ts'

/** What went over the wire to Proxmox: one entry a request, in the order they were sent. */
export type Request = { method: string; path: string; atMs: number; status?: number }

/** The lab under the conditions that are measured, and what was seen of it from outside. */
export type Installation = {
  lab: Lab
  /** The world as the functions reach it; the floor goes the same way. */
  outside: Outside
  requests: Request[]
  /** When each outcome event was published, by type and uid. */
  publishedAt: Map<string, number>
  /** Told whenever a message was sent. */
  onSent(listener: () => void): void
  close(): Promise<void>
}

export async function openInstallation({
  ways = NO_WAYS,
  world,
  wire = (exchange) => exchange,
}: {
  ways?: Ways
  world?: NonNullable<LabOptions['world']>
  /** What lies between the functions and the cluster. */
  wire?: (exchange: Exchange, clock: { now(): number; sleep(ms: number): Promise<void> }) => Exchange
} = {}): Promise<Installation> {
  const requests: Request[] = []
  const publishedAt = new Map<string, number>()
  let sent = () => {}
  let seen: Outside | undefined
  let sleep = async (_ms: number) => {}
  let now = () => 0

  const interpose = ({ surroundings, exchange }: Outside): Outside => {
    const { ledger, claims, queues, publish } = surroundings
    now = surroundings.now ?? now
    sleep = surroundings.sleep ?? sleep
    const outside: Outside = {
      exchange: wire(watched(exchange), { now, sleep }),
      surroundings: {
        ...surroundings,
        ledger: slowed(ledger, ['take', 'save', 'release', 'read'], ways.tableMs),
        claims: slowed(claims, claimCalls, ways.tableMs),
        queues: {
          ...queues,
          async send(side, message, options) {
            await pause(ways.queueMs)
            await queues.send(side, message, options)
            sent()
          },
        },
        async publish(event) {
          await pause(ways.queueMs)
          publishedAt.set(`${event.type} ${event.uid}`, now())
          await publish(event)
        },
      },
    }
    seen = outside
    return outside
  }

  const pause = (ms: number) => (ms > 0 ? sleep(ms) : Promise.resolve())
  const watched =
    (exchange: Exchange): Exchange =>
    async (endpoint, request) => {
      const entry: Request = { method: request.method, path: request.path, atMs: now() }
      requests.push(entry)
      await pause(ways.proxmoxMs)
      const answer = await exchange(endpoint, request)
      entry.status = answer.status
      return answer
    }

  /** The same port, each of these calls a way longer. */
  function slowed<T extends Ledger | Claims>(port: T, calls: readonly (keyof T)[], ms: number): T {
    if (ms === 0) return port
    const slow = calls.map((name) => {
      const call = port[name]
      if (typeof call !== 'function') throw new Error(`${String(name)} is no call`)
      return [name, async (...args: unknown[]) => pause(ms).then(() => call.apply(port, args))]
    })
    return { ...port, ...Object.fromEntries(slow) }
  }

  const lab = await openLab({ ...labOptions, ...(world && { world }), interpose })
  if (!seen) throw new Error('the lab did not ask who stands between')
  return {
    lab,
    outside: seen,
    requests,
    publishedAt,
    onSent: (listener) => {
      sent = listener
    },
    close: () => lab.close(),
  }
}

const claimCalls = [
  'takeVmid',
  'vmidClaim',
  'claimsOf',
  'free',
  'keep',
  'takeSlot',
  'freeSlots',
  'takeAgentTurn',
  'freeAgentTurn',
  'takeAddress',
] as const
