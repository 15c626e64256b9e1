import type { Cluster } from '../lib/config.ts'
import { accessLines, nameLines } from './role-lines.ts'
import type { Phase } from './rotation-phase.ts'

/** What a person types where our credentials do not reach. `args` are the flags that name the cluster. */
export type Typing = { cluster: Cluster; args: string; comment: string }

/** On a node, as root, then here. */
export function makeLines({ old, fresh }: Phase, typing: Typing): string[] {
  const [user, name] = fresh.split('!')
  return [
    '# on a node of the cluster, as root; the second line of its answer is the secret',
    `pveum user token add ${user} ${name} --privsep 1 --comment '${typing.comment}'`,
    ...grantLines(fresh, typing.cluster),
    '# here; asks for it as user@realm!name=secret',
    `egress token set ${typing.args} --second`,
    ...goOnLines(old, typing),
  ]
}

/** To the token and its user, as in docs/proxmox-setup.md; what the user has already is given once more, which is harmless. */
export function grantLines(tokenId: string, cluster: Cluster): string[] {
  const templates = [...new Set(Object.values(cluster.images).flatMap((byNode) => Object.values(byNode)))]
  const hasPool = cluster.pool !== undefined
  return [
    ...nameLines({ ...cluster, templates }, tokenId),
    ...accessLines(true, { hasPool }),
    ...accessLines(false, { hasPool }).map((line) => `# if it is to look around too: ${line}`),
  ]
}

export function removeLines(old: string, typing: Typing): string[] {
  const [user, id] = old.split('!')
  return [
    '# on a node of the cluster, as root',
    `pveum user token remove ${user} ${id}`,
    ...goOnLines(old, typing),
  ]
}

export const goOnLines = (old: string, { args }: Typing): string[] => [
  '# here; goes on where it stopped',
  `egress token rotate ${args} --old '${old}'`,
]
