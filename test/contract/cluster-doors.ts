import {
  createProxmox,
  type Endpoint,
  type Exchange,
  type Provider,
  type ProxmoxOptions,
  type TaskState,
  type Upid,
} from '../../lib/proxmox/index.ts'
import {
  createSim,
  createVirtualClock,
  type DefaultWorld,
  defaultWorld,
  type GuestFactory,
  type Sim,
} from '../../sim/index.ts'

export type Door = 'without sockets' | 'over HTTPS'

export type Cluster = {
  sim: Sim
  world: DefaultWorld
  provider: Provider
  /** Another client of the same cluster. */
  client(options: Partial<ProxmoxOptions>): Provider
  /** Settles a promise, moving the clock on if it is one that tests move. */
  run<T>(promise: Promise<T>): Promise<T>
  /** The end of a task, as its owner sees it. */
  ended(upid: Upid, by?: Provider): Promise<TaskState & { running: false }>
  /** A moment of the cluster's time. */
  pause(): Promise<void>
  close(): Promise<void>
}

/** A guest whose agent answers at once: `lo`, and a network card with the MAC of its VM. */
const guests: GuestFactory = async ({ mac }) => ({
  interfaces: () => [
    { name: 'lo', 'hardware-address': '00:00:00:00:00:00' },
    {
      name: 'eth0',
      'hardware-address': mac.toLowerCase(),
      'ip-addresses': [{ 'ip-address': '10.0.0.5', 'ip-address-type': 'ipv4', prefix: 24 }],
    },
  ],
  close: async () => {},
})

// Fast on a real clock, for the door with sockets.
const durations = {
  cloneMs: 40,
  linkedCloneMs: 20,
  storageLockMs: 1,
  uploadMs: 10,
  deleteVolumeMs: 5,
  startMs: 10,
  stopMs: 10,
  destroyMs: 10,
  resizeMs: 5,
  configMs: 1,
  forkMs: 1,
}

/** The default world of the simulator behind one of its two doors, and a provider with the least-privileged token. */
export async function openCluster(version: 8 | 9, door: Door): Promise<Cluster> {
  const world = defaultWorld({ version })
  const closing: (() => Promise<void>)[] = []
  const virtual = door === 'without sockets' ? createVirtualClock() : undefined
  const sim = createSim({ world, guests, ...(virtual ? { clock: virtual } : { durations }) })
  closing.push(() => sim.close())

  const way: { endpoints: readonly Endpoint[] } & Partial<ProxmoxOptions> = virtual
    ? {
        endpoints: world.nodes.map(({ name }) => ({ url: `https://${name}:8006`, node: name })),
        exchange: inProcess(sim),
        now: () => virtual.now(),
      }
    : { endpoints: (await sim.listen()).endpoints }

  const client = (options: Partial<ProxmoxOptions>): Provider => {
    const proxmox = createProxmox({ token: { get: async () => [world.tokens.egress] }, ...way, ...options })
    closing.unshift(() => proxmox.close())
    return proxmox.with({ signal: new AbortController().signal })
  }
  const provider = client({})
  const pause = () => sim.clock.sleep(virtual ? 500 : 5)
  const run = <T>(promise: Promise<T>) => (virtual ? virtual.until(promise) : promise)

  async function untilEnded(upid: Upid, by: Provider): Promise<TaskState & { running: false }> {
    for (;;) {
      const state = await by.task(upid)
      if (!state.running) return state
      await pause()
    }
  }

  return {
    sim,
    world,
    provider,
    client,
    run,
    pause,
    ended: (upid, by = provider) => run(untilEnded(upid, by)),
    close: async () => {
      for (const close of closing) await close()
    },
  }
}

function inProcess(sim: Sim): Exchange {
  return async (endpoint, { method, path, headers, body, timeoutMs }) => {
    const length =
      method === 'GET' || method === 'DELETE' ? {} : { 'content-length': String(body?.byteLength ?? 0) }
    const request = { method, path, headers: { host: new URL(endpoint.url).host, ...headers, ...length } }
    const late = new Promise<never>((_, reject) =>
      sim.clock.after(timeoutMs, () =>
        reject(Object.assign(new Error('timed out'), { code: 'TIMEOUT', sent: true })),
      ),
    )
    const answer = sim.request(endpoint.node ?? '', { ...request, ...(body ? { body } : {}) })
    answer.catch(() => {}) // Nobody listens any more when it fails after our time-out.
    return Promise.race([answer, late])
  }
}
