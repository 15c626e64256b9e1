import { describe, expect, it } from 'vitest'
import { keyOf, parse } from '../../../functions/delete/event.ts'
import { InvalidEvent } from '../../../lib/events.ts'

const read = (event: unknown) => parse(JSON.stringify(event))

describe('delete: events', () => {
  it('are a wish for absence, an orphan, and our own', () => {
    const orphan = { type: 'Orphan', cluster: 'lab', vmid: 5001, uid: 'a' }
    for (const event of [
      { type: 'ProxyDeletionRequested', uid: 'a' },
      orphan,
      { type: 'Continue', uid: 'orphan#lab#5001', turn: 1 },
      { type: 'Resume', uid: 'a', turn: 1 },
    ]) {
      expect(read(event)).toEqual(event)
    }
  })

  it('are about a row: a deletion about the publisher’s, an orphan about one of its own', () => {
    expect(keyOf({ type: 'ProxyDeletionRequested', uid: 'a' })).toBe('a')
    expect(keyOf({ type: 'Orphan', cluster: 'lab', vmid: 5001, uid: 'a' })).toBe('orphan#lab#5001')
  })

  it.each([
    [{ type: 'ProxyDeletionRequested' }, 'uid: got nothing, wanted a string'],
    [{ type: 'ProxyDeletionRequested', uid: 'orphan#lab#1' }, 'uid: got "orphan#lab#1", wanted 1 to 63 of'],
    [{ type: 'ProxyDeletionRequested', uid: 'a', generation: 2 }, 'generation: got a field of this name'],
    [{ type: 'Orphan', cluster: 'lab', vmid: 99, uid: 'a' }, 'vmid: got 99'],
    [
      { type: 'ProxyRequested', uid: 'a' },
      'type: got "ProxyRequested", wanted ProxyDeletionRequested or Orphan',
    ],
  ])('refuse %j', (event, complaint) => {
    expect(() => read(event)).toThrow(InvalidEvent)
    expect(() => read(event)).toThrow(complaint)
  })
})
