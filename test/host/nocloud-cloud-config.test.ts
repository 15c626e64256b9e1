import { execFileSync } from 'node:child_process'
import { expect, it } from 'vitest'
import { refusals } from '../../lib/nocloud/index.ts'
import { describeWith } from './tools.ts'

// Each is a cloud-config after its first line: what cloud-init leaves out without a word, and its neighbours that are fine.
const bodies = {
  'tabs between tokens': [
    ...[
      'a:\tb',
      'a: b\t# c',
      'a:\n\t- b',
      'a: [1,\t2]',
      '\ta: b',
      'a: b\t',
      'a:\n  - b\n\t\n  - c',
      'a: b c\td',
    ],
    ...[
      '? a\n:\tb',
      'a: {b:\t1}',
      'a:\t|\n  x',
      'runcmd:\n  - [sh,\t-c]',
      'a: b\n\t# c\nd: e',
      'a: !!str\tx',
    ],
    ...['a: &x\tb', '\t\na: b', 'a: b\n\t', 'a: b\n \t\n', 'a: x\n\ty'],
  ],
  'tabs that are text': ['a: "x\ty"', "a: 'x\ty'", 'a: |\n  x\ty', 'a: |\n  \tx', '# x\ty\na: b', 'a: "\\t"'],
  characters: ['a: \u0085b', 'a: \u2028b', 'a: \u0007', 'a: "\u001b"', 'a: \u00a0b', 'a: ü', 'a: \u{1f600}'],
  documents: ['a: b\n---\nc: d', '---\na: b', 'a: b\n...', '%YAML 1.1\n---\na: b', '[a]', 'a', ''],
  'aliases and tags': [
    ...['a: *x', 'a: &x b\nc: *x', 'a: !foo b', '!!python/object a: b', 'a: !!str 1', 'a: !!int x'],
    ...['a: &x {b: 1}\nc: {<<: *x}', 'a: <<', '<<: 1', 'a: =', 'a: "="'],
  ],
  keys: ['{}: b', '[a]: b', '? [a]\n: b', '{a: b}: c', '? a', '?', '1: a', 'null: a', 'yes: a', 'a: 1\na: 2'],
  scalars: [
    'a: @b',
    'a: %b',
    'a: b: c',
    'a: - b',
    'a: [b',
    'a: ]',
    'a: "\\/"',
    'a: "\\q"',
    'a: "\\x4"',
    'a: 1:20',
  ],
}

describeWith(['cloud-init'], 'a cloud-config', () => {
  it.each(Object.entries(bodies))('that we take is one that cloud-init takes: %s', (_, texts) => {
    const script = [
      'import json, sys',
      'from cloudinit import safeyaml',
      'def takes(text):',
      '  try: value = safeyaml.load(text)',
      '  except Exception: return False',
      '  return value is None or isinstance(value, dict)',
      'print(json.dumps([takes(text) for text in json.load(sys.stdin)]))',
    ].join('\n')
    const documents = texts.map((text) => `#cloud-config\n${text}\n`)
    // Debian's own Python: another one first in PATH does not have cloud-init.
    const input = JSON.stringify(documents)
    const theirs: unknown = JSON.parse(execFileSync('/usr/bin/python3', ['-c', script], { input }).toString())
    const ours = documents.map((userData) => refusals({ allow: [], userData }).length === 0)
    const told = (verdicts: unknown) =>
      texts.map((text, index) => `${JSON.stringify(text)} ${Object(verdicts)[index] ? 'taken' : 'refused'}`)
    expect(told(ours)).toEqual(told(theirs))
  })
})
