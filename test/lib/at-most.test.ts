import { describe, expect, it } from 'vitest'
import { atMost } from '../../lib/at-most.ts'

/** Work that ends when it is told to. */
function byHand() {
  const going: (() => void)[] = []
  let most = 0
  let now = 0
  const work = async (item: number) => {
    most = Math.max(most, ++now)
    await new Promise<void>((end) => going.push(end))
    now -= 1
    return item * 2
  }
  return { work, endOne: () => going.pop()?.(), most: () => most }
}

describe('atMost', () => {
  it('never does more at once, and returns results in the order of the items', async () => {
    const { work, endOne, most } = byHand()
    const all = atMost(3, [1, 2, 3, 4, 5, 6, 7], work)
    for (let ended = 0; ended < 7; ended++) {
      endOne()
      await new Promise(setImmediate)
    }
    expect(await all).toEqual([2, 4, 6, 8, 10, 12, 14])
    expect(most()).toBe(3)
  })

  it('does nothing for nothing', async () => {
    expect(await atMost(3, [], async () => 1)).toEqual([])
  })

  it('fails with the first failure', async () => {
    const fails = atMost(2, [1, 2, 3], async (item) => {
      if (item === 2) throw new Error('two')
      return item
    })
    await expect(fails).rejects.toThrow('two')
  })
})
