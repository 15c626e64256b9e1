import { AWS_WAYS, CONCURRENCY } from '../../bench/conditions.ts'
import { feed } from '../../bench/feed.ts'
import { type Installation, openInstallation } from '../../bench/installation.ts'
import type { Exchange } from '../../lib/proxmox/index.ts'
import { defaultWorld } from '../../sim/index.ts'

export type Crowd = Installation & {
  uids: string[]
  /** Cuts the way to the cluster, in one of two manners, or joins it again. */
  cut(how: 'refuses' | 'drops' | undefined): void
  /** Requests that reached each node since the last time it was asked: the most in one second, and the most at once. */
  peaks(): { aSecond: number; atOnce: number }
  /** Hands out messages as Lambda would, until `done` holds. */
  run(done: () => boolean): Promise<void>
  /** Does something after so many seconds of the virtual clock. */
  after(seconds: number, deed: () => void): void
}

/** So many proxies to be on eight nodes, under the conditions of bench/conditions.ts. */
export async function openCrowd(count: number): Promise<Crowd> {
  const traffic = createTraffic()
  let cut: 'refuses' | 'drops' | undefined
  const wire =
    (exchange: Exchange, clock: { now(): number; sleep(ms: number): Promise<void> }): Exchange =>
    async (endpoint, request) => {
      if (cut === 'refuses') throw broken('ECONNREFUSED', false)
      if (cut === 'drops') {
        await clock.sleep(request.timeoutMs)
        throw broken('TIMEOUT', true)
      }
      const node = /\/nodes\/([^/]+)\//.exec(request.path)?.[1] ?? endpoint.node ?? ''
      return traffic.count(node, clock.now(), () => exchange(endpoint, request))
    }
  const world = defaultWorld({ version: 9, nodes: 8 })
  const installation = await openInstallation({ world, wire, ways: AWS_WAYS })
  const { clock } = installation.lab
  return {
    ...installation,
    uids: Array.from({ length: count }, (_, index) => `proxy-${index}`),
    cut(how) {
      cut = how
    },
    peaks: traffic.peaks,
    async run(done) {
      while (!done()) {
        await feed(installation, done, { ways: AWS_WAYS, concurrency: CONCURRENCY })
        // The queues are empty until one of those who come later asks for something.
        if (!done()) await clock.advance(1000)
      }
    },
    after: (seconds, deed) => void clock.after(seconds * 1000, deed),
  }
}

const broken = (code: string, sent: boolean) => Object.assign(new Error(code.toLowerCase()), { code, sent })

function createTraffic() {
  const atOnce = new Map<string, number>()
  const inSecond = new Map<string, number>()
  let most = { aSecond: 0, atOnce: 0 }
  return {
    async count<T>(node: string, nowMs: number, send: () => Promise<T>): Promise<T> {
      const second = `${node} ${Math.floor(nowMs / 1000)}`
      const [here, lately] = [(atOnce.get(node) ?? 0) + 1, (inSecond.get(second) ?? 0) + 1]
      atOnce.set(node, here)
      inSecond.set(second, lately)
      most = { aSecond: Math.max(most.aSecond, lately), atOnce: Math.max(most.atOnce, here) }
      try {
        return await send()
      } finally {
        atOnce.set(node, (atOnce.get(node) ?? 1) - 1)
      }
    },
    peaks() {
      const seen = most
      most = { aSecond: 0, atOnce: 0 }
      return seen
    },
  }
}
