import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { calls, type Need } from '../../lib/proxmox/index.ts'

const page = readFileSync(new URL('../../docs/proxmox-setup.md', import.meta.url), 'utf8')

/** Role → privileges, as the page has them typed; the machines' role once for each version. */
function rolesTyped(major: number): Map<string, string[]> {
  const roles = new Map<string, string[]>()
  for (const [, name = '', privileges = ''] of page.matchAll(/^pveum role add (\w+) +--privs "([^"]+)"$/gm)) {
    const isForOther = privileges.includes(major >= 9 ? 'VM.Monitor' : 'VM.GuestAgent')
    if (!isForOther) roles.set(name, privileges.split(' '))
  }
  return roles
}

const roleOf = (need: Need): string => {
  const [path = ''] = need.on
  if (path === '/vms/{template}') return 'EgressTemplate'
  if (path === '/storage/{storage}')
    return need.anyOf.includes('Datastore.Allocate') ? 'EgressLeftovers' : 'EgressDisks'
  if (path === '/storage/{isoStorage}') return need.for === 'audit' ? 'EgressCheckStorage' : 'EgressSeeds'
  if (path.startsWith('/sdn/')) return 'EgressNetwork'
  if (path === '/') return 'EgressCheckCluster'
  return 'EgressVm'
}

describe.each([8, 9])('the setup page for Proxmox VE %i', (major) => {
  const roles = rolesTyped(major)
  const needs = Object.entries(calls).flatMap(([name, call]) =>
    call.needs(major).map((need) => [name, need] as const),
  )

  it.each(needs.filter(([, need]) => need.for !== 'cloudInit'))('grants what %s takes: %o', (_name, need) => {
    const typed = roles.get(roleOf(need))
    expect(
      need.anyOf.some((privilege) => typed?.includes(privilege)),
      roleOf(need),
    ).toBe(true)
  })

  it('gives the machines nothing that no call takes', () => {
    const taken = new Set(needs.flatMap(([, need]) => need.anyOf))
    for (const role of ['EgressVm', 'EgressTemplate', 'EgressDisks', 'EgressSeeds', 'EgressNetwork']) {
      for (const privilege of roles.get(role) ?? [])
        expect(taken, `${role}: ${privilege}`).toContain(privilege)
    }
  })

  it('gives every role to user and token', () => {
    for (const role of roles.keys()) {
      expect(page).toMatch(
        new RegExp(`^.*pveum acl modify \\S+ --roles ${role} "\\$\\{BOTH\\[@\\]\\}".*$`, 'm'),
      )
    }
  })
})
