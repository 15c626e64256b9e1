/** Privileges and built-in roles. Source: pve-access-control AccessControl.pm (stable-bookworm, master). */

const vmConfig = ['CDROM', 'CPU', 'Cloudinit', 'Disk', 'HWType', 'Memory', 'Network', 'Options'].map(
  (name) => `VM.Config.${name}`,
)
const vmUser = [
  'VM.PowerMgmt',
  'VM.Backup',
  'VM.Config.CDROM',
  'VM.Config.Cloudinit',
  'VM.Console',
  'VM.Audit',
]
const agent9 = ['Audit', 'FileRead', 'FileSystemMgmt', 'FileWrite', 'Unrestricted'].map(
  (name) => `VM.GuestAgent.${name}`,
)
const vmAdmin = [
  ...vmConfig,
  'VM.Allocate',
  'VM.Audit',
  'VM.Backup',
  'VM.Clone',
  'VM.Console',
  'VM.Migrate',
  'VM.PowerMgmt',
  'VM.Snapshot',
  'VM.Snapshot.Rollback',
]
const datastoreUser = ['Datastore.AllocateSpace', 'Datastore.Audit']
const datastoreAdmin = [...datastoreUser, 'Datastore.Allocate', 'Datastore.AllocateTemplate']
const sys = ['Sys.Audit', 'Sys.Console', 'Sys.Syslog']
const rootOnly = [
  'Sys.AccessNetwork',
  'Sys.Incoming',
  'Sys.Modify',
  'Sys.PowerMgmt',
  'Permissions.Modify',
  'Realm.Allocate',
]
const sdnUser = ['SDN.Audit', 'SDN.Use']
const mapping = ['Mapping.Audit', 'Mapping.Use', 'Mapping.Modify']
const users = ['Group.Allocate', 'Realm.AllocateUser', 'User.Modify']

const agentOf = (version: 8 | 9) => (version === 8 ? ['VM.Monitor'] : [...agent9, 'VM.Replicate'])

/** The roles that every cluster has, by name. */
export function builtInRoles(version: 8 | 9): Record<string, string[]> {
  const pveAdmin = [
    ...vmAdmin,
    ...agentOf(version),
    ...datastoreAdmin,
    ...sys,
    ...users,
    ...sdnUser,
    'SDN.Allocate',
    ...mapping.slice(0, 2),
    'Pool.Allocate',
    'Pool.Audit',
  ]
  return {
    Administrator: [...pveAdmin, ...rootOnly, 'Mapping.Modify'],
    NoAccess: [],
    PVEAdmin: pveAdmin,
    PVEAuditor: ['VM.Audit', 'Datastore.Audit', 'Sys.Audit', 'Pool.Audit', 'SDN.Audit', 'Mapping.Audit'],
    PVEDatastoreAdmin: datastoreAdmin,
    PVEDatastoreUser: datastoreUser,
    PVEMappingAdmin: mapping,
    PVEMappingUser: mapping.slice(0, 2),
    PVEPoolAdmin: ['Pool.Allocate', 'Pool.Audit'],
    PVEPoolUser: ['Pool.Audit'],
    PVESDNAdmin: [...sdnUser, 'SDN.Allocate'],
    PVESDNUser: sdnUser,
    PVESysAdmin: [...sys, 'Sys.Modify', 'Sys.PowerMgmt'],
    PVETemplateUser: ['VM.Audit', 'VM.Clone'],
    PVEUserAdmin: users,
    PVEVMAdmin: [...vmAdmin, ...agentOf(version)],
    PVEVMUser: [...vmUser, ...(version === 8 ? [] : ['VM.GuestAgent.Audit'])],
  }
}

/** Any one of these opens the config endpoints. */
export const anyVmConfig = [
  'VM.Config.Disk',
  'VM.Config.CDROM',
  'VM.Config.CPU',
  'VM.Config.Memory',
  'VM.Config.Network',
  'VM.Config.HWType',
  'VM.Config.Options',
  'VM.Config.Cloudinit',
]
