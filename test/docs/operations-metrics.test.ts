import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { METRICS, NAMESPACE, WAIT_REASONS } from '../../lib/metrics.ts'

const page = readFileSync(new URL('../../docs/operations.md', import.meta.url), 'utf8')
const [, section = ''] = /^## Metrics\n([\s\S]*?)(?=^## |(?![\s\S]))/m.exec(page) ?? []
/** The rows of a table of the section, by its first heading. */
const rowsUnder = (heading: string) => {
  const lines = section.split('\n')
  const from = lines.findIndex((line) => line.startsWith(`| ${heading} |`)) + 2
  const rows = lines.slice(from)
  return rows.slice(
    0,
    rows.findIndex((line) => !line.startsWith('|')),
  )
}

it('the page for operators has every metric with its unit, its dimensions and when it is written, and no other', () => {
  const expected = Object.entries(METRICS).map(([name, { unit, by, when }]) => {
    const dimensions = by.map((dimension) => `\`${dimension}\``).join(', ')
    return `| \`${name}\` | ${unit} | ${dimensions} | ${when} |`
  })
  expect(rowsUnder('metric')).toEqual(expected)
  expect(section).toContain(`Namespace \`${NAMESPACE}\``)
})

it('the page for operators says what each kind of waiting is', () => {
  const expected = Object.entries(WAIT_REASONS).map(([why, what]) => `| \`${why}\` | ${what} |`)
  expect(rowsUnder('`why`')).toEqual(expected)
})
