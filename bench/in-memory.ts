import { parseConfig } from '../lib/config.ts'
import { leaseMs, type Surroundings } from '../lib/function.ts'
import { createMemoryClaims } from '../test/fakes/claims.ts'
import { createMemoryLedger } from '../test/fakes/ledger.ts'
import { createMemoryQueues } from '../test/fakes/queues.ts'
import { createMemoryUserData } from '../test/fakes/user-data.ts'
import { cyclesOf, workersOf } from '../test/fakes/workers.ts'
import { createInstantProxmox } from './instant.ts'
import { instantConfig, NODES, requested, unwanted } from './instant-config.ts'
import { type Used, usageNow, used } from './usage.ts'

export type Pace = {
  lives: number
  records: number
  seconds: number
  emulators?: Used
  /** Of the functions' process. */
} & Used

/** Whole lives through the functions with nothing real around them: what our own code costs. The clock jumps over waits. */
export async function inMemory(lives: number): Promise<Pace> {
  let nowMs = Date.UTC(2026, 0, 1)
  const now = () => nowMs
  const config = parseConfig(instantConfig(), 'bench.yml')
  const ledger = createMemoryLedger({ leaseMs: leaseMs(config), settleMs: 120_000, now })
  const queues = createMemoryQueues(now, 360_000)
  const proxmox = createInstantProxmox(NODES)
  let events = 0
  const surroundings: Surroundings = {
    config,
    ledger,
    claims: createMemoryClaims(now),
    queues,
    userData: createMemoryUserData(),
    secrets: { read: async () => 'token', parameter: async () => undefined },
    async publish() {
      events += 1
    },
    probe: { http: never, tcp: never },
    countOn: async () => 0,
    log: () => {},
    measure: () => {},
    now,
    sleep: async (ms) => {
      nowMs += ms
    },
  }
  const cycles = cyclesOf(surroundings, () => ({ with: () => proxmox }))
  const workers = workersOf(surroundings, cycles)
  const signal = new AbortController().signal

  let records = 0
  async function drain(): Promise<void> {
    for (;;) {
      let handed = 0
      for (const side of ['create', 'delete'] as const) {
        const batch = queues.receive(side)
        handed += batch.length
        const invocation = { signal, mutateUntilMs: nowMs + 50_000 }
        await Promise.all(
          batch.map(async (delivery) => {
            const verdict = await workers[side](delivery, invocation)
            if (verdict.kind === 'acknowledge') queues.acknowledge(side, delivery)
            else await queues.showAgainIn(side, delivery, verdict.seconds)
          }),
        )
      }
      records += handed
      if (handed > 0) continue
      const at = queues.nextAt()
      if (at === undefined) return
      nowMs = Math.max(nowMs, at)
    }
  }

  const uids = Array.from({ length: lives }, (_, index) => `proxy-${index}`)
  const startedMs = performance.now()
  const before = usageNow()
  // A hundred at a time: what queues in memory cost by their length is not ours.
  for (let first = 0; first < lives; first += 100) {
    const some = uids.slice(first, first + 100)
    for (const uid of some) queues.publish('create', JSON.stringify(requested(uid)))
    await drain()
    for (const uid of some) queues.publish('delete', JSON.stringify(unwanted(uid)))
    await drain()
  }
  if (events !== 2 * lives || proxmox.vms.size > 0)
    throw new Error(`${lives} lives ended with ${events} events and ${proxmox.vms.size} VMs`)
  return {
    lives,
    records,
    seconds: (performance.now() - startedMs) / 1000,
    ...used(before, usageNow()),
  }
}

const never = () => {
  throw new Error('nothing is probed')
}
