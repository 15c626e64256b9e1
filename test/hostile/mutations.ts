import * as fc from 'fast-check'

type Path = (string | number)[]

/** Values that readers trip over, beside whatever fast-check thinks of. */
const odd: fc.Arbitrary<unknown> = fc.oneof(
  fc.constantFrom<unknown>(
    null,
    '',
    ' ',
    '0',
    '-1',
    0,
    -1,
    1.5,
    1e308,
    Number.MAX_SAFE_INTEGER + 2,
    true,
    [],
    {},
    '__proto__',
    'constructor',
    'toString',
    'a\nb',
    'a\0b',
    'a,b=c;d',
    '../..',
    '\u001b[2J',
    '\u009b2J',
    '\u202e',
    '\ud800',
    '$(id)',
    "'; rm -rf /; '",
    'x'.repeat(10_000),
  ),
  fc.string({ unit: 'binary', maxLength: 30 }),
  fc.double({ noNaN: true }),
  fc.bigInt({ min: -(10n ** 30n), max: 10n ** 30n }).map(Number),
  fc.jsonValue({ maxDepth: 2 }),
)

/** A valid document with one to three of its parts taken away, put in another place, or made into something else. */
export function mutated(valid: unknown): fc.Arbitrary<unknown> {
  const paths = pathsOf(valid)
  const change = fc.record({
    at: fc.constantFrom(...paths),
    kind: fc.constantFrom('set', 'remove', 'add', 'wrap', 'copy'),
    value: odd,
    name: fc.oneof(
      fc.constantFrom('__proto__', 'constructor', 'toString', 'type', 'uid', 'a\u001bb', '', 'x'.repeat(300)),
      fc.string({ maxLength: 10 }),
    ),
    from: fc.constantFrom(...paths),
  })
  return fc.array(change, { minLength: 1, maxLength: 3 }).map((changes) => {
    let document: unknown = structuredClone(valid)
    for (const { at, kind, value, name, from } of changes) {
      const before = valueAt(document, at)
      if (kind === 'set') document = placed(document, at, value)
      if (kind === 'wrap') document = placed(document, at, [before])
      if (kind === 'copy') document = placed(document, at, valueAt(document, from))
      if (kind === 'remove') document = placed(document, at, undefined)
      if (kind === 'add' && isObject(before)) document = placed(document, [...at, name], value)
    }
    return document
  })
}

/** A text with some of its characters changed, taken away or doubled. */
export const mangled = (valid: string): fc.Arbitrary<string> =>
  fc
    .array(
      fc.record({
        at: fc.nat({ max: Math.max(0, valid.length - 1) }),
        cut: fc.nat({ max: 8 }),
        put: fc.string({ unit: 'binary', maxLength: 8 }),
      }),
      { minLength: 1, maxLength: 4 },
    )
    .map((changes) =>
      changes.reduce((text, { at, cut, put }) => text.slice(0, at) + put + text.slice(at + cut), valid),
    )

/** JSON whose `__proto__` is a key like any other, which an object literal cannot say. */
export const jsonOf = (document: unknown): string => JSON.stringify(document) ?? 'null'

/** A list in a list in a list … */
export const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth)

function pathsOf(value: unknown, path: Path = []): Path[] {
  const inner = Array.isArray(value)
    ? value.flatMap((item, index) => pathsOf(item, [...path, index]))
    : isObject(value)
      ? Object.entries(value).flatMap(([name, item]) => pathsOf(item, [...path, name]))
      : []
  return [path, ...inner]
}

const valueAt = (document: unknown, path: Path): unknown =>
  path.reduce<unknown>(
    // What a list brings along by nature, no document holds.
    (value, key) =>
      (isObject(value) || Array.isArray(value)) && Object.hasOwn(value, key)
        ? Reflect.get(value, key)
        : undefined,
    document,
  )

function placed(document: unknown, path: Path, value: unknown): unknown {
  const [key, ...rest] = path
  if (key === undefined) return value
  if (Array.isArray(document))
    return document.map((item, index) => (index === key ? placed(item, rest, value) : item))
  if (!isObject(document)) return document
  const entries = Object.entries(document).filter(([name]) => name !== key)
  const inner = placed(Object.hasOwn(document, key) ? Reflect.get(document, key) : undefined, rest, value)
  return Object.fromEntries([...entries, ...(inner === undefined ? [] : [[String(key), inner]])])
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
