import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { accessLines, roleLines } from '../../cli/role-lines.ts'
import { rolesFor } from '../../lib/proxmox/index.ts'

const page = readFileSync(new URL('../../docs/proxmox-setup.md', import.meta.url), 'utf8')
const lines = new Set(page.split('\n').map((line) => line.replace(/ +/g, ' ')))

/** Role → privileges, as the page has them typed; the machines' role once for each version. */
function rolesTyped(major: number): Map<string, string[]> {
  const roles = new Map<string, string[]>()
  for (const [, name = '', privileges = ''] of page.matchAll(/^pveum role add (\w+) +--privs "([^"]+)"$/gm)) {
    const isForOther = privileges.includes(major >= 9 ? 'VM.Monitor' : 'VM.GuestAgent')
    if (!isForOther) roles.set(name, privileges.split(' ').sort())
  }
  return roles
}

describe.each([8, 9])('the setup page for Proxmox VE %i', (major) => {
  // Report: Telmate/terraform-provider-proxmox#1365
  it('has the roles that the client’s own calls take, and no other', () => {
    const taken = rolesFor(major).map(({ name, privileges }) => [name, [...privileges].sort()] as const)
    expect(rolesTyped(major)).toEqual(new Map(taken))
  })

  it('has them in the words of egress check --role', () => {
    const printed = [...roleLines(major, true), ...roleLines(major, false)]
    const typed = rolesTyped(major)
    for (const line of printed) {
      const [, name = '', privileges = ''] = /^pveum role add (\w+) --privs "(.+)"$/.exec(line) ?? []
      expect(typed.get(name)).toEqual(privileges.split(' ').sort())
    }
    expect(printed).toHaveLength(typed.size - 1) // All but the one for left-over disks.
  })

  it('gives every role to user and token', () => {
    for (const role of rolesTyped(major).keys()) {
      expect(page).toMatch(
        new RegExp(`^.*pveum acl modify \\S+ --roles ${role} "\\$\\{BOTH\\[@\\]\\}".*$`, 'm'),
      )
    }
  })
})

it.each([...accessLines(true), ...accessLines(false)])(
  'the setup page grants as egress check --role does: %s',
  (line) => {
    expect(lines).toContain(line)
  },
)
