import { describe, expect, test } from 'vitest'
import { type CallSpec, calls, type Need } from '../../../lib/proxmox/index.ts'

const all: CallSpec[] = Object.values(calls)

/** What a token needs, as `privilege or privilege @ path or path`, for the given uses. */
function wanted(major: number, ...uses: Need['for'][]): string[] {
  const needs = all.flatMap((call) => call.needs(major)).filter((need) => uses.includes(need.for))
  return [...new Set(needs.map(({ anyOf, on }) => `${anyOf.join(' or ')} @ ${on.join(' or ')}`))].sort()
}

const onVm = '@ /vms/{vmid} or /pool/{pool}'
const always = [
  `VM.Allocate ${onVm}`,
  `VM.Audit ${onVm}`,
  'VM.Clone @ /vms/{template}',
  `VM.Config.CDROM ${onVm}`,
  `VM.Config.CPU ${onVm}`,
  `VM.Config.Disk ${onVm}`,
  `VM.Config.Memory ${onVm}`,
  `VM.Config.Network ${onVm}`,
  `VM.Config.Options ${onVm}`,
  `VM.PowerMgmt ${onVm}`,
  'Datastore.Allocate @ /storage/{isoStorage}',
  'Datastore.Allocate or Datastore.Audit or Datastore.AllocateSpace @ /storage/{isoStorage}',
  'Datastore.AllocateSpace @ /storage/{storage}',
  'Datastore.AllocateTemplate @ /storage/{isoStorage}',
  'Datastore.Audit or Datastore.AllocateSpace @ /storage/{storage}',
]

describe('calls', () => {
  // The set that recordings 26 of 8 and 9 show to be enough, with what sizing a VM and its network card takes.
  test('need for the life of a proxy what a least-privilege token was seen to need', () => {
    const bridge = 'SDN.Use @ /sdn/zones/{zone}/{bridge}'
    const agent = `VM.GuestAgent.Audit or VM.GuestAgent.Unrestricted ${onVm}`
    expect(wanted(7, 'life')).toEqual([...always, `VM.Monitor ${onVm}`].sort())
    expect(wanted(8, 'life')).toEqual([...always, `VM.Monitor ${onVm}`, bridge].sort())
    expect(wanted(9, 'life')).toEqual([...always, agent, bridge].sort())
  })

  test('never need a privilege that lets a token hand out rights', () => {
    for (const major of [7, 8, 9]) {
      const text = wanted(major, 'life', 'cloudInit', 'audit').join()
      expect(text).not.toMatch(/Pool\.Allocate|Permissions\.Modify|Sys\.Modify|Realm|User/)
    }
  })

  test('need more only to look around and for inherited cloud-init drives', () => {
    expect(wanted(9, 'cloudInit')).toEqual([`VM.Config.Cloudinit ${onVm}`])
    expect(wanted(9, 'audit')).toContain('Sys.Audit @ /')
    expect(wanted(9, 'audit')).toContain('VM.Audit @ /vms/{template}')
  })

  test('go each to a path of its own', () => {
    const names = all.map(({ method, path }) => `${method} ${path}`)
    // Disks and ISOs are listed by one endpoint, VMs and templates read by another, with privileges on different paths.
    expect(names.length - new Set(names).size).toBe(2)
  })
})
