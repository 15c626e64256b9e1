import { describe, expect, it } from 'vitest'
import type { Fact } from '../../../functions/check/facts.ts'
import { missingPrivileges, pathsOf, wantedPrivileges } from '../../../functions/check/privileges.ts'
import { aConfig } from '../../lib/a-config.ts'

const { lab } = aConfig().clusters
if (!lab) throw new Error('the configuration has no cluster lab')
const named = { cluster: lab, nodes: ['pve1', 'pve2'] }

const held = (paths: Record<string, string[]>, all: readonly string[]) =>
  new Map<string, Fact<ReadonlySet<string>>>(
    all.map((path) => [path, { known: true, value: new Set(paths[path] ?? []) }]),
  )

describe('wanted privileges', () => {
  it('are looked for on the cluster’s own paths', () => {
    expect(pathsOf(wantedPrivileges([9], named)).sort()).toEqual([
      '/',
      '/access/groups',
      '/nodes/pve1',
      '/nodes/pve2',
      '/pool/egress',
      '/sdn/zones/localnetwork/vmbr0',
      '/storage/local',
      '/storage/vmdata',
      '/vms/5000',
      '/vms/9000',
      '/vms/9001',
      '/vms/9101',
    ])
  })

  // Report: Telmate/terraform-provider-proxmox#1378
  it('are those of each version that is there', () => {
    const names = (majors: number[]) => wantedPrivileges(majors, named).flatMap(({ anyOf }) => anyOf)
    expect(names([8])).toContain('VM.Monitor')
    expect(names([9])).not.toContain('VM.Monitor')
    expect(names([8, 9])).toEqual(expect.arrayContaining(['VM.Monitor', 'VM.GuestAgent.Audit']))
  })

  it('may be on the VLAN of the bridge alone', () => {
    const tagged = { ...named, cluster: { ...lab, vlan: 120 } }
    const wanted = wantedPrivileges([9], tagged).filter(({ anyOf }) => anyOf.includes('SDN.Use'))
    expect(wanted.map(({ on }) => on)).toEqual([
      ['/sdn/zones/localnetwork/vmbr0/120', '/sdn/zones/localnetwork/vmbr0'],
    ])
  })

  it('are on the VMs themselves where there is no pool', () => {
    const { pool: _, ...poolless } = lab
    const wanted = wantedPrivileges([9], { ...named, cluster: poolless })
    expect(pathsOf(wanted).filter((path) => path.startsWith('/pool'))).toEqual([])
    const missing = missingPrivileges(wanted, held({}, pathsOf(wanted)))
    expect(missing).toContainEqual({ privilege: 'VM.Allocate', path: '/vms/5000', for: 'life' })
  })
})

describe('missing privileges', () => {
  const wanted = wantedPrivileges([9], named)
  const need = (privilege: string) => wanted.filter(({ anyOf }) => anyOf.includes(privilege))

  it('are none where one of the alternatives is granted on one of the paths', () => {
    const some = need('VM.GuestAgent.Audit')
    const paths = pathsOf(some)
    expect(missingPrivileges(some, held({ '/vms/5000': ['VM.GuestAgent.Unrestricted'] }, paths))).toEqual([])
    expect(missingPrivileges(some, held({ '/pool/egress': ['VM.GuestAgent.Audit'] }, paths))).toEqual([])
  })

  it('are named as Proxmox would, the lesser of alternatives, on the pool', () => {
    const some = need('VM.GuestAgent.Audit')
    expect(missingPrivileges(some, held({}, pathsOf(some)))).toEqual([
      { privilege: 'VM.GuestAgent.Audit', path: '/pool/egress', for: 'life' },
    ])
  })

  it('are not what could not be looked at', () => {
    const some = need('VM.Clone')
    const unknown: Fact<ReadonlySet<string>> = { known: false, code: 'Unreachable', reason: 'cut' }
    expect(missingPrivileges(some, new Map(pathsOf(some).map((path) => [path, unknown])))).toEqual([])
    expect(missingPrivileges(some, new Map())).toEqual([])
  })
})
