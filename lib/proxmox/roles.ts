import { type CallSpec, calls, type Need } from './calls.ts'

/** A role of ours: what it allows, and the ACL path (a template) that it is given on. */
export type Role = {
  name: string
  on: string
  privileges: readonly string[]
  /** Without it proxies cannot be made or taken away. */
  needed: boolean
}

/** Names of the roles by where they are given: what a life takes, what looking around takes. */
const names: Readonly<Record<string, { life?: string; audit?: string }>> = {
  '/pool/{pool}': { life: 'EgressVm', audit: 'EgressCheckPool' },
  '/vms/{template}': { life: 'EgressTemplate', audit: 'EgressCheckTemplate' },
  '/storage/{storage}': { life: 'EgressDisks', audit: 'EgressLeftovers' },
  '/storage/{isoStorage}': { life: 'EgressSeeds', audit: 'EgressCheckStorage' },
  '/sdn/zones/{zone}/{bridge}': { life: 'EgressNetwork' },
  '/': { audit: 'EgressCheckCluster' },
}

/** Every requirement of the call table on a major version of Proxmox VE, each once. */
export function needsOf(major: number): Need[] {
  const all: readonly CallSpec[] = Object.values(calls)
  const needs = all.flatMap((call) => call.needs(major))
  return [...new Map(needs.map((need) => [JSON.stringify(need), need])).values()]
}

/** The roles that together allow every call of the table; inherited cloud-init drives take one privilege more. */
export function rolesFor(major: number): Role[] {
  const roles = new Map<string, { name: string; on: string; privileges: string[]; needed: boolean }>()
  for (const need of inOrder(needsOf(major))) {
    const on = placeOf(need)
    const needed = need.for === 'life'
    const there = [...roles.values()].filter((role) => role.on === on && (role.needed || !needed))
    if (there.some(({ privileges }) => privileges.some((one) => need.anyOf.includes(one)))) continue
    const name = names[on]?.[needed ? 'life' : 'audit']
    if (name === undefined) throw new Error(`no role is named for ${on}`)
    const role = roles.get(name) ?? { name, on, privileges: [], needed }
    role.privileges.push(leastOf(need.anyOf))
    roles.set(name, role)
  }
  return [...roles.values()]
}

/** What a life takes first, and first what has no alternative: it often is one of the alternatives of another. */
function inOrder(needs: readonly Need[]): Need[] {
  const rank = ({ anyOf, for: use }: Need) => (use === 'life' ? 0 : 100) + anyOf.length
  return needs.filter((need) => need.for !== 'cloudInit').sort((a, b) => rank(a) - rank(b))
}

/** A VM shares the roles of its pool, and whatever hangs below the root those of the root. */
function placeOf({ on }: Need): string {
  const place = on.at(-1) ?? '/'
  return place.startsWith('/nodes/') || place.startsWith('/access/') ? '/' : place
}

/** Of alternatives the one that allows the least. */
export function leastOf(privileges: readonly string[]): string {
  return privileges.find((one) => one.endsWith('.Audit')) ?? privileges[0] ?? ''
}
