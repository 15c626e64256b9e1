import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { loadStage } from '../../infra/stage.ts'
import { loadConfig } from '../../lib/config.ts'
import { faults } from './faults.ts'
import { type Packaged, packageStage } from './package.ts'
import { permissionsPage } from './permissions.ts'
import { functions, roomOf } from './rules/functions.ts'
import { type RuleName, rules } from './rules/index.ts'
import type { Given } from './rules/rule.ts'
import { unzip } from './unzip.ts'

const path = (name: string) => new URL(`../../${name}`, import.meta.url).pathname
const { network, concurrency, logRetentionDays, alarmEmail } = loadStage(path('infra/stages/example.yml'))
const given: Given = {
  stage: 'example',
  concurrency,
  logRetentionDays,
  alarmEmail,
  config: loadConfig(path('config/example.yml')),
  ...(network.vpn ? { clusterCidrs: network.vpn.clusterCidrs, peerAddress: network.vpn.peerAddress } : {}),
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

describe('template of a stage without a layer for traces', () => {
  it('has nothing of it', () => {
    for (const [, { Properties }] of functions(packaged.template)) {
      expect(Properties.Layers ?? []).toEqual([])
      expect(Properties).not.toHaveProperty('TracingConfig')
      expect(Properties.Environment.Variables).not.toHaveProperty('AWS_LAMBDA_EXEC_WRAPPER')
    }
    expect(JSON.stringify(packaged.template)).not.toContain('XRay')
  })
})

describe('stack', () => {
  // They are given to CloudFormation with the template, which does not hold them.
  it('hands on to all that takes tags what the functions bear', () => {
    const { provider } = parse(readFileSync(path('serverless.yml'), 'utf8'), { logLevel: 'silent' })
    expect(provider.stackTags).toEqual({ application: 'egress-proxies', stage: `\${sls:stage}` })
    expect(provider.tags).toEqual(provider.stackTags)
  })
})

describe('page of permissions', () => {
  it('is what the template says', async () => {
    await expect(permissionsPage(packaged.template)).toMatchFileSnapshot('../../docs/aws-permissions.md')
  })
})

describe('bundles', () => {
  const budget: Record<string, number> = parse(readFileSync(path('infra/budget.yml'), 'utf8'))

  it('have a budget each', () => {
    expect(Object.keys(budget)).toEqual(functions(packaged.template).map(([, resource]) => roomOf(resource)))
  })

  it.each(Object.entries(budget))('of %s weigh at most %i KiB', (room, kib) => {
    const size = unzip(packaged.zip(room)).get(`functions/${room}/handler.mjs`)?.length ?? Number.NaN
    // Far below it, the number says nothing any more.
    expect(size / 1024).toBeLessThanOrEqual(kib)
    expect(size / 1024).toBeGreaterThan(kib * 0.8)
  })

  // Node reads it whole at each cold start: with every package in it, it is larger than the bundle.
  it.each(Object.keys(budget))('of %s have a map of our own source alone', (room) => {
    const files = unzip(packaged.zip(room))
    const map = files.get(`functions/${room}/handler.mjs.map`) ?? Buffer.alloc(0)
    const { sources } = JSON.parse(map.toString())
    expect(sources).toContainEqual(
      expect.stringMatching(/lib\/turn\.ts$|functions\/\w+\/round\.ts$|run\.ts$/),
    )
    expect(map.length).toBeLessThan((files.get(`functions/${room}/handler.mjs`)?.length ?? 0) / 3)
  })

  it.each(Object.keys(budget))(
    'of %s hold the configuration of the stage, the code, its map, and nothing else',
    (room) => {
      const handler = `functions/${room}/handler.mjs`
      expect([...unzip(packaged.zip(room)).keys()].sort()).toEqual([
        'config/example.yml',
        handler,
        `${handler}.map`,
      ])
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
