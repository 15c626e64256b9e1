import { createSim, createVirtualClock, defaultWorld, type Sim, type SimOptions } from '../../sim/index.ts'

export type Answer = {
  status: number
  reason: string
  // Bodies differ by endpoint: a test says what it looks for.
  // biome-ignore lint/suspicious/noExplicitAny: the test asserts on the shape itself
  data: any
  message?: string
  errors?: Record<string, string>
  tookMs: number
}

type Options = Omit<SimOptions, 'world'> & {
  version?: 8 | 9
  nodes?: number
  /** Another world than the default one, with the tokens to call it by. */
  world?: SimOptions['world']
  tokens?: { egress: string; admin: string }
}

/** A simulator under a clock of its own, and an `api` that moves the clock until the answer is there. */
export function openSim({ version = 9, nodes = 3, tokens, ...options }: Options = {}) {
  const clock = createVirtualClock()
  const known = defaultWorld({ version, nodes })
  const sim = createSim({ world: known, clock, random: seededRandom(1), ...options })
  const { egress, admin } = tokens ?? known.tokens
  return {
    sim,
    clock,
    world: known,
    api: caller(sim, clock, egress),
    admin: caller(sim, clock, admin),
    task: taskEnd(sim, clock),
  }
}

/** The same numbers at each run. */
export function seededRandom(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 2 ** 32
  }
}

type Clock = ReturnType<typeof createVirtualClock>

export function caller(sim: Sim, clock: Clock, token: string, node = 'pve1') {
  const headers = { authorization: `PVEAPIToken=${token}` }
  const send = async (
    method: string,
    path: string,
    extra: Record<string, string>,
    body?: Uint8Array,
  ): Promise<Answer> => {
    const startMs = clock.now()
    const request = {
      method,
      path: `/api2/json${path}`,
      headers: { ...headers, ...extra },
      ...(body && { body }),
    }
    const answer = await clock.until(sim.request(node, request))
    const parsed = answer.body.startsWith('{') ? JSON.parse(answer.body) : { data: undefined }
    return { status: answer.status, reason: answer.reason, tookMs: clock.now() - startMs, ...parsed }
  }
  const call = (method: string, path: string, form?: Record<string, string>): Promise<Answer> =>
    form
      ? send(method, path, { 'content-type': 'application/x-www-form-urlencoded' }, encode(form))
      : send(method, path, {})
  const upload = async (
    target: string,
    storage: string,
    filename: string,
    bytes: Uint8Array,
    fields: Record<string, string> = {},
  ): Promise<Answer> => {
    const boundary = 'testboundary'
    const part = (name: string, value: string) =>
      `--${boundary}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`
    const head = [
      ...Object.entries({ content: 'iso', ...fields }).map(([name, value]) => part(name, value)),
    ].join('')
    const file = `--${boundary}\r\nContent-Disposition: form-data; name="filename"; filename="${filename}"\r\nContent-Type: application/octet-stream\r\n\r\n`
    const body = Buffer.concat([Buffer.from(head + file), bytes, Buffer.from(`\r\n--${boundary}--\r\n`)])
    const type = `multipart/form-data; boundary=${boundary}`
    return send('POST', `/nodes/${target}/storage/${storage}/upload`, { 'content-type': type }, body)
  }
  return Object.assign(call, { upload })
}

const encode = (form: Record<string, string>): Uint8Array => Buffer.from(new URLSearchParams(form).toString())

/** Moves the clock until the task has ended, and gives its exit text. */
function taskEnd(sim: Sim, clock: Clock) {
  return async (upid: unknown): Promise<string> => {
    for (let waitedMs = 0; waitedMs < 600_000; waitedMs += 100) {
      const task = sim.tasks().find((candidate) => candidate.upid === upid)
      if (!task) throw new Error(`no such task: ${String(upid)}`)
      if (task.exitstatus !== undefined) return task.exitstatus
      await clock.advance(100)
    }
    throw new Error(`the task never ended: ${String(upid)}`)
  }
}
