import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createSandboxPool } from '../../local/sandbox-pool.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

function fakeSandboxes() {
  const made: { closed: boolean; alive: boolean; finish: (() => void)[] }[] = []
  const create = () => {
    const self = { closed: false, alive: true, finish: [] as (() => void)[] }
    made.push(self)
    return {
      invoke: (event: unknown) =>
        new Promise<unknown>((resolve, reject) => {
          self.finish.push(() => (event === 'die' ? reject(new Error('died')) : resolve(event)))
          if (event === 'die') self.alive = false
        }),
      get alive() {
        return self.alive
      },
      close: async () => {
        self.closed = true
      },
    }
  }
  return { made, create }
}

describe('sandbox-pool', () => {
  it('serves from a warm environment, and makes another only while all are busy', async () => {
    const { made, create } = fakeSandboxes()
    const pool = createSandboxPool(create)
    const both = [pool.invoke(1), pool.invoke(2)]
    expect(made).toHaveLength(2)
    for (const { finish } of made) finish.pop()?.()
    expect(await Promise.all(both)).toEqual([1, 2])
    const third = pool.invoke(3)
    for (const { finish } of made) finish.pop()?.()
    expect(await third).toBe(3)
    expect(made).toHaveLength(2)
  })

  it('never uses a dead environment again', async () => {
    const { made, create } = fakeSandboxes()
    const pool = createSandboxPool(create)
    const dying = pool.invoke('die')
    made[0]?.finish.pop()?.()
    await expect(dying).rejects.toThrow('died')
    void pool.invoke(1)
    expect(made).toHaveLength(2)
  })

  it('lets an environment go that had nothing to do for a while', async () => {
    const { made, create } = fakeSandboxes()
    const pool = createSandboxPool(create, 1000)
    const only = pool.invoke(1)
    made[0]?.finish.pop()?.()
    await only
    await vi.advanceTimersByTimeAsync(900)
    expect(made[0]?.closed).toBe(false)
    await vi.advanceTimersByTimeAsync(2000)
    expect(made[0]?.closed).toBe(true)
    void pool.invoke(2)
    expect(made).toHaveLength(2)
  })
})
