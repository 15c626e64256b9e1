import type { SimClock } from '../types.ts'
import type { LockMode } from './state.ts'

type Holder = { owner: string; mode: LockMode }
type Waiter = Holder & { granted: () => void }
type Lock = { holders: Holder[]; queue: Waiter[] }

export type Locks = ReturnType<typeof createLocks>

/** File locks of the cluster, as flock gives them: a shared one goes past those who wait for an exclusive one. Given up after a time-out. */
export function createLocks(clock: SimClock) {
  const locks = new Map<string, Lock>()

  const of = (name: string): Lock => {
    const lock = locks.get(name) ?? { holders: [], queue: [] }
    locks.set(name, lock)
    return lock
  }
  const fits = (lock: Lock, mode: LockMode) =>
    lock.holders.length === 0 ||
    (mode === 'shared' && lock.holders.every((holder) => holder.mode === 'shared'))

  const grant = (lock: Lock): void => {
    for (const next of [...lock.queue]) {
      if (!fits(lock, next.mode)) continue
      lock.queue.splice(lock.queue.indexOf(next), 1)
      lock.holders.push({ owner: next.owner, mode: next.mode })
      next.granted()
    }
  }

  return {
    /** Takes the lock at once when nobody is in the way. */
    tryTake(name: string, owner: string, mode: LockMode): boolean {
      const lock = of(name)
      if (!fits(lock, mode)) return false
      lock.holders.push({ owner, mode })
      return true
    },

    /** Waits for the lock; false when the time was up first. */
    take(name: string, owner: string, mode: LockMode, timeoutMs: number): Promise<boolean> {
      if (this.tryTake(name, owner, mode)) return Promise.resolve(true)
      return new Promise((resolve) => {
        const lock = of(name)
        const waiter: Waiter = {
          owner,
          mode,
          granted: () => {
            callOff()
            resolve(true)
          },
        }
        const callOff = clock.after(timeoutMs, () => {
          lock.queue.splice(lock.queue.indexOf(waiter), 1)
          resolve(false)
          grant(lock)
        })
        lock.queue.push(waiter)
      })
    },

    release(name: string, owner: string): void {
      const lock = of(name)
      lock.holders = lock.holders.filter((holder) => holder.owner !== owner)
      grant(lock)
      if (lock.holders.length === 0 && lock.queue.length === 0) locks.delete(name)
    },
  }
}
