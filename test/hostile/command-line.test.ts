import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { stringify } from 'yaml'
import { egressSeveral, type RanOne } from '../cli/egress-several.ts'
import { openStage, type Stage } from '../cli/stage.ts'
import { aDocument } from '../lib/a-config.ts'

// Command lines as nobody means them, by the real parser, on a real installation without functions: each ends with a code and
// a line that says why, and changes nothing unless it says that it did.

let stage: Stage
let folder: string
beforeAll(async () => {
  stage = await openStage()
  folder = mkdtempSync(join(tmpdir(), 'egress-hostile-line-'))
  const config = join(folder, 'config.yml')
  writeFileSync(
    config,
    stringify(aDocument({ clusters: { lab: { ...aDocument().clusters.lab, endpoints: closed } } })),
  )
  stage.useConfig(config)
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

/** Every command with its flags; those of the place are left to the test. */
const commands: Record<string, string[]> = {
  request: [
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
    'password-parameter',
    'user-data',
    'ttl',
    'label',
    'timeout',
    'json',
    'file',
  ],
  delete: ['timeout'],
  get: ['json'],
  list: ['phase', 'all', 'zone', 'label', 'json'],
  explain: ['json'],
  'dlq ls': ['messages', 'code', 'json'],
  'dlq show': ['raw', 'json'],
  'dlq redrive': ['code', 'all', 'body', 'json'],
  'dlq drop': ['overtaken', 'reason', 'yes'],
  check: ['all', 'strict', 'json', 'stored', 'role', 'pve', 'token-id', 'config'],
  'gc last': ['json'],
  events: ['json', 'take', 'count'],
  'token rotate': ['cluster', 'admin-token-file', 'old', 'kms-key', 'config'],
  token: ['cluster'],
  schema: ['of'],
  'sim vms': ['admin', 'node'],
  'sim qm': ['node'],
  'sim faults': ['add', 'remove'],
  'sim node': ['admin'],
}

const flag = (names: string[]) =>
  fc
    .record({
      name: fc.oneof(
        { weight: 8, arbitrary: fc.constantFrom(...names) },
        {
          weight: 1,
          arbitrary: fc.constantFrom(
            'data',
            'table',
            'create-queue-url',
            'claims-table',
            'topic-arn',
            '__proto__',
            'x',
          ),
        },
      ),
      value: words,
      how: fc.constantFrom('two', 'two', 'two', 'one', 'bare', 'no', 'dotted', 'twice'),
    })
    .map(({ name, value, how }): string[] => {
      if (how === 'one') return [`--${name}=${value}`]
      if (how === 'bare') return [`--${name}`]
      if (how === 'no') return [`--no-${name}`]
      if (how === 'dotted') return [`--${name}.${value.slice(0, 9)}`, 'x']
      if (how === 'twice') return [`--${name}`, value, `--${name}`, 'shop-1']
      return [`--${name}`, value]
    })

const line = fc
  .constantFrom(...Object.keys(commands))
  .chain((command) =>
    fc.tuple(
      fc.constant(command.split(' ')),
      fc.array(words, { maxLength: 2 }),
      fc.array(flag(commands[command] ?? []), { maxLength: 4 }),
    ),
  )
  .map(([command, positionals, flags]) => [...command, ...positionals, ...flags.flat()])

/** `events` without an end listens for ever; what is taken from the queue of events is not taken twice. */
const ends = (args: string[]) => (args[0] === 'events' ? [...args, '--take'] : args)

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
    /^\s+at .*:\d+|node:internal|\bTypeError\b|is not a function|of undefined|Warning:|"code": "/m,
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
    const lines = fc.sample(line, 250).map((args) => ends([...args, '--data', stage.folder]))
    const cwd = join(folder, 'here')
    mkdirSync(cwd)
    const { ran } = await egressSeveral(lines, { cwd })
    expect(ran).toHaveLength(lines.length)
    for (const one of ran) expectTold(one)
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
