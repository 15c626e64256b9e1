import { describe, expect, it } from 'vitest'
import { explore } from './explore.ts'
import { protocol, RULES, type Rule, type Scenario } from './protocol.ts'
import { scenarios, shownBy } from './scenarios.ts'

const TIMEOUT_MS = 300_000
/** The model sees no harm in these alone, since another rule stands behind them; the crash points watch over them. */
const DOUBLED: readonly Rule[] = ['destroysOnlySettled']
/** Six hundred thousand states, which take a minute; here only for the rule that shows in it. */
const LARGE: readonly string[] = ['failure and deletion']
const worlds = Object.entries<Scenario>(scenarios).filter(([name]) => !LARGE.includes(name))
const rules = (Object.keys(RULES) as Rule[]).filter((rule) => !DOUBLED.includes(rule))

describe('the protocol, gone through state by state', () => {
  it.each(worlds)(
    'keeps its promises in this world: %s',
    (name, scenario) => {
      const { states, steps, violation } = explore(protocol(scenario))
      console.log(`${name}: ${states} states, ${steps} steps`)
      expect.soft(violation?.promise).toBeUndefined()
      expect(violation?.story.join('\n')).toBeUndefined()
    },
    TIMEOUT_MS,
  )

  it.each(rules.map((rule) => [RULES[rule], rule] as const))(
    'breaks a promise unless %s',
    (_, rule) => {
      const { violation } = explore(protocol({ ...scenarios[shownBy[rule]], without: rule }))
      expect(violation?.promise).toBeDefined()
      expect(violation?.story.length).toBeGreaterThan(1)
    },
    TIMEOUT_MS,
  )
})
