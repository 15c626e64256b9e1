import { beforeAll, describe, expect, it } from 'vitest'
import { differences, type Names, type OurAnswer } from './compare.ts'
import { elsewhere, reasonFor } from './coverage.ts'
import { conformancePage } from './page.ts'
import { recording, scenarios } from './recording.ts'
import { replay } from './replay.ts'
import { replayed, scenarioOf } from './scenarios.ts'

describe.each([8, 9] as const)('PVE %i as recorded', (version) => {
  describe.each(scenarios(version).filter((name) => !(name in elsewhere)))('%s', (name) => {
    const recorded = recording(version, name)
    const exchanges = recorded.exchanges
      .map((exchange, index) => ({ ...exchange, index, title: `#${index} ${exchange.label}` }))
      .flatMap(({ request, response, ...rest }) =>
        request && response ? [{ request, response, ...rest }] : [],
      )
    const left = exchanges.filter(({ index }) => reasonFor(version, name, index))
    const kept = exchanges.filter(({ index }) => !reasonFor(version, name, index))
    let answers: Map<number, OurAnswer>
    let names: Names

    beforeAll(async () => {
      ;({ answers, names } = await replay(version, recorded, scenarioOf(version, name)))
    })

    const compare = (index: number, response: (typeof exchanges)[number]['response']): string[] => {
      const ours = answers.get(index)
      return ours ? differences(response, ours, names) : ['no answer']
    }

    it.each(kept)('answers alike: $title', ({ index, response }) => {
      expect(compare(index, response)).toEqual([])
    })

    if (left.length === 0) return

    it('differs where the table of exceptions says so', () => {
      expect(
        left.filter(({ index, response }) => compare(index, response).length === 0).map(({ title }) => title),
      ).toEqual([])
    })
  })
})

describe('the table of what is compared', () => {
  it('knows every recorded scenario', () => {
    const known = [...replayed(), ...Object.keys(elsewhere)].sort()
    expect([...new Set([...scenarios(8), ...scenarios(9)])].sort()).toEqual(known)
  })

  it('stands in docs/conformance.md', async () => {
    await expect(conformancePage()).toMatchFileSnapshot('../../docs/conformance.md')
  })
})
