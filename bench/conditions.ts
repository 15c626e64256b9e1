import type { LabOptions } from '../test/lab/lab.ts'

/**
 * What Proxmox takes its time for: a full clone 6 s, a boot 20 s (the lab's own), three workers a node and a storage lock
 * that is waited for no longer than 10 s (both the simulator's own, as Proxmox has them). The rest as the simulator has it.
 */
export const BOOT_MS = 20_000
export const durations = { cloneMs: 6000 }

/** Ways that take no time: what is left of the overhead is the design's. */
export const NO_WAYS: Ways = { tableMs: 0, queueMs: 0, pickUpMs: 0, proxmoxMs: 0 }
/**
 * The shortest ways there are: a millisecond each. Without any, all of a hundred do what they do in the same instants, on the whole
 * seconds of the queue, and whoever asks for a place in the second in which it comes free may ask right before it does.
 */
export const SHORT_WAYS: Ways = { tableMs: 1, queueMs: 1, pickUpMs: 1, proxmoxMs: 1 }
/**
 * Ways as they are from a function in a VPC: an assumption, for what they add to the design's own time. A write of
 * DynamoDB in single-digit milliseconds, a message that is fetched by a waiting long poll, Proxmox behind a VPN.
 */
export const AWS_WAYS: Ways = { tableMs: 6, queueMs: 8, pickUpMs: 30, proxmoxMs: 25 }

/** How long it takes there and back. */
export type Ways = {
  tableMs: number
  queueMs: number
  /** From a message being visible to the function that has it. */
  pickUpMs: number
  /** What the network adds to each call of Proxmox, for us and for the floor. */
  proxmoxMs: number
}

/** Batches of a queue at once, and records in each, as the template for AWS has them. */
export const CONCURRENCY = 4

export const labOptions: LabOptions = { durations, cluster: { clone: 'full' } }
