import { readFileSync } from 'node:fs'
import { FailureCode, retryWindowSeconds } from '../lib/failure.ts'
import { UNDELIVERED, undelivered } from '../lib/letter.ts'
import { errorClass } from '../lib/proxmox/index.ts'
import { placeholders, symptoms } from '../lib/symptoms.ts'
import { duration } from './format.ts'

const page = new URL('../docs/operations.md', import.meta.url)
const begin = '<!-- Written by `npm run schemas` from lib/symptoms.ts. -->'
const end = '<!-- To here. -->'

/** docs/operations.md with the table of symptoms as the code has it; the rest is kept. */
export function operationsPage(): string {
  const text = readFileSync(page, 'utf8')
  const [from, to] = [text.indexOf(begin), text.indexOf(end)]
  if (from === -1 || to < from) throw new Error('docs/operations.md has lost the marks around its symptoms')
  return `${text.slice(0, from + begin.length)}\n\n${symptomsTable()}\n\n${text.slice(to)}`
}

function symptomsTable(): string {
  const rows = [
    ...FailureCode.options.map((code) => {
      const { symptom, hint } = symptoms[code]
      return [symptom, code, patience(code), hint(placeholders)]
    }),
    [undelivered.symptom, UNDELIVERED, 'no', undelivered.hint],
  ]
  return [
    '| what it looks like | code | tried again of itself | what to do |',
    '| --- | --- | --- | --- |',
    ...rows
      .sort(([a = ''], [b = '']) => a.localeCompare(b, 'en'))
      .map(
        ([symptom = '', code, again, hint = '']) =>
          `| ${cell(symptom)} | \`${code}\` | ${again} | ${cell(hint)} |`,
      ),
  ].join('\n')
}

function patience(code: FailureCode): string {
  const { passing } = symptoms[code]
  const kind =
    Object.entries(errorClass).find(([name]) => name === code)?.[1] ?? (passing ? 'transient' : 'permanent')
  if (kind === 'permanent') return 'no'
  return kind === 'wait' ? 'waited for' : `for ${duration(retryWindowSeconds(code, {}) * 1000)}`
}

/** Angle brackets are placeholders, not HTML; between backticks they are shown as they are. */
const cell = (text: string) =>
  text
    .split('`')
    .map((part, index) => (index % 2 === 1 ? part : part.replaceAll('<', '&lt;').replaceAll('>', '&gt;')))
    .join('`')
    .replaceAll('|', '\\|')
