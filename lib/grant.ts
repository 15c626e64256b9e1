/** The names that a cluster's access rights are about. */
export type Estate = {
  pool?: string | undefined
  storage: string
  isoStorage: string
  /** VMIDs of its templates. */
  templates: readonly number[]
  /** `user@realm!name`; when it is not known, a placeholder stands for it. */
  tokenId?: string | undefined
}

export type Lack = { privilege: string; path: string }

/** The role of docs/proxmox-setup.md that holds a privilege, and the path that it is given on. */
type Holder = { role: string; path: string }

const UNKNOWN_TOKEN = '<user@realm!token, the part before = of the stored token>'

/**
 * What root types to grant a missing privilege to our token and its user, both of which must have it. It goes into the
 * role that docs/proxmox-setup.md gives for such a path: an entry of its own on a deeper path would hide what is granted above.
 */
export function grantCommand({ privilege: asked, path }: Lack, estate: Estate): string {
  const privilege = oneOf(asked, path === `/storage/${estate.storage}`)
  const holder = holderOf(privilege, path, estate)
  const token = estate.tokenId ?? UNKNOWN_TOKEN
  const user = estate.tokenId?.split('!')[0] ?? '<user@realm>'
  return (
    `pveum role modify ${holder.role} --privs ${privilege} --append 1 && ` +
    `pveum acl modify ${holder.path} --roles ${holder.role} --users ${user} --tokens '${token}'`
  )
}

/** Of `A|B`, any one of which would do, the one that allows the least; where disks are made, the one that the next step takes too. */
function oneOf(asked: string, holdsDisks: boolean): string {
  const choices = asked.split('|')
  const best = holdsDisks ? 'Datastore.AllocateSpace' : choices.find((one) => one.endsWith('.Audit'))
  return choices.find((one) => one === best) ?? choices[0] ?? asked
}

function holderOf(privilege: string, path: string, estate: Estate): Holder {
  // The page that lists all symptoms names no path.
  if (!path.startsWith('/')) return { role: '<role>', path }
  const [, room = '', id = ''] = path.split('/')
  if (room === 'vms' && estate.templates.includes(Number(id))) return { role: 'EgressTemplate', path }
  // What is granted on the pool holds for the VMs that will be made, too.
  if (room === 'vms' || room === 'pool') {
    return { role: 'EgressVm', path: estate.pool === undefined ? '/vms' : `/pool/${estate.pool}` }
  }
  if (room === 'storage') return { role: storageRole(privilege, id, estate), path }
  // A VLAN tag is one more segment; the bridge covers all of them.
  if (room === 'sdn') return { role: 'EgressNetwork', path: path.split('/').slice(0, 5).join('/') }
  return { role: 'EgressCheckCluster', path }
}

/** Where seeds and disks share one storage, both roles are on it. */
function storageRole(privilege: string, id: string, { isoStorage }: Estate): string {
  return id === isoStorage && privilege !== 'Datastore.AllocateSpace' ? 'EgressSeeds' : 'EgressDisks'
}
