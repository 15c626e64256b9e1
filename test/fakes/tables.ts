import { ConditionalCheckFailedException, DynamoDBClient } from '@aws-sdk/client-dynamodb'
import {
  DeleteCommand,
  DynamoDBDocumentClient,
  GetCommand,
  PutCommand,
  QueryCommand,
  UpdateCommand,
} from '@aws-sdk/lib-dynamodb'
import { marshall } from '@aws-sdk/util-dynamodb'

type Item = Record<string, unknown>
type Words = {
  ExpressionAttributeNames?: Record<string, string> | undefined
  ExpressionAttributeValues?: Record<string, unknown> | undefined
}
type Keys = { partition: string; sort?: string }

/**
 * DynamoDB in memory behind the SDK's own client, for lives by the thousand on the very code that writes to tables: the
 * conditions and updates that this project uses, and a refusal of every other. Held to the emulator by test/contract.
 * `timesSent` is how often the SDK sends a write, of which the caller hears the last: 2 is a retry whose first try landed.
 */
export function createMemoryTables(tables: Record<string, Keys>, timesSent: () => number = () => 1) {
  const kept = new Map(Object.keys(tables).map((name) => [name, new Map<string, Item>()]))
  const client = DynamoDBDocumentClient.from(
    new DynamoDBClient({
      region: 'nowhere-1',
      credentials: { accessKeyId: 'none', secretAccessKey: 'none' },
    }),
  )
  const items = (table: string | undefined) => {
    const found = kept.get(table ?? '')
    if (!found) throw new Error(`there is no table ${table}`)
    return found
  }
  const keyOf = (table: string | undefined, item: Item = {}) => {
    const { partition, sort } = tables[table ?? ''] ?? { partition: '' }
    return [item[partition], sort === undefined ? undefined : item[sort]].join('\n')
  }

  function write(command: PutCommand | UpdateCommand | DeleteCommand): { Attributes?: Item } {
    const { input } = command
    const table = items(input.TableName)
    const key = keyOf(input.TableName, 'Item' in input ? input.Item : 'Key' in input ? input.Key : undefined)
    const before = table.get(key)
    if (input.ConditionExpression !== undefined && !holds(input.ConditionExpression, before ?? {}, input)) {
      throw new ConditionalCheckFailedException({
        message: 'The conditional request failed',
        $metadata: {},
        ...(before && input.ReturnValuesOnConditionCheckFailure === 'ALL_OLD'
          ? { Item: marshall(before, { removeUndefinedValues: true }) }
          : {}),
      })
    }
    if (command instanceof DeleteCommand) {
      table.delete(key)
      return {}
    }
    const after =
      command instanceof PutCommand ? copy(command.input.Item ?? {}) : updated(before, command.input)
    table.set(key, after)
    return { Attributes: after }
  }

  function query({ input }: QueryCommand): { Items: Item[] } {
    if (!/^#\w+ = :\w+$/.test(input.KeyConditionExpression ?? ''))
      throw new Error(`not a key condition that is known here: ${input.KeyConditionExpression}`)
    const found = [...items(input.TableName).values()].filter((item) =>
      holds(input.KeyConditionExpression ?? '', item, input),
    )
    const { sort = '' } = tables[input.TableName ?? ''] ?? {}
    return { Items: found.sort((a, b) => (String(a[sort]) < String(b[sort]) ? -1 : 1)) }
  }

  async function send(command: unknown): Promise<unknown> {
    if (command instanceof GetCommand) {
      const item = items(command.input.TableName).get(keyOf(command.input.TableName, command.input.Key))
      return item ? { Item: item } : {}
    }
    if (command instanceof QueryCommand) return query(command)
    if (
      command instanceof PutCommand ||
      command instanceof UpdateCommand ||
      command instanceof DeleteCommand
    ) {
      for (let left = timesSent(); left > 1; left--) {
        try {
          write(command)
        } catch (error) {
          if (!(error instanceof ConditionalCheckFailedException)) throw error
        }
      }
      return write(command)
    }
    throw new Error('not a command that is known here')
  }

  return {
    client: Object.assign(client, { send }),
    items: (table: string) => items(table),
  }
}

/** As it would come back from a table: what is undefined is not there, and nothing is shared with who wrote it. */
const copy = (item: Item): Item => frozen(JSON.parse(JSON.stringify(item, (_, value) => stored(value))))

/** The SDK refuses to send what DynamoDB has no number for, where JSON would make null of it. */
function stored(value: unknown): unknown {
  if (typeof value !== 'number' || Number.isFinite(value)) return value
  throw new Error(`Special numeric value ${value} is not allowed`)
}

/** Who reads it gets what is stored, and cannot change it. */
function frozen<T>(value: T): T {
  if (typeof value !== 'object' || value === null) return value
  for (const part of Object.values(value)) frozen(part)
  return Object.freeze(value)
}

const word = '(#?\\w+(?:\\.#?\\w+)*)'
const exists = new RegExp(`^(attribute_exists|attribute_not_exists)\\(${word}\\)$`)
const compares = new RegExp(`^${word} (=|<=|>=|<|>) (:\\w+)$`)

/** A condition of parts that all hold, or of which one does. */
function holds(expression: string, item: Item, words: Words): boolean {
  const parts = expression.split(/ (AND|OR) /)
  const terms = parts.filter((_, index) => index % 2 === 0)
  const joints = new Set(parts.filter((_, index) => index % 2 === 1))
  if (joints.size > 1) throw new Error(`not a condition that is known here: ${expression}`)
  const results = terms.map((term) => termHolds(term.trim(), item, words))
  return joints.has('OR') ? results.includes(true) : !results.includes(false)
}

function termHolds(term: string, item: Item, words: Words): boolean {
  const [, test, path] = exists.exec(term) ?? []
  if (path !== undefined) return (at(path, item, words) !== undefined) === (test === 'attribute_exists')
  const [, left, operator, right] = compares.exec(term) ?? []
  if (left === undefined || right === undefined)
    throw new Error(`not a condition that is known here: ${term}`)
  const value = at(left, item, words)
  const other = words.ExpressionAttributeValues?.[right]
  if (operator === '=') return value !== undefined && value === other
  if (operator === undefined || typeof value !== 'number' || typeof other !== 'number') return false
  if (value === other) return operator === '<=' || operator === '>='
  return operator.startsWith('<') ? value < other : value > other
}

function at(path: string, item: Item, words: Words): unknown {
  let value: unknown = item
  for (const name of path.split('.').map((part) => nameOf(part, words)))
    value = typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined
  return value
}

function nameOf(part: string, { ExpressionAttributeNames: names = {} }: Words): string {
  if (!part.startsWith('#')) return part
  const name = names[part]
  if (name === undefined) throw new Error(`${part} is named nowhere`)
  return name
}

const clause = new RegExp(`^${word} = (?:if_not_exists\\(${word}, (:\\w+)\\)|(:\\w+))(?: \\+ (:\\w+))?$`)

function updated(before: Item | undefined, input: UpdateCommand['input']): Item {
  // What was stored cannot be changed, so that its parts may be of the next as well.
  const after: Item = { ...before, ...input.Key }
  const expression = input.UpdateExpression ?? ''
  const [, removed] = /^REMOVE (#\w+)$/.exec(expression) ?? []
  if (removed !== undefined) {
    delete after[nameOf(removed, input)]
    return Object.freeze(after)
  }
  const value = (name: string | undefined) =>
    name === undefined ? 0 : input.ExpressionAttributeValues?.[name]
  if (!expression.startsWith('SET ')) throw new Error(`not an update that is known here: ${expression}`)
  // What is set is worked out of the item as it was.
  for (const part of expression.slice('SET '.length).split(/, (?=#)/)) {
    const [, target, source, otherwise, plain, added] = clause.exec(part) ?? []
    if (target === undefined) throw new Error(`not an update that is known here: ${part}`)
    const base = source === undefined ? value(plain) : (at(source, before ?? {}, input) ?? value(otherwise))
    const set = added === undefined ? base : Number(base) + Number(value(added))
    after[nameOf(target, input)] = copy({ set }).set
  }
  return Object.freeze(after)
}
