import { describe, expect, test } from 'vitest'
import { needsOf, rolesFor } from '../../../lib/proxmox/index.ts'

describe.each([8, 9])('roles for Proxmox VE %i', (major) => {
  const roles = rolesFor(major)

  test('allow every call of the table, where it is needed', () => {
    for (const need of needsOf(major).filter(({ for: use }) => use !== 'cloudInit')) {
      const places = need.on.map((on) => (/^\/(nodes|access)\//.test(on) ? '/' : on))
      const held = roles
        .filter(({ on, needed }) => places.includes(on) && (needed || need.for === 'audit'))
        .flatMap(({ privileges }) => privileges)
      expect(
        need.anyOf.some((privilege) => held.includes(privilege)),
        JSON.stringify(need),
      ).toBe(true)
    }
  })

  test('hold nothing that no call takes', () => {
    const taken = new Set(needsOf(major).flatMap(({ anyOf }) => anyOf))
    for (const privilege of roles.flatMap(({ privileges }) => privileges)) expect(taken).toContain(privilege)
  })

  // Report: adminsyspro/proxcenter-ui#967
  test('give no rights over a host, as fetching an image by its URL would take', () => {
    const held = roles.flatMap(({ privileges }) => privileges)
    expect(held.filter((privilege) => /^(Sys\.(?!Audit$)|Permissions|User|Realm)/.test(privilege))).toEqual(
      [],
    )
  })

  test('tell what a life takes from what is only for looking around', () => {
    expect(roles.filter(({ needed }) => !needed).map(({ name }) => name)).toEqual([
      'EgressCheckCluster',
      'EgressCheckPool',
      'EgressCheckTemplate',
      'EgressLeftovers',
      'EgressCheckStorage',
    ])
  })

  // Report: Telmate/terraform-provider-proxmox#1365
  test('take the lesser of alternatives', () => {
    const vm = roles.find(({ name }) => name === 'EgressVm')
    expect(vm?.privileges).toContain(major === 8 ? 'VM.Monitor' : 'VM.GuestAgent.Audit')
    expect(vm?.privileges).not.toContain('VM.GuestAgent.Unrestricted')
  })
})
