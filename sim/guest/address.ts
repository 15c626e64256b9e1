import { createHash } from 'node:crypto'

/** Values an octet may have here: neither 0 nor 255, which look like networks and broadcasts. */
const octets = 254

/**
 * The loopback address a guest has: 127.x.y.z, the same for a VM of a cluster every time, and its own among 64,516 neighbouring
 * VMIDs. Outside 127.0.0.0/16, where other programs of the machine live; a cluster's name decides where exactly.
 */
export function loopbackAddress(cluster: string, vmid: number): string {
  const [start = 0] = createHash('sha256').update(cluster).digest()
  const block = start + Math.floor(vmid / octets ** 2)
  const place = vmid % octets ** 2
  return `127.${1 + (block % octets)}.${1 + Math.floor(place / octets)}.${1 + (place % octets)}`
}
