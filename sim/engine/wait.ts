import type { Cluster } from './cluster.ts'
import { die } from './errors.ts'

/** A call that may wait for its own task: null when it ended well in time, the UPID when it goes on. @throws {PveError} with its exit text. */
export async function sleepThrough(
  cluster: Cluster,
  upid: string,
  delaySeconds: number | undefined,
  prefix: string,
): Promise<string | null> {
  if (delaySeconds === undefined) return upid
  const untilMs = cluster.clock.now() + delaySeconds * 1000
  while (cluster.clock.now() < untilMs) {
    await cluster.clock.sleep(20)
    const task = cluster.state.tasks[upid]
    if (task?.endMs === undefined) continue
    if (task.exitstatus === 'OK') return null
    die(`${prefix}${task.exitstatus ?? 'unexpected status'}`)
  }
  return upid
}
