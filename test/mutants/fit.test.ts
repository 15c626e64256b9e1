import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { plots } from '../faults/plots.ts'
import { mutants } from './mutants.ts'

const read = (file: string) => readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8')

// That each is caught is shown by `npm run mutants`, which takes longer than a test may.
describe.each(mutants)('the mutant “$name”', ({ edits, caughtBy }) => {
  it.each(edits)('finds its text once in $file', ({ file, find, replace }) => {
    expect(read(file).split(find)).toHaveLength(2)
    expect(replace).not.toBe(find)
  })

  it('is searched for by a plot that there is', () => {
    if ('plot' in caughtBy) expect(plots.map(({ name }) => name)).toContain(caughtBy.plot)
    if ('file' in caughtBy) expect(read(caughtBy.file)).toContain(caughtBy.title)
  })
})
