import { createHash } from 'node:crypto'

const hex = (text: string) => createHash('sha256').update(text).digest('hex')

/** A number from a text, evenly spread over 0 … 2^32 - 1. */
export const hashNumber = (text: string) => Number.parseInt(hex(text).slice(0, 8), 16)

/** `egress-<name>-<6 hex of uid>`, lower case, a DNS label of at most 63 characters. */
export function vmName(row: { uid: string; name: string }): string {
  const name = row.name.toLowerCase().slice(0, 49).replace(/-+$/, '')
  return `egress-${name}-${hex(row.uid).slice(0, 6)}`
}

/** The MAC of a proxy's NIC, the same for every VM it ever has: locally administered, so that a replaced VM keeps its lease. */
export function macOf(deployment: string, uid: string): string {
  const digits = hex(`${deployment}/${uid}`).slice(0, 10)
  return ['02', ...(digits.match(/../g) ?? [])].join(':')
}

/** File name of a generation's seed; its own normal form on Proxmox (`[a-zA-Z0-9_.-]`), and no prefix of another's. */
export const seedFile = (deployment: string, uid: string, generation: number) =>
  `${seedPrefix(deployment, uid)}${generation}.iso`

/** How the names of all seeds of a proxy begin. */
export const seedPrefix = (deployment: string, uid: string) => `egress-${deployment}-${uid}-g`

/** Tags that a VM of ours bears: one for all, one for the deployment. */
export const tagsOf = (deployment: string) => new Set(['egress', `egress-${deployment}`])

/** Whoever puts this tag on a VM wants it left as it is: it is reported, and neither deleted nor taken up again. */
export const HOLD_TAG = 'egress-hold'
