import { askedOfHa } from '../../lib/asked-of-ha.ts'
import type { Claims } from '../../lib/claims.ts'
import { readMark } from '../../lib/mark.ts'
import { HOLD_TAG, seedPrefix } from '../../lib/names.ts'
import { fail, next, type Outcome, task, wait } from '../../lib/outcome.ts'
import type { Provider, VmConfig, VmStatus } from '../../lib/proxmox/index.ts'
import { accomplished, type Moment, type Place, type Row, type RowOf } from '../../lib/record.ts'
import { see } from '../../lib/sighting.ts'
import { placeholders, symptoms } from '../../lib/symptoms.ts'
import type { Deps } from './steps.ts'

type Stopping = RowOf['stop'] & Moment

/**
 * Brings the VM to a stand, wherever it is now. Repeatable: to stop what stands is a task that ends well. Nothing is stopped
 * while a call of ours may still run. A VM that we started is stopped without being asked whether it runs; whether it
 * stands then, only the machine tells.
 */
export async function stop(
  row: Stopping,
  { vms, claims, config }: Pick<Deps, 'vms' | 'claims' | 'config'>,
): Promise<Outcome> {
  if (row.task && row.task.step !== 'stop') return overtaken(row.task, vms)
  if (!row.settled) return wait('a call that was not answered may still run', 10)
  if (row.place?.node === '') {
    if (!(await isLeftTo(row, row.place, claims))) return next('release', { place: undefined })
    return located(row, vms, config.deployment)
  }
  const { ended, place } = row
  if (place && accomplished(row, 'stop') && standsStill(await vms.glance(place)))
    return next('unseed', { cloned: true })
  const sight = await see(row, vms, config.deployment)
  if (sight.kind === 'unclear') return sight.outcome
  if (sight.kind === 'gone') return next('unseed', { cloned: undefined })
  const { vm, config: current } = sight
  const kept = keptBy(current)
  if (kept) {
    const { uid } = row
    const hint = symptoms.Protected.hint({ ...placeholders, uid, ...vm, release: kept.release })
    return fail('Protected', `VM ${vm.vmid} is ${kept.why}`, hint)
  }
  const wasStarted = ended?.step === 'start' && ended.ok
  if (!wasStarted && standsStill(await vms.status(vm)))
    return next('unseed', { cloned: true, ...(place && { place: { ...place, node: vm.node } }) })
  if (askedOfHa(row, 'stop')) return wait('HA is to stop it', 5)
  return task(await vms.stop(vm), 'stopping')
}

/** What keeps a VM from being deleted, and the options of `qm set` that let go of it. */
function keptBy({ protection, tags }: VmConfig): { why: string; release: string } | undefined {
  const rest = [...tags].filter((tag) => tag !== HOLD_TAG)
  const keepers = [
    ...(protection ? [{ why: 'protected against deletion', release: '--protection 0' }] : []),
    ...(tags.has(HOLD_TAG)
      ? [
          {
            why: `tagged ${HOLD_TAG}`,
            release: rest.length > 0 ? `--tags '${rest.join(';')}'` : '--delete tags',
          },
        ]
      : []),
  ]
  if (keepers.length === 0) return undefined
  return {
    why: keepers.map(({ why }) => why).join(' and '),
    release: keepers.map(({ release }) => release).join(' '),
  }
}

const standsStill = (status: VmStatus | undefined) => status?.running === false && status.qmp === 'stopped'

/** A task from before that still runs is waited for, since it could bring back what is deleted here; a clone is told to stop, and cleans up behind itself. One that cannot be told any more is not seen at the next turn. */
async function overtaken({ upid, step }: NonNullable<Row['task']>, vms: Provider): Promise<Outcome> {
  if (step !== 'clone') return wait(`the task of ${step} is still running`, 1)
  await vms.cancel(upid)
  return wait('the clone is told to stop', 2)
}

/**
 * Whether an orphan's number is left to this row. A message that comes twice, or late, finds that it was given back, or
 * taken anew by the uid whose VM it is about: then what stands there is that uid's own business.
 */
async function isLeftTo({ uid, orphanOf }: Row, { cluster, vmid }: Place, claims: Claims): Promise<boolean> {
  const claim = await claims.vmidClaim(cluster, vmid)
  // An earlier version gave the claim itself to the orphan's row.
  return claim?.owner === uid || (claim?.owner === orphanOf && claim?.leaving === uid)
}

/** An orphan is known by its number alone. Its node is looked up, and its disks' storage in its configuration. */
async function located(row: Row, vms: Provider, deployment: string): Promise<Outcome> {
  const { place } = row
  if (!place) return next('unseed')
  const listed = await vms.locate(place.vmid)
  const node = listed?.node ?? (await vms.nodesOnline())[0]
  if (node === undefined) return wait('no node is online', 10)
  const look = await vms.look({ node, vmid: place.vmid })
  if (look.kind !== 'vm') return wait('its node was looked up', 0, { patch: { place: { ...place, node } } })
  const storage = look.config.bootDisk?.volume.split(':')[0] ?? ''
  const seed = readMark(look.config.description)?.seed
  // A mark is text that anyone may write: only a volume named as ours would be is ever deleted for it.
  const file = seed?.split(':iso/')[1]
  const prefix = seedPrefix(deployment, row.orphanOf ?? row.uid)
  const isNamedAsOurs = file?.startsWith(prefix) && /^\d+\.iso$/.test(file.slice(prefix.length))
  const patch = {
    place: { ...place, node, storage },
    ...(isNamedAsOurs && seed !== undefined ? { seed } : {}),
  }
  return wait('its place was looked up', 0, { patch })
}
