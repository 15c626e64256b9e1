import type { Exchange } from '../../lib/proxmox/index.ts'
import { clusterOf, type Outside } from '../lab/lab.ts'

/** One thing that a function does to the world: a call of Proxmox, a write, a message. */
export type Deed = {
  /** `PUT /nodes/pve1/qemu/5001/config`, `ledger.save alpha`. */
  what: string
  /** It may leave the world different from what it was. */
  changes: boolean
  request?: Parameters<Exchange>
  /** The turn that a sent message names. */
  sends?: number
}

/** Carries a deed out, or whatever the test has in mind for it. */
export type Perform = <T>(deed: Deed, run: () => Promise<T>) => Promise<T>

const reads = new Set([
  'ledger.read',
  'claims.claimsOf',
  'claims.vmidClaim',
  'userData.get',
  'secrets.read',
  'secrets.parameter',
])

/** The same world, but that everything done to it goes through `perform`. */
export function throughEffects({ surroundings, exchange }: Outside, perform: Perform): Outside {
  const { ledger, claims, queues, userData, secrets, publish, probe, countOn } = surroundings
  return {
    surroundings: {
      ...surroundings,
      ledger: guarded('ledger', ledger, perform),
      claims: guarded('claims', claims, perform),
      queues: guarded('queues', queues, perform),
      userData: guarded('userData', userData, perform),
      secrets: guarded('secrets', secrets, perform),
      publish: (event) => perform({ what: `publish ${event.type}`, changes: true }, () => publish(event)),
      probe: {
        http: (target) => perform({ what: 'probe', changes: false }, () => probe.http(target)),
        tcp: (target) => perform({ what: 'probe', changes: false }, () => probe.tcp(target)),
      },
      countOn: (cluster, node) =>
        perform({ what: `countOn ${node}`, changes: false }, () => countOn(cluster, node)),
    },
    exchange: (endpoint, request) => {
      const { method, path } = request
      const cluster = clusterOf(endpoint)
      const where = cluster === 'lab' ? '' : `${cluster}: `
      const what = `${where}${method} ${decodeURIComponent(path.replace('/api2/json', '').replace(/\?.*/, ''))}`
      return perform({ what, changes: method !== 'GET', request: [endpoint, request] }, () =>
        exchange(endpoint, request),
      )
    },
  }
}

function guarded<T extends object>(name: string, port: T, perform: Perform): T {
  return new Proxy(port, {
    get(target, key) {
      const member: unknown = Reflect.get(target, key)
      if (typeof member !== 'function' || typeof key !== 'string') return member
      const deed = `${name}.${key}`
      return (...words: unknown[]) => {
        const sends = deed === 'queues.send' ? turnIn(words[1]) : undefined
        const told = { what: `${deed} ${brief(words)}`, changes: !reads.has(deed) }
        return perform({ ...told, ...(sends === undefined ? {} : { sends }) }, async () =>
          Reflect.apply(member, target, words),
        )
      }
    },
  })
}

/** The turn that a message names, if it names one. */
export function turnIn(message: unknown): number | undefined {
  if (typeof message !== 'object' || message === null || !('turn' in message)) return undefined
  return typeof message.turn === 'number' ? message.turn : undefined
}

/** Enough of the arguments to follow the story. */
function brief(words: unknown[]): string {
  const texts = words.map((word) => {
    if (typeof word !== 'object' || word === null) return String(word)
    const { uid, step, phase, turn, partition, sort } = word as Record<string, unknown>
    return [partition, sort, uid, step ?? phase, turn].filter((part) => part !== undefined).join('/')
  })
  return texts
    .filter((text) => text !== '' && text.length < 30)
    .slice(0, 3)
    .join(' ')
}
