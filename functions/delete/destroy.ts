import { next, type Outcome, task, wait } from '../../lib/outcome.ts'
import { isProxmoxError, parseUpid, type Volume } from '../../lib/proxmox/index.ts'
import { accomplished, type Moment, type Place, type RowOf } from '../../lib/record.ts'
import { see } from '../../lib/sighting.ts'
import { storageQueue } from '../../lib/storage-queue.ts'
import type { Deps } from './steps.ts'

type Destroying = RowOf['destroy'] & Moment
type Needs = Pick<Deps, 'vms' | 'claims' | 'config' | 'cluster'>

/** Destroys the stopped VM and whatever disk of it stays behind. Repeatable: looks who is there before each call. */
export async function destroy(row: Destroying, deps: Needs): Promise<Outcome> {
  const { vms, config } = deps
  const { place } = row
  const queue = place && storageQueue(row, place, 'destroy', deps)
  const full = await queue?.stillFull()
  if (full) return full
  const sight = await see(row, vms, config.deployment, accomplished(row, 'destroy') ? 'nothing' : undefined)
  if (sight.kind === 'unclear') return sight.outcome
  if (sight.kind === 'gone' || !place || !queue) {
    return place && !(sight.kind === 'gone' && sight.heldByAnother)
      ? leftOvers(row, place, deps)
      : next('release')
  }
  const { vm } = sight
  if (!row.settled) return wait('a call that was not answered may still run', 10)
  const waits = await queue.enter()
  if (waits) return waits
  try {
    // One offline storage makes Proxmox fail: then once more without looking for strays. But not while it is our own
    // that is away, which this look tells: its disk would stay behind.
    const unreferencedDisks = !(row.ended?.step === 'destroy' && row.ended.code === 'StorageOffline')
    const { storage } = place
    if (!unreferencedDisks && storage !== '') await vms.volumesOf({ node: vm.node, storage, vmid: vm.vmid })
    return task(await vms.destroy(vm, { unreferencedDisks }), `destroying ${vm.vmid} on ${vm.node}`)
  } catch (error) {
    if (isProxmoxError(error, 'Running')) return next('stop')
    if (isProxmoxError(error, 'VmMissing')) return wait(error.message, 1)
    throw error
  }
}

/** Proxmox reports a destroy as done though a disk could not be removed. Such a disk would trip the next VM of this number. */
async function leftOvers(row: Destroying, place: Place, { vms, claims, cluster }: Needs): Promise<Outcome> {
  if (place.storage === '') return next('release')
  const online = await vms.nodesOnline()
  const node = online.includes(place.node) ? place.node : cluster.storageShared ? online[0] : undefined
  const suspect = (volume: string) => {
    const where = { cluster: place.cluster, node: node ?? place.node, volume }
    return claims.suspect(`disk#${where.cluster}#${where.node}#${volume}`, {
      kind: 'disk',
      ...where,
      uid: row.uid,
    })
  }
  if (node === undefined) {
    await suspect(`${place.storage}:vm-${place.vmid}`)
    return next('release')
  }
  const [volume, ...others] = await vms.volumesOf({ node, storage: place.storage, vmid: place.vmid })
  if (!volume) return next('release')
  if (couldNotDelete(row)) {
    for (const { volid } of [volume, ...others]) await suspect(volid)
    return next('release')
  }
  return deleteDisk(volume, node, place)

  async function deleteDisk({ volid }: Volume, on: string, { storage }: Place): Promise<Outcome> {
    const upid = await vms.deleteVolume({ node: on, storage, volume: volid }).catch((error: unknown) => {
      if (isProxmoxError(error, 'Forbidden')) return 'forbidden' as const
      throw error
    })
    if (upid === 'forbidden') {
      for (const one of [volume, ...others]) if (one) await suspect(one.volid)
      return next('release')
    }
    return upid === undefined
      ? wait(`deleted ${volid}`, 0)
      : task(upid, `deleting the left-over disk ${volid}`)
  }
}

const couldNotDelete = ({ ended }: Destroying) =>
  ended?.step === 'destroy' && !ended.ok && parseUpid(ended.upid)?.type === 'imgdel'
