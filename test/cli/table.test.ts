import { expect, it } from 'vitest'
import { columns } from '../../cli/table.ts'

it('lines columns up by what a terminal shows, and keeps each row on its line', () => {
  const drawn = columns(
    ['UID', 'STATE', 'PROBLEM'],
    [
      ['a', 'Ready', ''],
      ['東京', 'Failed', 'two\nlines'],
      ['three', 'Deleted'],
    ],
  )
  expect(drawn.split('\n')).toEqual([
    'UID    STATE    PROBLEM',
    'a      Ready',
    '東京   Failed   two lines',
    'three  Deleted',
  ])
})
