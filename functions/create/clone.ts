import { describe, markOf } from '../../lib/mark.ts'
import { vmName } from '../../lib/names.ts'
import { fail, next, type Outcome, task, wait } from '../../lib/outcome.ts'
import { isProxmoxError } from '../../lib/proxmox/index.ts'
import { accomplished, type Moment, type RowOf } from '../../lib/record.ts'
import { judge } from '../../lib/sighting.ts'
import { storageQueue } from '../../lib/storage-queue.ts'
import type { Deps } from './steps.ts'

type Cloning = RowOf['clone'] & Moment
type Needs = Pick<Deps, 'vms' | 'claims' | 'config' | 'cluster'>

/**
 * Clones the template to the claimed VMID, marked from birth. Repeatable, also while an earlier call may still run:
 * Proxmox lets only one VM be at a VMID, so a second clone to the same one does no harm.
 */
export async function clone(row: Cloning, deps: Needs): Promise<Outcome> {
  const queue = storageQueue(row, row.place, 'clone', deps)
  const full = await queue.stillFull()
  if (full) return full
  const look = await deps.vms.look(row.place, accomplished(row, 'clone') ? undefined : 'nothing')
  if (look.kind === 'absent')
    return isLittered(row) ? elsewhere(row) : ((await queue.enter()) ?? begin(row, deps))
  const sight = await judge(look, row, row.place, deps.vms, deps.config.deployment)
  if (sight.kind === 'unclear') return sight.outcome
  if (sight.kind === 'gone') return next('reserve', { place: undefined, ended: undefined })
  const { mark, vm } = sight
  if (mark.generation !== row.generation || mark.specHash !== row.specHash)
    return next('stop', { cloned: true })
  return next('seed', { cloned: true, place: { ...row.place, node: vm.node } })
}

/** Our clone to this number tripped over what was left of an earlier VM. Whoever that belongs to, another number will do. */
const isLittered = ({ ended }: Cloning) => ended?.step === 'clone' && ended.code === 'VolumeExists'

function elsewhere({ settled, place, littered = [] }: Cloning): Outcome {
  if (!settled) return wait('a call that was not answered may still run', 10)
  return next('reserve', { place: undefined, ended: undefined, littered: [...littered, place.vmid] })
}

async function begin(row: Cloning, { vms, config, cluster }: Needs): Promise<Outcome> {
  const { place, name } = row
  const mark = markOf(row, config.deployment)
  if (!mark) return fail('Misconfigured', 'the row has no mark to give to its VM')
  try {
    const upid = await vms.clone({
      template: { node: place.node, vmid: place.template },
      vmid: place.vmid,
      name: vmName({ uid: row.uid, name }),
      description: describe(mark, name),
      ...(cluster.pool === undefined ? {} : { pool: cluster.pool }),
      full: cluster.clone === 'full',
      storage: place.storage,
    })
    return task(upid, `cloning ${place.template} to ${place.vmid} on ${place.node}`)
  } catch (error) {
    if (isProxmoxError(error, 'AlreadyExists')) return wait(error.message, 2)
    if (!isProxmoxError(error, 'VmMissing')) throw error
    return fail('TemplateProblem', `template ${place.template} is not on node ${place.node}`)
  }
}
