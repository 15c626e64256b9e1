import { type Role, rolesFor } from '../lib/proxmox/index.ts'

/** What root types, once for the whole cluster, to give our token and its user what the functions' own calls take. */
export type Estate = {
  pool?: string | undefined
  storage: string
  isoStorage: string
  bridge: string
  templates: readonly number[]
}

/** The roles of a major version of Proxmox VE, needed ones or optional ones, as `pveum role add` lines. */
export function roleLines(major: number, needed: boolean): string[] {
  return rolesOf(major, needed).map(
    ({ name, privileges }) => `pveum role add ${name} --privs "${privileges.join(' ')}"`,
  )
}

/** Where the roles go; the same on every version. */
export function accessLines(needed: boolean, { hasPool = true } = {}): string[] {
  const given = rolesOf(LATEST, needed).filter(({ name }) => hasPool || name !== 'EgressCheckPool')
  return given.map(({ name, on }) => {
    const line = (path: string) => `pveum acl modify ${path} --roles ${name} "\${BOTH[@]}"`
    if (on === '/pool/{pool}' && !hasPool) return line('/vms')
    const path = places[on] ?? on
    return on === '/vms/{template}' ? `for id in $TEMPLATES; do ${line(path)}; done` : line(path)
  })
}

/** The names that the lines use. */
export function nameLines(
  { pool, storage, isoStorage, bridge, templates }: Estate,
  tokenId: string,
): string[] {
  return [
    ...(pool === undefined ? [] : [`POOL=${pool}`]),
    `BRIDGE=${bridge}`,
    `DISKS=${storage}`,
    `SEEDS=${isoStorage}`,
    `TEMPLATES="${templates.join(' ')}"`,
    `BOTH=(--users ${tokenId.split('!')[0]} --tokens '${tokenId}')`,
  ]
}

const LATEST = 9

const places: Readonly<Record<string, string>> = {
  '/pool/{pool}': '"/pool/$POOL"',
  '/vms/{template}': '"/vms/$id"',
  '/storage/{storage}': '"/storage/$DISKS"',
  '/storage/{isoStorage}': '"/storage/$SEEDS"',
  '/sdn/zones/{zone}/{bridge}': '"/sdn/zones/localnetwork/$BRIDGE"',
}

/** Deleting left-over disks takes a privilege over every volume of a storage, so it is never offered unasked. */
const rolesOf = (major: number, needed: boolean): Role[] =>
  rolesFor(major).filter((role) => role.needed === needed && role.name !== 'EgressLeftovers')
