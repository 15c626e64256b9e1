import type { Cluster } from '../../lib/config.ts'
import { leastOf, type Need, needsOf } from '../../lib/proxmox/index.ts'
import type { Fact } from './facts.ts'

type Named = { cluster: Cluster; nodes: readonly string[] }

/** One requirement of the client's calls on this cluster: any of the privileges, on any of the ACL paths. */
export type Wanted = { anyOf: readonly string[]; on: readonly string[]; for: Need['for'] }

/** Every requirement of the call table on this cluster, for all of these versions, each once. */
export function wantedPrivileges(majors: readonly number[], named: Named): Wanted[] {
  const wanted = majors.flatMap((major) => needsOf(major)).flatMap((need) => instances(need, named))
  return [...new Map(wanted.map((one) => [JSON.stringify(one), one])).values()]
}

/** The ACL paths that must be looked at to judge them. */
export const pathsOf = (wanted: readonly Wanted[]): string[] => [...new Set(wanted.flatMap(({ on }) => on))]

export type Missing = {
  /** As Proxmox would name it. */
  privilege: string
  path: string
  for: Need['for']
}

/** What is not granted. A path that could not be looked at is not held against anybody. */
export function missingPrivileges(
  wanted: readonly Wanted[],
  held: ReadonlyMap<string, Fact<ReadonlySet<string>>>,
): Missing[] {
  return wanted.flatMap(({ anyOf, on, for: use }) => {
    const places = on.map((path) => held.get(path))
    if (places.some((place) => !place?.known)) return []
    const granted = places.some((place) => place?.known && anyOf.some((one) => place.value.has(one)))
    return granted ? [] : [{ privilege: leastOf(anyOf), path: on.at(-1) ?? '/', for: use }]
  })
}

/** The requirement with this cluster's names; one for each template and each node that it speaks of. */
function instances({ anyOf, on, for: use }: Need, { cluster, nodes }: Named): Wanted[] {
  const { storage, isoStorage, vmids } = cluster
  const only = (...paths: string[]): Wanted[] => [{ anyOf, on: paths, for: use }]
  const each = (paths: string[]): Wanted[] => paths.map((path) => ({ anyOf, on: [path], for: use }))
  const [first = ''] = on
  if (first === '/vms/{template}') return each(templateVmids(cluster).map((vmid) => `/vms/${vmid}`))
  if (first === '/nodes/{node}') return each(nodes.map((node) => `/nodes/${node}`))
  // A VM that will be made has a number of our range, and the roles of its pool.
  if (first === '/vms/{vmid}') return only(`/vms/${vmids.from}`, ...poolPath(cluster))
  if (first === '/pool/{pool}') return each(poolPath(cluster))
  if (first === '/sdn/zones/{zone}/{bridge}') return only(...bridgePaths(cluster))
  return only(first.replace('{storage}', storage).replace('{isoStorage}', isoStorage))
}

const poolPath = ({ pool }: Cluster) => (pool === undefined ? [] : [`/pool/${pool}`])

/** An ordinary bridge; a VLAN tag may be granted by itself. */
function bridgePaths({ bridge, vlan }: Cluster): string[] {
  const path = `/sdn/zones/localnetwork/${bridge}`
  return [...(vlan === undefined ? [] : [`${path}/${vlan}`]), path]
}

/** VMIDs of all templates of the cluster. */
export const templateVmids = ({ images }: Pick<Cluster, 'images'>): number[] => [
  ...new Set(Object.values(images).flatMap((byNode) => Object.values(byNode))),
]
