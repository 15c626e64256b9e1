import { createHash } from 'node:crypto'
import type { Cluster } from '../../sim/engine/cluster.ts'
import { createCluster } from '../../sim/engine/create.ts'
import { createFront, type Front } from '../../sim/http/front.ts'
import {
  createVirtualClock,
  SimConnectionError,
  type SimOptions,
  type SimRequest,
  type VirtualClock,
  type World,
} from '../../sim/index.ts'
import { seededRandom } from '../sim/harness.ts'
import { type Names, type OurAnswer, translate } from './compare.ts'
import { hostTasks } from './host-tasks.ts'
import type { Recorded, RecordedRequest, Recording } from './recording.ts'

export type Stage = {
  cluster: Cluster
  hosts: ReturnType<typeof createCluster>['hosts']
  front: Front
  clock: VirtualClock
  world: World
  names: Names
  version: 8 | 9
}

export type Scenario = {
  world: World
  options?: Partial<SimOptions>
  /** What the recording's own script did before a request, or when the event happened; gives the ms it took. */
  settle?: (stage: Stage, recorded: Recorded, index: number) => Promise<number>
}

/** Sends every recorded request at its recorded moment, and gives our answers by index. */
export async function replay(
  version: 8 | 9,
  recording: Recording,
  scenario: Scenario,
): Promise<{ answers: Map<number, OurAnswer>; names: Names }> {
  const clock = createVirtualClock(Date.UTC(2026, 11, 1))
  const { cluster, engine, hosts, close } = createCluster({
    world: scenario.world,
    clock,
    random: seededRandom(7),
    ...scenario.options,
  })
  const front = createFront(engine)
  const names: Names = new Map([[recordedChecksum, ourChecksum]])
  const stage: Stage = { cluster, hosts, front, clock, world: scenario.world, names, version }
  const answers = new Map<number, OurAnswer>()
  const open: Promise<void>[] = []
  const startMs = clock.now()
  let shiftMs = 0

  const inOrder = recording.exchanges
    .map((recorded, index) => ({ recorded, index }))
    .sort((a, b) => (a.recorded.t ?? 0) - (b.recorded.t ?? 0) || a.index - b.index)

  const others = hostTasks(recording, startMs)
  for (const { recorded, index } of inOrder) {
    for (let next = others[0]; next && next.atMs <= (recorded.t ?? 0) * 1000; next = others[0]) {
      others.shift()
      cluster.state.tasks[next.task.upid] = next.task
    }
    const dueMs = startMs + (recorded.t ?? 0) * 1000 + shiftMs
    if (dueMs > clock.now()) await clock.advance(dueMs - clock.now())
    shiftMs += (await scenario.settle?.(stage, recorded, index)) ?? 0
    if (!recorded.request) continue
    open.push(
      send(stage, { ...recorded, request: recorded.request }).then((answer) => {
        answers.set(index, answer)
        learn(names, recorded, answer)
      }),
    )
  }
  await clock.until(Promise.all(open), 600_000)
  await close()
  return { answers, names }
}

async function send(
  { front, names }: Stage,
  recorded: Recorded & { request: RecordedRequest },
): Promise<OurAnswer> {
  try {
    const { status, reason, body } = await front.handle('pve1', requestOf(recorded, names))
    return { status, reason, body }
  } catch (error) {
    if (error instanceof SimConnectionError) return { connection: error.code }
    throw error
  }
}

function requestOf(
  { request: recorded, response, label = '' }: Recorded & { request: RecordedRequest },
  names: Names,
): SimRequest {
  // Only of strangers is it sure that the header was not left out by the recording alone.
  const isAnonymous = response?.status === 401
  const letter = label.includes('two-byte') ? 'é' : 'y'
  const headers: Record<string, string> = {}
  for (const [name, value] of Object.entries(recorded.headers ?? {}))
    headers[name.toLowerCase()] = String(value)
  if (!isAnonymous)
    headers.authorization ??= 'PVEAPIToken=runner@pve!ctl=22222222-2222-4222-8222-222222222222'
  const path = translate(recorded.path, withEscapes(names))
  const { body, type } = bodyOf(recorded, names, letter)
  if (type !== undefined) headers['content-type'] = type
  return { method: recorded.method, path, headers, ...(body ? { body } : {}) }
}

/** UPIDs stand in paths with their `:`, `@` and `!` escaped, or some of them. */
function withEscapes(names: Names): Names {
  const more: Names = new Map(names)
  for (const [theirs, mine] of names)
    more.set(encodeURIComponent(theirs), encodeURIComponent(mine)).set(escaped(theirs), escaped(mine))
  return more
}

const escaped = (text: string): string =>
  text.replace(/[:@!]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`)

const form = 'application/x-www-form-urlencoded'

/** The ISO of the recordings, and what stands for it here. */
const recordedChecksum = 'b70a56c8eb065b2ee67fcc23cb06af2e9fc151889697dc2f63e1bfb6a8b7b73f'
const isoBytes = Buffer.alloc(374_784, 1)
const ourChecksum = createHash('sha256').update(isoBytes).digest('hex')

type Part = { name: string; value: string; filename: string | null; ctype?: string | null }

function bodyOf(
  { body, headers }: RecordedRequest,
  names: Names,
  letter: string,
): { body?: Uint8Array; type?: string } {
  if (body === null || body === undefined || body === '') return {}
  if (Array.isArray(body)) return multipart(body as Part[], names) // the recording's own form for an upload
  const text = String(body)
  if (text.startsWith('multipart'))
    return multipart(
      uploadOf(/(\S+\.(?:iso|img))/.exec(text)?.[1]?.replace('filename=', '') ?? 'x.iso'),
      names,
    )
  const type = Array.isArray(headers) ? undefined : headers?.['Content-Type']
  const long = /^<description of (\d+) characters>$/.exec(text) ?? /^description=<(\d+) x>$/.exec(text)
  // So many bytes that nothing else fits the label, "description 8193 long".
  if (text === '<8215 bytes>')
    return { body: Buffer.from(`newid=121&description=${'d'.repeat(8193)}`), type: form }
  const sent = long ? `description=${letter.repeat(Number(long[1]))}` : translate(text, names)
  return { body: Buffer.from(sent), type: type ?? form }
}

const uploadOf = (filename: string): Part[] => [
  { name: 'content', value: 'iso', filename: null },
  { name: 'filename', value: '<374784 bytes>', filename },
]

function multipart(parts: Part[], names: Names): { body: Uint8Array; type: string } {
  const boundary = 'b0undary-1234'
  const chunks = parts.flatMap((part) => {
    const file = part.filename === null ? '' : `; filename="${part.filename}"`
    const type = part.ctype ? `Content-Type: ${part.ctype}\r\n` : ''
    const size = /^<(\d+) bytes>$/.exec(part.value)?.[1]
    const value =
      size === undefined ? Buffer.from(translate(part.value, names)) : Buffer.alloc(Number(size), 1)
    return [
      Buffer.from(
        `--${boundary}\r\nContent-Disposition: form-data; name="${part.name}"${file}\r\n${type}\r\n`,
      ),
      value,
      Buffer.from('\r\n'),
    ]
  })
  return {
    body: Buffer.concat([...chunks, Buffer.from(`--${boundary}--\r\n`)]),
    type: `multipart/form-data; boundary=${boundary}`,
  }
}

/** Takes down what an answer calls by another name here: a new task, a digest. */
function learn(names: Names, recorded: Recorded, ours: OurAnswer): void {
  if ('connection' in ours || !ours.body.startsWith('{')) return
  const theirs = field(recorded.response?.body, 'data')
  const mine = field(JSON.parse(ours.body), 'data')
  for (const [a, b] of [
    [theirs, mine],
    [field(theirs, 'digest'), field(mine, 'digest')],
  ]) {
    if (
      typeof a === 'string' &&
      typeof b === 'string' &&
      (/^UPID:/.test(a) || /^[0-9a-f]{40}$/.test(a)) &&
      a !== b
    )
      names.set(a, b)
  }
}

const field = (value: unknown, key: string): unknown =>
  typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined
