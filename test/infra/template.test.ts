import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { loadStage } from '../../infra/stage.ts'
import { loadConfig } from '../../lib/config.ts'
import { faults } from './faults.ts'
import { type Packaged, packageStage } from './package.ts'
import { type RuleName, rules } from './rules/index.ts'
import type { Given } from './rules/rule.ts'

const path = (name: string) => new URL(`../../${name}`, import.meta.url).pathname
const { network } = loadStage(path('infra/stages/example.yml'))
const given: Given = {
  stage: 'example',
  config: loadConfig(path('config/example.yml')),
  ...('vpn' in network ? { clusterCidrs: network.vpn.clusterCidrs } : {}),
}

let packaged: Packaged
beforeAll(async () => {
  packaged = await packageStage('example')
})
afterAll(() => packaged?.remove())

/** `queuesAreEncrypted` → `queues are encrypted` */
const words = (name: string) => name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)

describe('template', () => {
  it.each(Object.keys(rules).map((name) => ({ name: name as RuleName, words: words(name) })))(
    '$words',
    async ({ name }) => {
      expect(await rules[name](packaged.template, given)).toEqual([])
    },
  )
})

describe('rules', () => {
  it.each(faults)('notice $title', async ({ plant, says }) => {
    const template = structuredClone(packaged.template)
    plant(template.Resources, template)
    const [name, complaint] = says.split(/: (.*)/)
    // By the type of `says`, its first word is the name of a rule.
    const found = await rules[name as RuleName](template, given)
    expect(found).toContainEqual(expect.stringContaining(complaint ?? ''))
  })

  it('are each shown by a planted fault to be able to fail', () => {
    const shown = new Set(faults.map(({ says }) => says.split(':')[0]))
    expect(Object.keys(rules).filter((name) => !shown.has(name))).toEqual([])
  })
})
