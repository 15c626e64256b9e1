import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { FindingCode } from '../../functions/check/event.ts'
import { Config } from '../../lib/config.ts'

const page = readFileSync(new URL('../../docs/operations.md', import.meta.url), 'utf8')
const [, section = ''] = /^## check\n([\s\S]*?)(?=^## |(?![\s\S]))/m.exec(page) ?? []
const explained = new Set(
  section.split('\n').flatMap((line) => {
    const [, codes = ''] = /^\| ((?:`\w+`(?:, )?)+) \|/.exec(line) ?? []
    return [...codes.matchAll(/`(\w+)`/g)].map(([, code]) => code)
  }),
)

it('the page for operators explains every code that check can find, and no other', () => {
  expect([...explained].sort()).toEqual([...FindingCode.options].sort())
})

it('the page for operators names the settings of check as they are', () => {
  const { stopped, silent, silentRounds, maxResumes } = Config.shape.check.parse(undefined)
  expect({ stopped, silent, silentRounds, maxResumes }).toEqual({
    stopped: 'start',
    silent: 'report',
    silentRounds: 3,
    maxResumes: 20,
  })
  for (const text of [
    '`silentRounds` rounds (3)',
    '`maxResumes` (20)',
    '`stopped: replace`',
    '`silent: replace`',
  ])
    expect(section).toContain(text)
})
