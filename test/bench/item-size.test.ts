import { describe, expect, it } from 'vitest'
import { itemBytes, writeUnits } from '../../bench/item-size.ts'
import { tables } from '../../local/resources.ts'

const row = (over: Record<string, { S: string } | { N: string }> = {}) => ({
  uid: { S: 'alpha' },
  phase: { S: 'Ready' },
  createdAt: { N: '1767225600000' },
  placedOn: { S: 'lab/pve1' },
  ...over,
})

describe('the size of an item', () => {
  it('is that of its names and values, numbers two digits a byte', () => {
    expect(itemBytes({ ab: { S: 'grün' } })).toBe(2 + 5)
    expect(itemBytes({ n: { N: '1767225600000' } })).toBe(1 + 1 + 7)
    expect(itemBytes({ b: { BOOL: true }, m: { M: { k: { S: 'v' } } }, l: { L: [{ S: 'x' }] } })).toBe(
      1 + 1 + (1 + 3 + 1 + 1 + 1) + (1 + 3 + 1 + 1),
    )
    expect(itemBytes(undefined)).toBe(0)
  })
})

describe('the units of a write', () => {
  const { proxies } = tables

  it('are those of the table and of each index that an item enters', () => {
    expect(writeUnits(undefined, row(), proxies)).toEqual({ table: 1, indexes: 2 })
  })

  it('leave out an index whose projection does not change', () => {
    // byPhase projects what a row accounts for, byNode only keys.
    expect(writeUnits(row(), row({ turn: { N: '2' } }), proxies)).toEqual({ table: 1, indexes: 0 })
    expect(writeUnits(row(), row({ seed: { S: 'x' } }), proxies)).toEqual({ table: 1, indexes: 1 })
    expect(writeUnits(row(), row(), proxies)).toEqual({ table: 1, indexes: 0 })
  })

  it('count a changed index key as a removal and an entry', () => {
    expect(writeUnits(row(), row({ phase: { S: 'Deleting' } }), proxies)).toEqual({ table: 1, indexes: 2 })
  })

  it('leave out an index whose key the item lacks', () => {
    const { placedOn: _, ...nowhere } = row()
    expect(writeUnits(undefined, nowhere, proxies)).toEqual({ table: 1, indexes: 1 })
    expect(writeUnits(row(), nowhere, proxies)).toEqual({ table: 1, indexes: 1 })
  })

  it('are counted by the larger of both items, a KiB each', () => {
    const large = row({ seed: { S: 'x'.repeat(1500) } })
    expect(writeUnits(large, row(), proxies)).toEqual({ table: 2, indexes: 2 })
  })
})
