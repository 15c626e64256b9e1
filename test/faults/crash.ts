import { describe, expect, it } from 'vitest'
import { seeded } from '../lab/lab.ts'
import { expectMet, expectNoStrays, type Plot, play } from './plots.ts'
import { type Fate, type Numbered, openStage } from './stage.ts'

/**
 * What befalls a process at its n-th deed. Written `17-after`, or `17-after+31-before` for two in a life. Late is a call
 * of Proxmox that is answered with 596 and carried out 100 s after that; under way is one whose sender dies, carried out
 * then as well. Asleep is a process that stands still until its lease has run out and another has taken the row over, and
 * then goes on: every message of that life comes twice, so that another delivery of the same one is at work meanwhile.
 */
type Death = { at: number; when: 'before' | 'after' | 'late' | 'under-way' | 'asleep' }

const fates: Record<Death['when'], Fate> = {
  before: { kind: 'dies', when: 'before' },
  after: { kind: 'dies', when: 'after' },
  late: { kind: 'late', ms: 100_000 },
  'under-way': { kind: 'dies', when: 'under way', ms: 100_000 },
  asleep: { kind: 'sleeps', ms: 150_000 },
}
const isWhen = (word: string): word is Death['when'] => Object.hasOwn(fates, word)
/** A copy of a message comes when the first is at work. */
const COPY_AFTER_MS = 20
/** Enough for a machine that has much else to do. */
const TIMEOUT_MS = 600_000

/** Every so manieth deed is slept before; 1 for all of them, which takes some minutes. */
const SLEEP_EVERY = Number(process.env.CRASH_SLEEP_EVERY ?? 8)
/** After so many broken cases of a plot the others are not tried. */
const ENOUGH = Number(process.env.CRASH_ENOUGH ?? 3)
const HOUR_MS = 3600_000
/** So many lives with two deaths. */
const PAIRS = Number(process.env.CRASH_PAIRS ?? 12)
const SEED = 20260101

const isAll = process.env.CRASH_ALL === '1'

/** Runs one case alone, as a failure says: `CRASH_CASE='create 17-after' npx vitest run test/faults/crash`. */
const only = process.env.CRASH_CASE

/** One life, with deaths in it; what was done in it, in order. @throws {Error} telling the case, what broke, and the story */
async function live(plot: Plot, deaths: Death[]): Promise<Numbered[]> {
  const stage = await openStage({
    ...plot.lab,
    fate: ({ number }) => {
      const death = deaths.find(({ at }) => at === number)
      return death ? fates[death.when] : { kind: 'done' }
    },
    ...(deaths.some(({ when }) => when === 'asleep') && { post: () => [0, COPY_AFTER_MS] }),
  })
  try {
    await play(plot, stage)
    expectMet(stage, 'alpha', plot.wish)
    // What was sent before may still run, and what is nobody's may still appear.
    await stage.lab.clock.advance(HOUR_MS)
    await stage.run()
    stage.watch.look()
    expect(stage.watch.broken).toEqual([])
    expectMet(stage, 'alpha', plot.wish)
    if (plot.rival) expectMet(stage, 'beta', plot.rival)
    expectNoStrays(stage)
    return [...stage.deeds()]
  } catch (cause) {
    const name = [plot.name, deaths.map(({ at, when }) => `${at}-${when}`).join('+')].join(' ').trim()
    const again = `CRASH_CASE='${name}' npx vitest run test/faults/crash`
    const words = cause instanceof Error ? cause.message : String(cause)
    throw new Error(`${name}: ${words}\n\nto repeat it: ${again}\n\n${stage.story()}`, { cause })
  } finally {
    await stage.lab.close()
  }
}

/**
 * Dying after each change, and before it where something was read since the change before: else the two are one moment,
 * as is dying before or after a read, which leaves nothing behind.
 */
const deathsOf = (deeds: Numbered[]): Death[] =>
  deeds.flatMap(({ number, changes, request }, index): Death[] => {
    if (!changes) return []
    const after: Death[] = [
      { at: number, when: 'after' },
      ...(number % SLEEP_EVERY === 0 ? [{ at: number, when: 'asleep' } as const] : []),
      ...(request ? (['late', 'under-way'] as const).map((when) => ({ at: number, when })) : []),
    ]
    return deeds[index - 1]?.changes ? after : [{ at: number, when: 'before' }, ...after]
  })

async function expectSurvived(plot: Plot, cases: Death[][]): Promise<void> {
  const failures: string[] = []
  const before = process.cpuUsage()
  for (const deaths of cases) {
    await live(plot, deaths).catch((error: Error) => failures.push(error.message))
    if (failures.length >= ENOUGH) break
  }
  const { user, system } = process.cpuUsage(before)
  console.log(`${plot.name}: ${cases.length} lives, ${((user + system) / 1e6).toFixed(1)} s of a processor`)
  if (failures.length > 0) expect.fail(failures.join('\n\n'))
}

/** Each plot with a death at each deed, one by one, and some with two. */
export function eachDeath(plots: Plot[]): void {
  describe.skipIf(only !== undefined).each(plots)('a process that dies in the plot $name', (plot) => {
    it('at any deed, right before it or right after it, breaks no promise, and the wish is met', {
      timeout: TIMEOUT_MS,
    }, async () => {
      const deeds = await live(plot, [])
      expect(deeds.length).toBeGreaterThan(5)
      const deaths = deathsOf(deeds).filter((_, index) => isAll || index % (plot.thinned ?? 1) === 0)
      await expectSurvived(
        plot,
        deaths.map((death) => [death]),
      )
    })

    it('and again in its next life', { timeout: TIMEOUT_MS }, async () => {
      const random = seeded(SEED)
      const pick = (below: number) => 1 + Math.floor(random() * below)
      const when = () => (random() < 0.5 ? 'before' : 'after')
      const { length } = await live(plot, [])
      const pairs = Array.from({ length: PAIRS }, () => {
        const first = pick(length)
        return [
          { at: first, when: when() },
          { at: first + pick(40), when: when() },
        ] as Death[]
      })
      await expectSurvived(plot, pairs)
    })
  })

  const [name, list = ''] = (only ?? '').split(' ')
  const plot = plots.find((one) => one.name === name)
  if (plot) it(`the case ${only}`, () => live(plot, deathsIn(list)))
}

function deathsIn(list: string): Death[] {
  const texts = list.split('+').filter((text) => text !== '')
  return texts.map((text) => {
    const [, at, when = ''] = /^(\d+)-(.*)$/.exec(text) ?? []
    if (!isWhen(when)) throw new Error(`not a case: ${text}`)
    return { at: Number(at), when }
  })
}
