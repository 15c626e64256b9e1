import type { Cluster } from '../../lib/config.ts'
import type { NodeState } from '../../lib/proxmox/index.ts'
import type { Connections } from './connections.ts'
import { type EndpointFacts, isQuorate, known, type TokenFacts } from './facts.ts'
import { lookTwice, type Patience } from './look-twice.ts'
import type { Endpoint, Ports } from './ports.ts'
import { lookAtEndpoint, lookAtToken } from './targets.ts'

/** An endpoint, and the look at it that is under way. */
export type Door = { endpoint: Endpoint; looked: Promise<EndpointFacts> }

/** The first endpoint that answered, and what it sees of its cluster. */
export type Guide = { endpoint: Endpoint; major: number; states: readonly NodeState[] | undefined }

export type Approach = {
  doors: readonly Door[]
  /** Undefined when no endpoint answers as it should. */
  guide: Guide | undefined
  tokens: readonly TokenFacts[]
  /** Those of the stored tokens that are good. */
  accepted: readonly string[]
}

/** Knocks at every endpoint at once, and goes on through the first that opens; a hung one is waited for by nobody. */
export async function approach(
  cluster: Cluster,
  { ports, connections, patience }: { ports: Ports; connections: Connections; patience: Patience },
): Promise<Approach> {
  const doors = cluster.endpoints.map((endpoint) => ({
    endpoint,
    looked: lookTwice(patience, (signal) => lookAtEndpoint(cluster, endpoint, connections, signal)),
  }))
  const guide = await firstToOpen(doors)
  const asked = guide ? [guide.endpoint] : await refusing(doors)
  const tried = await Promise.all(
    [cluster.token]
      .flat()
      .map((source) =>
        lookTwice(patience, (signal) => lookAtToken(cluster, source, asked, { ports, connections, signal })),
      ),
  )
  return {
    doors,
    guide,
    tokens: tried.map(({ facts }) => facts),
    accepted: tried.flatMap(({ value }) => value ?? []),
  }
}

/** One in the part of the cluster that may write tells of the whole of it; where there is none, any will do. */
async function firstToOpen(doors: readonly Door[]): Promise<Guide | undefined> {
  const guides = doors.map(async ({ endpoint, looked }) => ({ endpoint, facts: await looked }))
  return (await firstOf(guides, isQuorate)) ?? (await firstOf(guides, ({ version }) => version.known))
}

async function firstOf(
  guides: readonly Promise<{ endpoint: Endpoint; facts: EndpointFacts }>[],
  serves: (facts: EndpointFacts) => boolean,
): Promise<Guide | undefined> {
  try {
    return await Promise.any(
      guides.map(async (looking): Promise<Guide> => {
        const { endpoint, facts } = await looking
        const major = known(facts.version)?.major
        if (major === undefined || !serves(facts)) throw new Error(`${endpoint.url} does not serve`)
        return { endpoint, major, states: known(facts.nodes) }
      }),
    )
  } catch (error) {
    if (error instanceof AggregateError) return undefined // Each has told why in its own facts.
    throw error
  }
}

/** Where no token opens, one endpoint that refused will do to tell which of them are bad. */
async function refusing(doors: readonly Door[]): Promise<Endpoint[]> {
  const looks = await Promise.all(doors.map(({ looked }) => looked))
  const found = looks.findIndex(({ version }) => !version.known && version.code === 'Unauthorized')
  const door = doors[found]
  return door ? [door.endpoint] : []
}
