import { expect, it } from 'vitest'
import { expectMet, expectNoStrays, orphaned } from './plots.ts'
import { openStage } from './stage.ts'

/** Longer than either life takes, and how finely the orders are told apart. */
const APART_SECONDS = 80
const STEP_SECONDS = 8

it('a proxy whose row was lost may be asked for at any moment of the deletion of its old VM, and before', async () => {
  for (let seconds = -APART_SECONDS; seconds <= APART_SECONDS; seconds += STEP_SECONDS) {
    const plot = orphaned(seconds * 1000)
    const stage = await openStage()
    try {
      await plot.before(stage)
      plot.event(stage)
      await stage.run()
      expect(stage.watch.broken).toEqual([])
      expectMet(stage, 'alpha', plot.wish)
      expectNoStrays(stage)
      expect(stage.lab.queues.deadLetters).toEqual([])
    } catch (cause) {
      const words = cause instanceof Error ? cause.message : String(cause)
      throw new Error(`asked for ${seconds} s ahead: ${words}\n\n${stage.story()}`, { cause })
    } finally {
      await stage.lab.close()
    }
  }
}, 300_000)
