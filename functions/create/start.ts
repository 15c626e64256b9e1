import { askedOfHa } from '../../lib/asked-of-ha.ts'
import { fail, next, type Outcome, task, wait } from '../../lib/outcome.ts'
import { accomplished, type Moment, type RowOf } from '../../lib/record.ts'
import { see } from '../../lib/sighting.ts'
import { placeholders, symptoms } from '../../lib/symptoms.ts'
import { madeAgain, seededAgain } from './gone.ts'
import type { Deps } from './steps.ts'

const BROKEN = new Set(['io-error', 'internal-error', 'guest-panicked'])

/**
 * Powers the VM on, and goes on once it runs. Repeatable: Proxmox refuses to start what runs already. A VM that no call of
 * ours can have started stands still, so it is started without being asked; whether it runs then, only the machine tells.
 */
export async function start(
  row: RowOf['start'] & Moment,
  { vms, config }: Pick<Deps, 'vms' | 'config'>,
): Promise<Outcome> {
  const { ended, place } = row
  const triedBefore = ended?.step === 'start' || row.unsettledUntil !== undefined
  if (accomplished(row, 'start') && (await vms.glance(place))?.running) return up(place.node)
  const sight = await see(row, vms, config.deployment)
  if (sight.kind === 'unclear') return sight.outcome
  if (sight.kind === 'gone') return madeAgain(row)
  const { vm } = sight
  if (!triedBefore) return task(await vms.start(vm), 'starting')
  const { running, qmp } = await vms.status(vm)
  if (running) return up(vm.node)
  if (BROKEN.has(qmp)) {
    const { storage } = place
    const hint = symptoms.VmBroken.hint({ ...placeholders, uid: row.uid, ...vm, storage })
    return fail('VmBroken', `VM ${vm.vmid} is in state ${qmp}`, hint)
  }
  if (qmp !== 'stopped') return wait(`VM ${vm.vmid} is in state ${qmp}`, 3)
  if (ended?.step === 'start' && ended.code === 'VolumeMissing') return seededAgain(row, vm.node)
  if (askedOfHa(row, 'start')) return wait('HA is to start it', 5)
  return task(await vms.start(vm), 'starting')

  function up(node: string): Outcome {
    return next('address', { place: { ...place, node } }, config.timings.bootSeconds)
  }
}
