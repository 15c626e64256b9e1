import { describe, expect, it } from 'vitest'
import { createVirtualClock } from '../../sim/index.ts'

describe('the virtual clock', () => {
  it('wakes sleepers in order of their time, each at its own', async () => {
    const clock = createVirtualClock(0)
    const woken: [string, number][] = []
    const sleeper = async (name: string, ms: number) => {
      await clock.sleep(ms)
      woken.push([name, clock.now()])
    }
    void sleeper('late', 300)
    void sleeper('early', 100).then(() => sleeper('early again', 100))
    await clock.advance(250)
    expect(woken).toEqual([
      ['early', 100],
      ['early again', 200],
    ])
    expect(clock.now()).toBe(250)
    await clock.runUntilIdle()
    expect(woken.at(-1)).toEqual(['late', 300])
  })

  it('moves on until a promise is settled, and says so when nothing can settle it', async () => {
    const clock = createVirtualClock(0)
    expect(await clock.until(clock.sleep(5000).then(() => 'done'))).toBe('done')
    expect(clock.now()).toBe(5000)
    await expect(clock.until(new Promise(() => {}))).rejects.toThrow(
      'nothing left that could settle the promise',
    )
  })

  it('lets an alarm be called off', async () => {
    const clock = createVirtualClock(0)
    let rang = false
    const callOff = clock.after(10, () => {
      rang = true
    })
    callOff()
    await clock.advance(100)
    expect(rang).toBe(false)
  })
})
