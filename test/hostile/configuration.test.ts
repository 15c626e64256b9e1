import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { stringify } from 'yaml'
import { configFindings } from '../../cli/config-findings.ts'
import { type Config, ConfigError, parseConfig } from '../../lib/config.ts'
import { connection } from '../../lib/connection.ts'
import { createProxmox } from '../../lib/proxmox/index.ts'
import { createSecrets } from '../../lib/secrets.ts'
import { root } from '../cli/egress.ts'
import { egressSeveral } from '../cli/egress-several.ts'
import { aDocument } from '../lib/a-config.ts'
import { jsonOf, mangled, mutated, nested } from './mutations.ts'

// Whatever a configuration file holds: it can be used, or a message says which field, what came and what was wanted.

/** All that a configuration can say. */
const full = aDocument({
  placement: 'fewest',
  spreadBy: 'team',
  limits: { clonesPerStorage: 2, proxiesPerZone: 10, maxDeletions: 5 },
  defaults: {
    size: { cores: 1, memoryMiB: 512, diskGiB: 4 },
    proxy: {
      protocol: 'http',
      port: 3128,
      allow: ['10.0.0.0/8'],
      auth: { username: 'a', passwordParameter: 'b' },
    },
    ttlSeconds: 3600,
    labels: { team: 'search' },
  },
  verify: { probe: 'http', probeUrl: 'http://page.test/', probeFrom: ['10.0.0.0/8'] },
  timings: { maxClockSkewSeconds: 0, deadlineSeconds: { clone: 600 }, retryWindowSeconds: { NoSpace: 60 } },
  check: { stopped: 'start', silent: 'report', silentRounds: 3, maxResumes: 20 },
})
const example = readFileSync(join(root, 'config/example.yml'), 'utf8')

/** Some pages at most, and nothing in them that a terminal obeys or that looks like lines of somebody else. */
const told = /^[^\p{Cc}\u2028\u2029\u202e]{1,1500}$/u

function reads(text: string): Config | undefined {
  try {
    return used(parseConfig(text, '/etc/egress/some.yml'))
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    expect(error.complaints.length).toBeGreaterThan(0)
    expect(error.complaints.length).toBeLessThanOrEqual(31)
    for (const { path, got, wanted } of error.complaints) {
      expect(path).toMatch(told)
      expect(got).toMatch(told)
      expect(wanted).toMatch(told)
    }
    return undefined
  }
}

/** What was accepted is of use to everybody who starts from it. */
function used(config: Config): Config {
  configFindings(config)
  const { parameters } = config
  const secrets = createSecrets({
    ssm: () => {
      throw new Error('nobody is asked')
    },
    parameters,
  })
  for (const { caFile: _, ...cluster } of Object.values(config.clusters))
    createProxmox({ ...connection(cluster, secrets), ca: 'x' })
  for (const { cluster } of Object.values(config.zones)) expect(config.clusters[cluster]).toBeDefined()
  return config
}

describe('a configuration, whatever it is,', () => {
  it('is used or refused by its fields: what the schema knows, changed', () => {
    fc.assert(
      fc.property(mutated(full), fc.boolean(), (document, asJson) => {
        reads(asJson ? jsonOf(document) : stringify(document ?? null))
      }),
      { numRuns: 120 },
    )
  })

  it('is used or refused by its fields: the example with letters changed', () => {
    fc.assert(
      fc.property(mangled(example), (text) => void reads(text)),
      { numRuns: 40 },
    )
  })

  it('is used or refused by its fields: texts and trees of any kind', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string({ unit: 'binary', maxLength: 300 }),
          fc.string({ unit: fc.constantFrom(...'[]{}:,&*!|>-?"\'#% \n\tab1'.split('')), maxLength: 60 }),
          fc.json({ maxDepth: 6 }),
          fc
            .object({ key: fc.constantFrom('__proto__', 'clusters', 'zones', 'constructor', '') })
            .map(jsonOf),
        ),
        (text) => void reads(text),
      ),
      { numRuns: 250 },
    )
  })

  it.each([
    ['of a NUL', `deployment: "a\0b"\n`],
    ['of a NUL where a file is named', stringify(aDocument({ parameters: { file: 'a\0b' } }))],
    ['of keys that come twice', `${stringify(full)}deployment: other\n`],
    ['of a prototype', jsonOf(full).replace('"deployment"', '"__proto__":{"polluted":1},"deployment"')],
    ['of a zone that is a prototype', jsonOf(full).replace('"lab-2"', '"__proto__"')],
    ['of an image that is a prototype', jsonOf(full).replace('"ubuntu-24.04"', '"__proto__"')],
    [
      'of a cluster that every object has',
      jsonOf(full).replace('"cluster":"lab"', '"cluster":"constructor"'),
    ],
    [
      'of a parameter that is all of them',
      stringify(aDocument({ clusters: { lab: { ...full.clusters.lab, token: { ssm: '*' } } } })),
    ],
    ['of tags', 'deployment: !secret abc\n'],
    ['of another version of YAML', `%YAML 1.1\n---\n${stringify(full)}x: !!binary aGVsbG8=\n`],
    ['of two documents', `${stringify(full)}---\n${stringify(full)}`],
    ['of nothing', ''],
    ['of comments', '# nothing\n'],
    ['of UTF-16', Buffer.from(`\ufeff${stringify(full)}`, 'utf16le').toString('utf8')],
    ['of aliases of aliases', laughs()],
    ['of an alias in itself', 'a: &a\n  b: *a\n'],
    ['of a list without end', `deployment: ${nested(5_000)}`],
    ['of a list that nobody closes', `deployment: ${'['.repeat(10_000)}`],
    ['of maps without end', `deployment: ${'{a: '.repeat(5_000)}`],
    ['of a list in a list', `deployment:\n${' '.repeat(2)}${'- '.repeat(50_000)}`],
    ['of keys by the ten thousand', Array.from({ length: 15_000 }, (_, index) => `k${index}: 1`).join('\n')],
    [
      'of zones by the ten thousand',
      stringify({ ...full, zones: many(2_000, { cluster: 'lab', nodes: ['x'] }) }),
    ],
    ['of clusters by the thousand', stringify({ ...full, clusters: many(500, {}) })],
    ['of a name of a megabyte', stringify({ ...full, zones: { ['z'.repeat(900_000)]: { cluster: 'q' } } })],
    [
      'of a cluster whose name a terminal obeys',
      stringify({ ...full, clusters: { 'a\u001b[2J\nb': full.clusters.lab } }),
    ],
    [
      'of a node whose name a terminal obeys',
      jsonOf(full).replace('"pve2":9001', '"pve2\\u001b[2J\\n":9001'),
    ],
  ])('is refused at once: one %s', { timeout: 20_000 }, (_, text) => {
    expect(reads(text)).toBeUndefined()
    expect(({} as Record<string, unknown>).polluted).toBeUndefined()
  })

  it.each([
    ['a mark of the order of its bytes', `\ufeff${stringify(full)}`],
    ['the ends of lines of other systems', stringify(full).replaceAll('\n', '\r\n')],
    ['the start and the end of a document', `---\n${stringify(full)}...\n`],
    ['an alias', `${stringify(full).replace('size:', 'size: &size')}`],
  ])('is used with %s', (_, text) => {
    expect(reads(text)?.deployment).toBe('test')
  })
})

describe('egress check --config', () => {
  let folder: string
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'egress-hostile-config-'))
  })
  afterAll(() => rmSync(folder, { recursive: true }))

  it('says what is wrong with any file, in a few lines, and takes no more memory for it', {
    timeout: 120_000,
  }, async () => {
    const texts = [
      ...fc.sample(fc.oneof(mutated(full).map(jsonOf), mangled(example), fc.string({ unit: 'binary' })), 6),
      laughs(),
      nested(5_000),
      'deployment: !secret abc',
      'a: *b',
      '\0'.repeat(1000),
      '#'.repeat(20_000_000),
    ]
    mkdirSync(join(folder, 'a-folder'))
    const files = texts.map((text, index) => {
      const path = join(folder, `${index}.yml`)
      writeFileSync(path, text)
      return path
    })
    const paths = [
      ...files,
      join(folder, 'a-folder'),
      join(folder, 'none.yml'),
      '/dev/zero',
      '/dev/null',
      '',
      'a\0b',
    ]
    const { ran, rssMiB } = await egressSeveral(paths.map((path) => ['check', '--config', path]))
    expect(ran).toHaveLength(paths.length)
    for (const { line, code, out, err } of ran) {
      const [, , path = ''] = line
      expect({ path, code }).not.toEqual({ path, code: null })
      expect(`${code}`, `${path}: ${err}`).toMatch(/^[02]$/)
      expect(err).not.toMatch(/^\s+at |EGRESS_DEBUG|Warning/m)
      expect(err.split('\n').length).toBeLessThan(40)
      if (code === 2) expect(out + err).toMatch(/got .+, wanted |cannot be read|: .+ is /)
    }
    // A command that reads a good one takes some 130.
    expect(rssMiB).toBeLessThan(500)
  })
})

function many(count: number, value: object): Record<string, object> {
  return Object.fromEntries(Array.from({ length: count }, (_, index) => [`z${index}`, value]))
}

/** A billion laughs: each line nine times the one before. */
function laughs(): string {
  const lines = Array.from({ length: 30 }, (_, index) => {
    const before = Array(9).fill(`*a${index - 1}`)
    return index === 0 ? 'a0: &a0 [lol]' : `a${index}: &a${index} [${before.join(', ')}]`
  })
  return `${lines.join('\n')}\n`
}
