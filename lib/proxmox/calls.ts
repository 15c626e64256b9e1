/** One requirement of a call: any of the privileges, on any of the paths. */
export type Need = {
  anyOf: readonly string[]
  on: readonly string[]
  /**
   * `life`: without it proxies cannot be made or taken away. `cloudInit`: only when templates carry Proxmox's own
   * cloud-init drive. `audit`: only to look around (checks, left-overs); the life cycle does without. `admin`: what a person
   * does who replaces a token; no role of ours has it.
   */
  for: 'life' | 'cloudInit' | 'audit' | 'admin'
}

export type CallSpec = {
  method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** Below /api2/json; `{name}` is filled in. */
  path: string
  /** What it takes, as ACL path templates, on a major version of Proxmox VE. */
  needs: (major: number) => readonly Need[]
}

const nothing = () => []
const onVm = ['/vms/{vmid}', '/pool/{pool}']
const need = (
  anyOf: string | readonly string[],
  on: string | readonly string[],
  use: Need['for'] = 'life',
): Need => ({
  anyOf: typeof anyOf === 'string' ? [anyOf] : anyOf,
  on: typeof on === 'string' ? [on] : on,
  for: use,
})
const needs =
  (...list: Need[]): CallSpec['needs'] =>
  () =>
    list

// Proxmox VE 8 began to guard bridges; a VLAN tag appends one more segment to the path.
const bridge = (major: number) => (major >= 8 ? [need('SDN.Use', '/sdn/zones/{zone}/{bridge}')] : [])
const lookingInto = ['Datastore.Audit', 'Datastore.AllocateSpace']

/**
 * Every call this room makes, with its privileges. Source: the permissions of Proxmox's API viewer, and its handlers
 * for what they check on their own (Qemu.pm, Storage/Content.pm, Storage/Status.pm).
 */
export const calls = {
  version: { method: 'GET', path: '/version', needs: nothing },
  permissions: { method: 'GET', path: '/access/permissions', needs: nothing },
  nextId: { method: 'GET', path: '/cluster/nextid', needs: nothing },
  clusterStatus: { method: 'GET', path: '/cluster/status', needs: needs(need('Sys.Audit', '/', 'audit')) },
  resources: { method: 'GET', path: '/cluster/resources', needs: needs(need('VM.Audit', onVm)) },
  nodes: { method: 'GET', path: '/nodes', needs: nothing },
  /** Shows the tokens of users too, to whom it shows more than the caller's own. */
  users: { method: 'GET', path: '/access/users', needs: needs(need('Sys.Audit', '/access/groups', 'audit')) },
  pool: { method: 'GET', path: '/pools', needs: needs(need('Pool.Audit', '/pool/{pool}', 'audit')) },
  time: {
    method: 'GET',
    path: '/nodes/{node}/time',
    needs: needs(need('Sys.Audit', '/nodes/{node}', 'audit')),
  },
  /** Bridges that the caller may not use are left out. */
  bridges: { method: 'GET', path: '/nodes/{node}/network', needs: nothing },
  certificates: { method: 'GET', path: '/nodes/{node}/certificates/info', needs: nothing },

  vmConfig: { method: 'GET', path: '/nodes/{node}/qemu/{vmid}/config', needs: needs(need('VM.Audit', onVm)) },
  /** A template is cloned without being read; only a check reads it. */
  templateConfig: {
    method: 'GET',
    path: '/nodes/{node}/qemu/{vmid}/config',
    needs: needs(need('VM.Audit', '/vms/{template}', 'audit')),
  },
  vmStatus: {
    method: 'GET',
    path: '/nodes/{node}/qemu/{vmid}/status/current',
    needs: needs(need('VM.Audit', onVm)),
  },
  clone: {
    method: 'POST',
    path: '/nodes/{node}/qemu/{vmid}/clone',
    needs: (major) => [
      need('VM.Clone', '/vms/{template}'),
      need('VM.Allocate', onVm),
      need('Datastore.AllocateSpace', '/storage/{storage}'),
      ...bridge(major),
    ],
  },
  configure: {
    method: 'PUT',
    path: '/nodes/{node}/qemu/{vmid}/config',
    needs: (major) => [
      need('VM.Config.Options', onVm),
      need('VM.Config.CPU', onVm),
      need('VM.Config.Memory', onVm),
      need('VM.Config.Network', onVm),
      need('VM.Config.CDROM', onVm),
      need('VM.Config.Disk', onVm),
      need('VM.Config.Cloudinit', onVm, 'cloudInit'),
      need(['Datastore.Allocate', ...lookingInto], '/storage/{isoStorage}'),
      ...bridge(major),
    ],
  },
  resize: {
    method: 'PUT',
    path: '/nodes/{node}/qemu/{vmid}/resize',
    needs: needs(need('VM.Config.Disk', onVm), need('Datastore.AllocateSpace', '/storage/{storage}')),
  },
  start: {
    method: 'POST',
    path: '/nodes/{node}/qemu/{vmid}/status/start',
    needs: needs(need('VM.PowerMgmt', onVm)),
  },
  stop: {
    method: 'POST',
    path: '/nodes/{node}/qemu/{vmid}/status/stop',
    needs: needs(need('VM.PowerMgmt', onVm)),
  },
  destroy: { method: 'DELETE', path: '/nodes/{node}/qemu/{vmid}', needs: needs(need('VM.Allocate', onVm)) },
  interfaces: {
    method: 'GET',
    path: '/nodes/{node}/qemu/{vmid}/agent/network-get-interfaces',
    needs: (major) => [
      need(major >= 9 ? ['VM.GuestAgent.Audit', 'VM.GuestAgent.Unrestricted'] : 'VM.Monitor', onVm),
    ],
  },

  taskStatus: { method: 'GET', path: '/nodes/{node}/tasks/{upid}/status', needs: nothing },
  tasks: { method: 'GET', path: '/nodes/{node}/tasks', needs: nothing },
  cancel: { method: 'DELETE', path: '/nodes/{node}/tasks/{upid}', needs: nothing },

  storages: {
    method: 'GET',
    path: '/nodes/{node}/storage',
    needs: needs(
      need(lookingInto, '/storage/{storage}', 'audit'),
      need(lookingInto, '/storage/{isoStorage}', 'audit'),
    ),
  },
  volumes: {
    method: 'GET',
    path: '/nodes/{node}/storage/{storage}/content',
    needs: needs(need(lookingInto, '/storage/{storage}')),
  },
  isos: {
    method: 'GET',
    path: '/nodes/{node}/storage/{storage}/content',
    needs: needs(need(lookingInto, '/storage/{isoStorage}', 'audit')),
  },
  upload: {
    method: 'POST',
    path: '/nodes/{node}/storage/{storage}/upload',
    needs: needs(need('Datastore.AllocateTemplate', '/storage/{isoStorage}')),
  },
  // AllocateTemplate lets an ISO in but not out. Left-over disks need the same on their storage.
  deleteVolume: {
    method: 'DELETE',
    path: '/nodes/{node}/storage/{storage}/content/{volume}',
    needs: needs(
      need('Datastore.Allocate', '/storage/{isoStorage}'),
      need('Datastore.Allocate', '/storage/{storage}', 'audit'),
    ),
  },
} as const satisfies Record<string, CallSpec>

export type CallName = keyof typeof calls
