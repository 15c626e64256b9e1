import type { World } from '../sim/index.ts'

/**
 * A simulated world whose token also has the optional roles of docs/proxmox-setup.md: with them `egress check` sees
 * everything, and gc finds seeds and disks that were left behind.
 */
export function withOptionalRoles<W extends World>(world: W): W {
  const templates = (world.vms ?? []).filter(({ config }) => config.template !== undefined)
  const grants: [path: string, role: string, privilege: string][] = [
    ['/', 'EgressCheckCluster', 'Sys.Audit'],
    ['/storage/local', 'EgressCheckStorage', 'Datastore.Audit'],
    ['/storage/vmdata', 'EgressLeftovers', 'Datastore.Allocate'],
    ['/pool/egress', 'EgressCheckPool', 'Pool.Audit'],
    ...templates.map(({ vmid }): [string, string, string] => [
      `/vms/${vmid}`,
      'EgressCheckTemplate',
      'VM.Audit',
    ]),
  ]
  const acl = grants.flatMap(([path, role]) =>
    ['egress@pve', 'egress@pve!ctl'].map((ugid) => ({ path, ugid, role, propagate: true })),
  )
  return {
    ...world,
    roles: {
      ...world.roles,
      ...Object.fromEntries(grants.map(([, role, privilege]) => [role, [privilege]])),
    },
    acl: [...(world.acl ?? []), ...acl],
  }
}
