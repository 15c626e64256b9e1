import { describe, expect, it } from 'vitest'
import { succeeded } from '../../local/batch-answer.ts'

const ids = ['a', 'b', 'c']
const failing = (...list: unknown[]) => ({ batchItemFailures: list })

describe('batch-answer', () => {
  it.each([
    ['null', null],
    ['nothing', undefined],
    ['an empty object', {}],
    ['a null list', { batchItemFailures: null }],
    ['an empty list', failing()],
  ])('takes %s for success of all', (_, answer) => {
    expect(succeeded(answer, ids)).toEqual(ids)
  })

  it('takes what is not named as failed for done', () => {
    expect(succeeded(failing({ itemIdentifier: 'b' }), ids)).toEqual(['a', 'c'])
    expect(succeeded(failing(...ids.map((itemIdentifier) => ({ itemIdentifier }))), ids)).toEqual([])
  })

  it.each([
    ['an empty identifier', failing({ itemIdentifier: '' })],
    ['a null identifier', failing({ itemIdentifier: null })],
    ['a misspelt key', failing({ itemIdentifer: 'a' })],
    ['a message of another batch', failing({ itemIdentifier: 'z' })],
    ['text', 'fine'],
    ['a list', { batchItemFailures: 'a' }],
  ])('gives the whole batch back on %s', (_, answer) => {
    expect(succeeded(answer, ids)).toEqual([])
  })
})
