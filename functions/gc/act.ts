import { atMost } from '../../lib/at-most.ts'
import { type Claim, type Claims, keeperOf, vmidPartition } from '../../lib/claims.ts'
import type { Resume } from '../../lib/events.ts'
import type { Inventory } from '../../lib/inventory.ts'
import { isProxmoxError, type ListedVm, type Provider } from '../../lib/proxmox/index.ts'
import type { Queues } from '../../lib/queue.ts'
import { keyOf, type Orphan, type ProxyDeletionRequested } from '../delete/event.ts'
import type { Action, State, Warning } from './event.ts'
import { isSpare } from './find-claims.ts'
import type { Planned } from './plan.ts'
import { sightOf } from './sight.ts'
import { isLive } from './world.ts'

/** What became of an action, and what an operator should know of it. */
export type Deed = { state: State; why?: string; warning?: Warning }

/** All that gc may change: messages, claims, and the volumes it sweeps. It writes no row. */
export type Hands = {
  inventory: Pick<Inventory, 'row'>
  claims: Pick<Claims, 'leaveVmid' | 'free'>
  queues: Pick<Queues, 'send'>
  /** Undefined for a cluster that is not configured. */
  vmsOf(cluster: string): Pick<Provider, 'isFree' | 'look' | 'deleteVolume'> | undefined
  /** Where this run's list shows a VMID. */
  listed(cluster: string, vmid: number): ListedVm | undefined
  deployment: string
  now(): number
  /** A claim as this run saw it, before anything was proven. */
  claimed(partition: string, sort: string): Claim | undefined
  /** No action starts later. */
  untilMs: number
}

const AT_ONCE = 8
const done: Deed = { state: 'done' }
const overtaken = (why: string): Deed => ({ state: 'overtaken', why })

/** Carries the plan out. Each action is proven once more by what is there now, and may be repeated: by another run, or by the next. */
export function act(planned: readonly Planned[], hands: Hands): Promise<Deed[]> {
  return atMost(AT_ONCE, planned, async ({ action }) => {
    if (hands.now() >= hands.untilMs) return { state: 'left', why: 'the time of this run was over' }
    try {
      return await perform(action, hands)
    } catch (error) {
      if (!isProxmoxError(error)) throw error
      return { state: 'failed', why: error.message }
    }
  })
}

function perform(action: Action, hands: Hands): Promise<Deed> {
  switch (action.kind) {
    case 'delete orphan':
      return deleteOrphan(action, hands)
    case 'expire':
      return expire(action, hands)
    case 'kick':
      return kick(action, hands)
    case 'sweep seed':
      return sweepSeed(action, hands)
    case 'sweep disk':
      return sweepDisk(action, hands)
    case 'show disk':
      return showDisk(action, hands)
    case 'free claim':
      return freeClaim(action, hands)
  }
}

type Of<K extends Action['kind']> = Action & { kind: K }

async function deleteOrphan(
  { cluster, vmid, uid }: Of<'delete orphan'>,
  { inventory, claims, queues, claimed }: Hands,
) {
  const seen = claimed(vmidPartition(cluster), String(vmid))
  const orphan = { type: 'Orphan', cluster, vmid, uid } satisfies Orphan
  const owner = keyOf(orphan)
  // What was left to it once is waited for, also by a row that has come since.
  if (seen?.leaving !== owner && isLive(await inventory.row(uid))) return overtaken(`${uid} has a row again`)
  if (isLive(await inventory.row(owner))) return overtaken('it is being deleted already')
  // The number stays taken until its deletion has proven it free, and its old owner, should it be asked for again, waits
  // for that. If it was quicker, the VM is its own again.
  if (!(await claims.leaveVmid({ cluster, vmid }, uid, owner, seen)))
    return overtaken('its number was taken anew')
  await queues.send('delete', orphan, { delaySeconds: 0 })
  return done
}

async function expire({ uid }: Of<'expire'>, { inventory, queues, now }: Hands): Promise<Deed> {
  const row = await inventory.row(uid)
  if (!isLive(row) || row.wish === 'absent') return overtaken('its deletion was asked for already')
  if (row.expiresAt === undefined || row.expiresAt > now()) return overtaken('it was given more time')
  const message = { type: 'ProxyDeletionRequested', uid } satisfies ProxyDeletionRequested
  await queues.send('delete', message, { delaySeconds: 0 })
  return done
}

/** The turn tells whether the row has moved meanwhile. */
async function kick({ uid, turn, side }: Of<'kick'>, { queues }: Hands): Promise<Deed> {
  await queues.send(side, { type: 'Resume', uid, turn } satisfies Resume, { delaySeconds: 0 })
  return done
}

async function sweepSeed(action: Of<'sweep seed'>, { inventory, vmsOf }: Hands): Promise<Deed> {
  const { cluster, node, storage, volume, shared, uid } = action
  const vms = vmsOf(cluster)
  if (!vms) return overtaken('its cluster is not configured')
  const row = await inventory.row(uid)
  if (isLive(row)) {
    const { place, seededOn = [] } = row
    const isIts = row.seed === volume && (shared || place?.node === node || seededOn.includes(node))
    if (isIts) return overtaken(`${uid} has a row that names it`)
    if (place?.cluster === cluster) {
      const look = await vms.look(place)
      if (look.kind === 'hidden' || look.kind === 'unknown')
        return overtaken(`the VM of ${uid} cannot be seen now`)
      const isInDrive = look.kind === 'vm' && look.config.cdroms.some((drive) => drive.volume === volume)
      if (isInDrive && (shared || look.node === node)) return overtaken(`the VM of ${uid} has it in a drive`)
    }
  }
  await vms.deleteVolume({ node, storage, volume })
  return done
}

async function sweepDisk(action: Of<'sweep disk'>, { inventory, vmsOf, listed }: Hands): Promise<Deed> {
  const { cluster, node, storage, volume, vmid, uid } = action
  const vms = vmsOf(cluster)
  if (!vms) return overtaken('its cluster is not configured')
  if (isLive(await inventory.row(uid))) return overtaken(`${uid} has a row again`)
  if (!(await vms.isFree(vmid))) {
    const held = overtaken(`${vmid} is held`)
    return listed(cluster, vmid) ? held : { ...held, warning: hidden(cluster, vmid, uid, node) }
  }
  await vms.deleteVolume({ node, storage, volume })
  return done
}

async function showDisk(action: Of<'show disk'>, { vmsOf }: Hands): Promise<Deed> {
  const { cluster, node, volume, vmid } = action
  if (!(await vmsOf(cluster)?.isFree(vmid))) return overtaken('it is of a VM that our token may not see')
  const warning: Warning = {
    code: 'StrayDisk',
    cluster,
    vmid,
    text: `the disk ${volume} on ${node} carries the number ${vmid}, which nothing holds, and it is not known to be ours`,
    hint: `${vmid} is not given to a proxy while it lies there. If nobody needs it: on node ${node}, \`pvesm free ${volume}\``,
  }
  return { ...done, warning }
}

async function freeClaim(action: Of<'free claim'>, hands: Hands): Promise<Deed> {
  const { cluster, partition, sort, owner, vmid } = action
  const { inventory, claims } = hands
  const seen = hands.claimed(partition, sort)
  if (seen?.owner !== owner) return overtaken('it is another’s')
  const keeper = keeperOf(seen)
  const row = await inventory.row(keeper)
  if (isLive(row) && !isSpare(seen, row)) return overtaken(`${keeper} needs it`)
  const giveBack = async () => ((await claims.free(seen)) ? done : overtaken('it was taken anew'))
  if (vmid === undefined) return giveBack()
  const holder = await holderOf(cluster, vmid, owner, hands)
  if (holder === 'nobody' || holder === 'another') return giveBack()
  if (holder === 'its VM') return overtaken('its VM still stands')
  return { ...overtaken(holder), warning: hidden(cluster, vmid, owner, hands.listed(cluster, vmid)?.node) }
}

/** Who is at a number, by the proof that `release` asks for; only what is surely not its owner's lets a claim go. */
async function holderOf(cluster: string, vmid: number, uid: string, { vmsOf, listed, deployment }: Hands) {
  const vms = vmsOf(cluster)
  if (!vms) return 'its cluster is not configured'
  if (await vms.isFree(vmid)) return 'nobody'
  const vm = listed(cluster, vmid)
  if (!vm) return 'something that our token may not see holds the number'
  const look = await vms.look(vm)
  if (look.kind === 'absent') return 'nobody'
  if (look.kind === 'container') return 'another'
  if (look.kind !== 'vm') return 'what holds the number cannot be seen now'
  if (look.config.lock !== undefined && look.config.name === undefined)
    return 'a half-made VM holds the number'
  const sight = sightOf(look.config, vmid, deployment)
  if (sight.kind === 'doubtful') return 'a VM that looks like ours and bears no mark holds the number'
  return sight.kind === 'ours' && sight.mark.uid === uid ? 'its VM' : 'another'
}

const hidden = (cluster: string, vmid: number, uid: string, node: string | undefined): Warning => ({
  code: 'HiddenVm',
  cluster,
  vmid,
  uid,
  text: `${vmid} is claimed by ${uid}, which has no row any more, and it cannot be proven that nothing of it is there`,
  hint:
    `on ${node === undefined ? 'each node' : `node ${node}`}, \`qm config ${vmid}\` to look; if it is what was left of a clone, ` +
    `\`qm unlock ${vmid} && qm destroy ${vmid} --purge --destroy-unreferenced-disks 1\``,
})
