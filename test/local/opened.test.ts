import { describe, expect, it } from 'vitest'
import { createOpened } from '../../local/opened.ts'

describe('opened', () => {
  it('closes in the opposite order, once, and the rest too when one fails to', async () => {
    const closed: number[] = []
    const opened = createOpened()
    for (const index of [1, 2, 3]) {
      opened.add({
        close: async () => {
          closed.push(index)
          if (index === 2) throw new Error('stuck')
        },
      })
    }
    await expect(opened.close()).rejects.toMatchObject({ errors: [new Error('stuck')] })
    expect(closed).toEqual([3, 2, 1])
    await opened.close()
    expect(closed).toEqual([3, 2, 1])
  })
})
