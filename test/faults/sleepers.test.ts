import { describe, expect, it } from 'vitest'
import { GRACE_MS, seeingWorld, withGc } from '../lab/gc-lab.ts'
import { expectMet, expectNoStrays, type Plot, play, plots } from './plots.ts'
import { type Numbered, openStage, type Stage } from './stage.ts'

/** Far past lease and `settleSeconds`: its successors have met the wish meanwhile. */
const ASLEEP_MS = 3600_000
const COPY_AFTER_MS = 20
const TIMEOUT_MS = 600_000

/** One life, in which a process stands still right before the n-th deed; every message comes twice, so that another takes its row over. */
async function live(plot: Plot, at: number, then: (stage: Stage) => Promise<void>): Promise<Numbered[]> {
  const stage = await openStage({
    ...plot.lab,
    world: seeingWorld(),
    post: () => [0, COPY_AFTER_MS],
    fate: ({ number }) => (number === at ? { kind: 'sleeps', ms: ASLEEP_MS } : { kind: 'done' }),
  })
  try {
    await play(plot, stage)
    await stage.lab.clock.advance(ASLEEP_MS)
    await stage.run()
    stage.watch.look()
    stage.watch.lookAtRows()
    expect(stage.watch.broken).toEqual([])
    expect(stage.lab.row('alpha')?.phase).toBe(plot.wish.phase)
    await then(stage)
    return [...stage.deeds()]
  } catch (cause) {
    const words = cause instanceof Error ? cause.message : String(cause)
    throw new Error(`${plot.name}, asleep before ${at}: ${words}\n\n${stage.story()}`, { cause })
  } finally {
    await stage.lab.close()
  }
}

/** What a sleeper took for nothing, gc gives back: noted by its first look, freed by its second. */
async function expectMended(plot: Plot, stage: Stage): Promise<void> {
  const { gc, grace } = withGc(stage.lab)
  await gc()
  await grace()
  await gc()
  await stage.lab.clock.advance(GRACE_MS)
  await stage.run()
  expectMet(stage, 'alpha', plot.wish)
  if (plot.rival) expectMet(stage, 'beta', plot.rival)
  expectNoStrays(stage)
  expect(stage.lab.claims.all().filter(({ partition }) => partition.startsWith('clone#'))).toEqual([])
}

/** The others as well with `CRASH_ALL=1`. */
const chosen = new Set(['create', 'replace', 'delete-at-reserve'])
const others = new Set(['delete', 'succession', 'delete-at-clone', 'delete-at-address'])
const isAll = process.env.CRASH_ALL === '1'

describe.each(plots.filter(({ name }) => chosen.has(name) || (isAll && others.has(name))))(
  'in the plot $name',
  (plot) => {
    it('a process that wakes an hour late, and goes on to touch a claim, takes nothing from its successors', {
      timeout: TIMEOUT_MS,
    }, async () => {
      const deeds = await live(plot, 0, async (stage) => expectMet(stage, 'alpha', plot.wish))
      const ofClaims = deeds.filter(({ what, changes }) => what.startsWith('claims.') && changes)
      expect(ofClaims.length).toBeGreaterThan(3)
      for (const { number } of ofClaims) await live(plot, number, (stage) => expectMended(plot, stage))
    })
  },
)
