import type { Side } from '../lib/record.ts'
import type { Verdict } from '../lib/worker.ts'
import { CONCURRENCY, NO_WAYS, type Ways } from './conditions.ts'
import type { Installation } from './installation.ts'

const SIDES = ['create', 'delete'] as const

/** One invocation: its batch, and how long the function had it. */
export type Invoked = { side: Side; records: number; ms: number }

/**
 * Hands the lab's messages to its functions as Lambda's event source mapping does, on the virtual clock: batches of up to
 * ten, so many at once, a batch done with when its slowest record is. Ends when `done` holds or nothing moves any more.
 */
export async function feed(
  { lab, onSent }: Installation,
  done: () => boolean,
  { ways = NO_WAYS, concurrency = CONCURRENCY }: { ways?: Ways; concurrency?: number } = {},
): Promise<Invoked[]> {
  const { clock, queues, config, workers } = lab
  const timeoutMs = config.timings.functionTimeoutSeconds * 1000
  const running: Record<Side, number> = { create: 0, delete: 0 }
  const invoked: Invoked[] = []
  let failure: unknown
  let wake = () => {}
  const rearm = () =>
    new Promise<void>((resolve) => {
      wake = resolve
    })

  async function invoke(side: Side): Promise<boolean> {
    const batch = queues.receive(side)
    if (batch.length === 0) return false
    running[side] += 1
    const work = async () => {
      if (ways.pickUpMs > 0) await clock.sleep(ways.pickUpMs)
      const startedMs = clock.now()
      const abort = new AbortController()
      const callOff = clock.after(timeoutMs - 5000, () => abort.abort())
      const invocation = { signal: abort.signal, mutateUntilMs: startedMs + timeoutMs - 7000 }
      const verdicts = await Promise.all(
        batch.map(async (delivery): Promise<Verdict> => {
          const verdict = await workers[side](delivery, invocation)
          if (verdict.kind === 'back') await queues.showAgainIn(side, delivery, verdict.seconds)
          return verdict
        }),
      )
      callOff()
      batch.forEach((delivery, index) => {
        if (verdicts[index]?.kind === 'acknowledge') queues.acknowledge(side, delivery)
      })
      invoked.push({ side, records: batch.length, ms: clock.now() - startedMs })
    }
    work()
      .catch((error: unknown) => {
        failure ??= error
      })
      .finally(() => {
        running[side] -= 1
        wake()
      })
    return true
  }

  onSent(() => wake())
  while (!done()) {
    if (failure !== undefined) throw failure
    const woken = rearm()
    for (const side of SIDES) while (running[side] < concurrency && (await invoke(side)));
    const at = queues.nextAt()
    if (at === undefined && running.create + running.delete === 0) return invoked
    const callOff =
      at !== undefined && at > clock.now() ? clock.after(at - clock.now(), () => wake()) : () => {}
    await clock.until(woken)
    callOff()
  }
  return invoked
}
