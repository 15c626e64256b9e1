import { existsSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'

/** Text of a file of the project, by its path from the root. */
const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')
const exists = (path: string) => existsSync(new URL(`../../${path}`, import.meta.url))

/** Lines that match, by the heading that they stand under. */
function byHeading(text: string, line: RegExp): Map<string, string[]> {
  const sections = text.split(/^## /m).slice(1)
  return new Map(
    sections.map((section) => {
      const [heading = '', ...lines] = section.split('\n')
      return [heading, lines.filter((one) => line.test(one))]
    }),
  )
}

const listed = byHeading(read('test/fixtures/field-reports.txt'), /./)
const tables = byHeading(read('docs/field-reports.md'), /^\| \S+\/\S+#\d+ \|/)
const rows = [...tables.values()].flat().map((line) => {
  const [report = '', symptom = '', answer = ''] = line
    .split(' | ')
    .map((cell) => cell.replace(/^\| | \|$/g, ''))
  const tests = [...answer.matchAll(/`(test\/\S+)` › “([^”]+)”/g)].map(([, file = '', title = '']) => ({
    file,
    title,
  }))
  return { report, symptom, answer, tests }
})
const held = rows.flatMap(({ report, tests }) =>
  tests.map(({ file, title }) => [report, file, title] as const),
)

describe('the page of field reports', () => {
  it('has the headings of the list, in its order', () => {
    expect([...tables.keys()]).toEqual([...listed.keys()])
  })

  it('is of 159 reports, each named once', () => {
    expect([...listed.values()].flat()).toHaveLength(159)
    const reports = rows.map(({ report }) => report)
    expect(reports).toHaveLength(159)
    expect(new Set(reports).size).toBe(159)
  })

  it.each([...listed])('answers every report once: %s', (heading, reports) => {
    const answered = (tables.get(heading) ?? []).map((line) => line.split(' | ')[0]?.slice(2))
    expect(answered).toEqual(reports)
  })

  it.each(rows)('says what went wrong and why it does not here: $report', ({ symptom, answer, tests }) => {
    expect(symptom.length).toBeGreaterThan(10)
    if (answer.includes('`test/')) expect(tests).not.toEqual([])
    else expect(answer).toMatch(/^Does not apply: .{20}/)
  })

  it.each(held)('%s is held by %s › %s', (report, file, title) => {
    expect(exists(file)).toBe(true)
    const text = read(file)
    expect(text).toContain(title)
    expect(
      text
        .split(report)
        .slice(1)
        .some((after) => !/^\d/.test(after)),
    ).toBe(true)
  })
})
