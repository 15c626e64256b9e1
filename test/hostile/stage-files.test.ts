import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as fc from 'fast-check'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { readSettings } from '../../infra/settings.ts'
import { ConfigError } from '../../lib/config.ts'
import { root } from '../cli/egress.ts'
import { aDocument } from '../lib/a-config.ts'
import { jsonOf, mangled, mutated, nested } from './mutations.ts'

// What a deployment is made from: a stage's name and its two files, whatever they are.

const lab = aDocument().clusters.lab
const config = aDocument({ clusters: { lab: { ...lab, token: { ssm: '/t' } } }, parameters: { ssm: true } })
const stage = {
  region: 'eu-central-1',
  protect: true,
  concurrency: { create: 4, delete: 4 },
  logRetentionDays: 30,
  secretsKeyArn: 'arn:aws:kms:eu-central-1:123456789012:key/1a2b3c4d-5e6f-7a8b-9c0d-1e2f3a4b5c6d',
  alarmEmail: 'a@example.com',
  tracing: {
    layers: ['arn:aws:lambda:eu-central-1:123456789012:layer:name:7'],
    environment: { OTEL_SERVICE_NAME: 'x' },
  },
  network: {
    vpn: {
      vpcCidr: '10.20.0.0/16',
      peerAddress: '203.0.113.10',
      clusterCidrs: ['192.168.10.0/24'],
      proxyPorts: { from: 3128, to: 3128 },
      dynamodbPrefixListId: 'pl-66a5400f',
    },
  },
}
const example = readFileSync(join(root, 'infra/stages/example.yml'), 'utf8')
const told = /^[^\p{Cc}\u2028\u2029\u202e]{1,1000}$/u

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'egress-hostile-stage-'))
  mkdirSync(join(folder, 'config'))
  mkdirSync(join(folder, 'infra/stages'), { recursive: true })
})
beforeEach(() => writeFileSync(join(folder, 'config/test.yml'), jsonOf(config)))
afterAll(() => rmSync(folder, { recursive: true }))

function reads(text: string): void {
  writeFileSync(join(folder, 'infra/stages/test.yml'), text)
  try {
    const settings = readSettings(folder, 'test')
    // A template says only what JSON can say.
    expect(JSON.parse(JSON.stringify(settings))).toEqual(settings)
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    expect(error.complaints.length).toBeGreaterThan(0)
    for (const { path, got, wanted } of error.complaints)
      for (const words of [path, got, wanted]) expect(words).toMatch(told)
  }
}

describe('the file of a stage, whatever it is,', () => {
  it('makes settings or is refused by its fields', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          { weight: 4, arbitrary: mutated(stage).map(jsonOf) },
          mangled(example),
          fc.string({ unit: 'binary', maxLength: 100 }),
          fc.json({ maxDepth: 5 }),
        ),
        reads,
      ),
      { numRuns: 80 },
    )
  })

  it.each([
    ['a list without end', nested(20_000)],
    ['a tag', 'region: !secret abc'],
  ])('is answered at once: %s', (_, text) => reads(text))
})

describe('the configuration of a stage, whatever it is,', () => {
  it('makes settings or is refused by its fields', () => {
    writeFileSync(join(folder, 'infra/stages/test.yml'), jsonOf(stage))
    fc.assert(
      fc.property(mutated(config), (document) => {
        writeFileSync(join(folder, 'config/test.yml'), jsonOf(document))
        reads(jsonOf(stage))
      }),
      { numRuns: 80 },
    )
  })
})

describe('the name of a stage, whatever it is,', () => {
  it.each([
    '',
    '.',
    '../test',
    'a/../test',
    '/etc/passwd',
    'a\0b',
    'a\nb',
    'x'.repeat(5000),
    '__proto__',
    '$(id)',
    'a b',
    '-x',
    '9',
  ])('is refused: %j', (name) => {
    let error: unknown
    try {
      readSettings(folder, name)
    } catch (thrown) {
      error = thrown
    }
    expect(error).toMatchObject({ complaints: [{ path: '--stage', got: expect.stringMatching(told) }] })
    expect((error as Error).message.length).toBeLessThan(1000)
  })
})
