import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { stringify } from 'yaml'
import { egress } from '../cli/egress.ts'
import { egressSeveral, type RanOne } from '../cli/egress-several.ts'
import { openStage, type Stage } from '../cli/stage.ts'
import { aDocument } from '../lib/a-config.ts'
import { aRow } from '../lib/a-row.ts'
import { jsonOf, mangled, mutated, nested } from './mutations.ts'

// Command lines as nobody means them, by the real parser, on a real installation without functions: each ends with a code and
// a line that says why, and changes nothing unless it says that it did.

let stage: Stage
let folder: string
let config: string
beforeAll(async () => {
  stage = await openStage()
  folder = mkdtempSync(join(tmpdir(), 'egress-hostile-line-'))
  config = join(folder, 'config.yml')
  writeFileSync(
    config,
    stringify(aDocument({ clusters: { lab: { ...aDocument().clusters.lab, endpoints: closed } } })),
  )
  stage.useConfig(config)
  await stage.store(aRow({ uid: 'shop-1', name: 'shop' }))
}, 60_000)
afterAll(async () => {
  await stage.close()
  rmSync(folder, { recursive: true })
})

/** Nobody listens there. */
const closed = [{ url: 'https://127.0.0.1:1', fingerprint: Array(32).fill('AA').join(':') }]

const words = fc.oneof(
  fc.constantFrom(
    '',
    ' ',
    '-',
    '--',
    '---',
    '-1',
    '0',
    '1e999',
    'NaN',
    '0x10',
    '99999999999999999999',
    '__proto__',
    'constructor',
    'a\nb',
    'a\tb',
    '\u001b[2J',
    '\u202e',
    'ü',
    '\ud83d\ude00',
    '../../etc/passwd',
    '/dev/null',
    '/',
    '.',
    'a b',
    'A_B',
    '$(id)',
    '`id`',
    "'; rm -rf /",
    '*',
    '%00',
    'x'.repeat(5000),
    '{"a":1}',
    '[1]',
    'shop-1',
    'lab-1',
    'debian-12',
    'key=value',
    '=',
    '=x',
    '10.0.0.0/8',
    '999.0.0.0/99',
    'Ready',
    'true',
    'null',
  ),
  fc.string({ unit: 'grapheme', maxLength: 12 }).filter((text) => !text.includes('\0')),
)

type Command = { words?: number; flags: string[]; always?: string[] }

/** Every command with how many words and which flags it takes, and what it does nothing without. */
const commands: Record<string, Command> = {
  request: {
    flags: [
      ...[
        'name',
        'zone',
        'image',
        'uid',
        'generation',
        'cores',
        'memory-mib',
        'disk-gib',
        'port',
        'allow',
        'username',
      ],
      ...['password-parameter', 'user-data', 'ttl', 'label', 'timeout', 'json', 'file', 'file', 'file'],
    ],
  },
  delete: { words: 1, flags: ['timeout'] },
  get: { words: 1, flags: ['json'] },
  list: { flags: ['phase', 'all', 'zone', 'label', 'json'] },
  explain: { words: 1, flags: ['json'] },
  'dlq ls': { flags: ['messages', 'code', 'json'] },
  'dlq show': { words: 1, flags: ['raw', 'json'] },
  'dlq redrive': { words: 1, flags: ['code', 'all', 'body', 'json'] },
  'dlq drop': { words: 1, flags: ['overtaken', 'reason'], always: ['--yes', '--reason', 'seen'] },
  check: { flags: ['all', 'strict', 'json', 'stored', 'role', 'pve', 'token-id', 'config'] },
  gc: { words: 1, flags: ['json'] },
  // Without an end it listens for ever.
  events: { flags: ['json', 'count'], always: ['--take'] },
  'token rotate': { flags: ['admin-token-file', 'old', 'kms-key', 'config'], always: ['--cluster', 'lab'] },
  'token rotate --config CONFIG': { flags: ['cluster', 'stage'] },
  schema: { words: 1, flags: [] },
  'sim vms': { flags: ['admin'] },
  'sim qm': { words: 2, flags: [], always: ['--node', 'pve1'] },
  'sim faults': { flags: ['add', 'add', 'remove'] },
  'sim node': { words: 2, flags: ['admin'] },
}

const flag = (names: string[], values: fc.Arbitrary<string>) =>
  fc
    .record({
      name: fc.oneof(
        { weight: 15, arbitrary: fc.constantFrom(...names) },
        { weight: 1, arbitrary: fc.constantFrom('data', 'table', 'topic-arn', '__proto__', 'x') },
      ),
      value: values,
      how: fc.oneof(
        { weight: 12, arbitrary: fc.constantFrom('two', 'one') },
        { weight: 1, arbitrary: fc.constantFrom('bare', 'no', 'dotted', 'twice') },
      ),
    })
    .map(({ name, value, how }): string[] => {
      if (how === 'one') return [`--${name}=${value}`]
      if (how === 'bare') return [`--${name}`]
      if (how === 'no') return [`--no-${name}`]
      if (how === 'dotted') return [`--${name}.${value.slice(0, 9)}`, 'x']
      if (how === 'twice') return [`--${name}`, value, `--${name}`, 'shop-1']
      return [`--${name}`, value]
    })

const switches = ['json', 'all', 'messages', 'raw', 'strict', 'stored', 'role', 'overtaken']

/** A look at dead letters waits a second for more of them. */
const quick = Object.entries(commands).filter(([name]) => !name.startsWith('dlq'))
const alsoOften = [...quick, ...quick]

/** A command line; `files` are names that its flags may have as well. */
const lineWith = (files: string[]) =>
  fc
    .constantFrom(...Object.entries(commands), ...alsoOften)
    .chain(([command, { words: count = 0, flags, always = [] }]) => {
      const values = fc.oneof(words, fc.constantFrom(...files))
      const valued = flags.filter((name) => !switches.includes(name))
      const switched = flags.filter((name) => switches.includes(name)).map((name) => `--${name}`)
      return fc
        .tuple(
          fc.oneof(
            { weight: 9, arbitrary: fc.array(words, { minLength: count, maxLength: count }) },
            { weight: 1, arbitrary: fc.array(words, { maxLength: 3 }) },
          ),
          valued.length === 0 ? fc.constant([]) : fc.array(flag(valued, values), { maxLength: 3 }),
          fc.subarray(switched),
        )
        .map(([positionals, given, on]) => [
          ...command.split(' '),
          ...positionals,
          ...always,
          ...given.flat(),
          ...on,
        ])
    })

const request = {
  name: 'shop',
  spec: { zone: 'lab-1', image: 'debian-12', labels: { team: 'a' }, ttlSeconds: 3600 },
}

/** What files hold that a flag may name. */
const contents = fc.oneof(
  mutated(request).map(jsonOf),
  mangled(jsonOf(request)),
  mangled(stringify(request)),
  fc.json({ maxDepth: 4 }),
  fc.string({ unit: 'binary', maxLength: 200 }),
  fc.constantFrom(
    '',
    '[]',
    '{}',
    'null',
    nested(20_000),
    '{"__proto__":{"name":"a"}}',
    'a: !x y',
    'a: *b',
    'egress@pve!a=b',
  ),
)

const everything = async () => ({
  create: await stage.bodies('create'),
  delete: await stage.bodies('delete'),
  letters: (await stage.letters()).map(({ Body }) => Body),
  // A round of check leaves its report there.
  claims: (await stage.claims()).filter(({ partition }) => partition !== 'check-report'),
})

function expectTold({ line: args, code, out, err }: RanOne): void {
  const about = JSON.stringify(args).slice(0, 600)
  expect([0, 1, 2], `${about}: ${err}`).toContain(code)
  expect(err, about).not.toMatch(
    /^\s+at .*:\d+|node:internal|\bTypeError\b|is not a function|of undefined|Warning:|EGRESS_DEBUG|"code": "/m,
  )
  expect(err, about).not.toMatch(/[^\P{Cc}\n\t]|\p{Cf}/u)
  if (code !== 0) expect(err.trim(), about).not.toBe('')
  if (code !== 0) expect(err.split('\n').length, err).toBeLessThan(60)
  expect(err.length + (code === 0 ? 0 : out.length), about).toBeLessThan(60_000)
}

describe('a command line, whatever it is,', () => {
  it('ends with a code and a reason, and has written nothing that it does not tell of', {
    timeout: 180_000,
  }, async () => {
    const files = fc.sample(contents, 30).map((text, index) => {
      writeFileSync(join(folder, `${index}.txt`), text)
      return join(folder, `${index}.txt`)
    })
    const lines = fc
      .sample(lineWith(files), 70)
      // A number of events that is none would be waited for.
      .concat(['0', '1.5', 'x', '1e999', '-1'].map((count) => ['events', '--take', '--count', count]))
      .map((args) => [...args.map((arg) => (arg === 'CONFIG' ? config : arg)), '--data', stage.folder])
    const cwd = join(folder, 'here')
    mkdirSync(cwd)
    const { ran } = await egressSeveral(lines, { cwd })
    expect(ran).toHaveLength(lines.length)
    for (const one of ran) expectTold(one)
    expect(ran.slice(-5).map(({ code }) => code)).toEqual([2, 2, 2, 2, 2])
    const { create, delete: deletions, letters, claims } = await everything()
    const fine = (command: string) =>
      ran.filter((one) => one.code === 0 && one.line[0] === command && one.out + one.err !== '')
    expect({ letters, claims }).toEqual({ letters: [], claims: [] })
    expect(create.length).toBeLessThanOrEqual(fine('request').length)
    expect(deletions.length).toBeLessThanOrEqual(
      ran.filter((one) => one.code === 0 && one.line[0] === 'delete').length,
    )
    expect(readdirSync(cwd)).toEqual([])
  })
})

/** Characters that a queue takes. Source: Amazon SQS, SendMessage. */
const CARRIED = /^[\t\n\r -\ud7ff\ue000-\ufffd]+$/u

describe('what comes from the topic, whatever it is,', () => {
  it('is shown, and what lies behind it too', async () => {
    const event = {
      type: 'ProxyReady',
      uid: 'shop-1',
      eventId: 'shop-1:1:1',
      endpoint: 'http://10.0.0.1:3128',
    }
    const bodies = [
      ...[
        '',
        'no JSON',
        'null',
        '1',
        '"text"',
        '[]',
        '{}',
        '{"Type":"Notification"}',
        '{"__proto__":{"type":"x"}}',
      ],
      ...[
        '{"Type":"Notification","Message":"no JSON"}',
        '{"Type":"Notification","Message":{"a":1}}',
        nested(5_000),
      ],
      ...fc.sample(mutated(event).map(jsonOf), 8),
      `{"type":"\u001b[2J","uid":{"a":["\u202e"]}}`,
      jsonOf(event),
    ].filter((body) => CARRIED.test(body))
    const told: string[][] = []
    for (const flags of [[], ['--json']]) {
      for (const body of bodies) await stage.tell(body)
      const { ran } = await egressSeveral([['events', '--take', ...flags, '--data', stage.folder]])
      expect(ran).toMatchObject([{ code: 0, err: '' }])
      for (const one of ran) expectTold(one)
      told.push((ran[0]?.out ?? '').trimEnd().split('\n'))
    }
    const [lines = [], documents = []] = told
    expect([lines.length, documents.length]).toEqual([bodies.length, bodies.length])
    expect(lines.join('')).toContain('ProxyReady    shop-1')
    expect(lines.join('')).not.toMatch(/[\p{Cc}\p{Cf}]/u)
    expect(documents.map((document) => JSON.parse(document))).toContainEqual(event)
  })
})

describe('egress token set', () => {
  it.each([
    ['bytes', Buffer.from([0xff, 0xfe, 0, 1, 2, 0x80]).toString('latin1')],
    ['a token and a header', 'egress@pve!a=b\r\nx-injected: 1'],
  ])('refuses %s from standard input, and writes nothing', async (_, input) => {
    const before = readdirSync(folder).sort()
    const { code, out, err } = await egress(
      ['token', 'set', '--cluster', 'lab', '--config', config, '--no-verify'],
      {
        input,
      },
    )
    expect({ code, out }).toEqual({ code: 2, out: '' })
    expect(err).toMatch(/^egress: standard input holds .*token/)
    expect(err).not.toContain('injected')
    expect(readdirSync(folder).sort()).toEqual(before)
  })
})
