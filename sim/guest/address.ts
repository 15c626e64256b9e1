import { createHash } from 'node:crypto'

/**
 * The loopback address a guest of the simulator has: 127.x.y.z, the same for a VM of a cluster every time. Outside
 * 127.0.0.0/16, where other programs of the machine live.
 */
export function loopbackAddress(cluster: string, vmid: number): string {
  const [second = 0, third = 0, fourth = 0] = createHash('sha256').update(`${cluster}/${vmid}`).digest()
  return `127.${1 + (second % 254)}.${third}.${1 + (fourth % 254)}`
}
