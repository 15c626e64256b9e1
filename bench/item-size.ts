import type { AttributeValue } from '@aws-sdk/client-dynamodb'

export type StoredItem = Record<string, AttributeValue>

/** Bytes of an item as DynamoDB bills them. Source: DynamoDB Developer Guide, item sizes and formats. */
export function itemBytes(item: StoredItem | undefined): number {
  if (!item) return 0
  return Object.entries(item).reduce(
    (total, [name, value]) => total + Buffer.byteLength(name) + bytesOf(value),
    0,
  )
}

function bytesOf(value: AttributeValue): number {
  if (value.S !== undefined) return Buffer.byteLength(value.S)
  if (value.N !== undefined) return 1 + Math.ceil(value.N.replace(/\D/g, '').length / 2)
  if (value.BOOL !== undefined || value.NULL !== undefined) return 1
  if (value.L) return value.L.reduce((total, one) => total + 1 + bytesOf(one), 3)
  if (value.M) {
    const parts = Object.entries(value.M)
    return parts.reduce((total, [name, one]) => total + 1 + Buffer.byteLength(name) + bytesOf(one), 3)
  }
  throw new Error(`no size is known for ${Object.keys(value).join()}`)
}

type Index = {
  KeySchema: readonly { AttributeName: string }[]
  Projection: { ProjectionType: string; NonKeyAttributes?: readonly string[] }
}

/** Write units of one change: of the table, and of each index whose projection it changes. */
export function writeUnits(
  before: StoredItem | undefined,
  after: StoredItem | undefined,
  { keys, indexes }: { keys: readonly { AttributeName: string }[]; indexes: readonly Index[] },
): { table: number; indexes: number } {
  const table = units(Math.max(itemBytes(before), itemBytes(after)))
  const ofIndexes = indexes.map((index) => {
    const [old, fresh] = [projected(before, index, keys), projected(after, index, keys)]
    if (JSON.stringify(old) === JSON.stringify(fresh)) return 0
    const moved = old && fresh && keyOf(old, index) !== keyOf(fresh, index)
    if (!moved) return units(Math.max(itemBytes(old), itemBytes(fresh)))
    return units(itemBytes(old)) + units(itemBytes(fresh))
  })
  return { table, indexes: ofIndexes.reduce((total, one) => total + one, 0) }
}

const units = (bytes: number) => Math.max(1, Math.ceil(bytes / 1024))
const keyOf = (item: StoredItem, { KeySchema }: Index) =>
  JSON.stringify(KeySchema.map(({ AttributeName }) => item[AttributeName]))

/** What of an item stands in an index; nothing when it lacks a part of the index's key. */
export function projected(
  item: StoredItem | undefined,
  { KeySchema, Projection }: Index,
  keys: readonly { AttributeName: string }[],
): StoredItem | undefined {
  if (!item || KeySchema.some(({ AttributeName }) => item[AttributeName] === undefined)) return undefined
  const names =
    Projection.ProjectionType === 'ALL'
      ? Object.keys(item)
      : [
          ...[...keys, ...KeySchema].map(({ AttributeName }) => AttributeName),
          ...(Projection.NonKeyAttributes ?? []),
        ]
  return Object.fromEntries(
    [...new Set(names)].sort().flatMap((name) => {
      const value = item[name]
      return value === undefined ? [] : [[name, value]]
    }),
  )
}
