/** Handle of a background task: `UPID:pve1:0003A2F1:…:qmclone:101:bot@pve!ci:`. Source: pve-common UPID.pm. */
export type Upid = string

export type UpidParts = {
  /** The node where the worker runs: the one to ask, whatever node was called. */
  node: string
  type: string
  /** A VMID (of a clone: the source's), a storage, or empty. */
  id: string
  user: string
  startedAtMs: number
}

// Narrower than Proxmox's own: no control character and no half of one, which no path can hold.
const grammar =
  /^UPID:([a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?):[0-9A-Fa-f]{8}:[0-9A-Fa-f]{8,9}:([0-9A-Fa-f]{8}):([^:\s/\p{C}]+):([^:\s/\p{C}]*):([^:\s/\p{C}]+):$/u

/** It is a file's name at Proxmox. */
const LONGEST = 255

/** Takes a UPID apart; undefined when it is none. */
export function parseUpid(upid: string): UpidParts | undefined {
  const match = upid.length > LONGEST ? null : grammar.exec(upid)
  if (!match) return undefined
  const [, node = '', started = '', type = '', id = '', user = ''] = match
  return { node, type, id, user, startedAtMs: Number.parseInt(started, 16) * 1000 }
}
