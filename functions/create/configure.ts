import { fail, next, type Outcome, task, wait } from '../../lib/outcome.ts'
import { isProxmoxError } from '../../lib/proxmox/index.ts'
import type { Moment, RowOf } from '../../lib/record.ts'
import { see } from '../../lib/sighting.ts'
import { changes, templateFault } from './changes.ts'
import { madeAgain, seededAgain } from './gone.ts'
import type { Deps } from './steps.ts'

const GIB = 1024 ** 3

/** A shared storage may show a new disk late: what failed is tried again at growing intervals. In seconds; 0 is now. */
function pauseBetweenTries({ ended, endedSecondsAgo, waitedSeconds }: RowOf['configure'] & Moment): number {
  if (ended?.step !== 'configure' || ended.ok) return 0
  const pause = Math.min(30, 2 + waitedSeconds / 5)
  return endedSecondsAgo < pause ? Math.ceil(pause) : 0
}

/** Makes the clone what the row asks for: size, NIC, seed, boot order, tags, disk. Repeatable: sends only what differs. */
export async function configure(
  row: RowOf['configure'] & Moment,
  { vms, config, cluster }: Pick<Deps, 'vms' | 'config' | 'cluster'>,
): Promise<Outcome> {
  // The disk is grown once all else was set; `start` looks at the VM before it does anything.
  if (row.ended?.step === 'configure' && row.ended.ok) return next('start')
  const sight = await see(row, vms, config.deployment)
  if (sight.kind === 'unclear') return sight.outcome
  if (sight.kind === 'gone') return madeAgain(row)
  const { vm, config: current } = sight
  const { digest, bootDisk, protection } = current
  const fault = templateFault(current)
  if (fault || !bootDisk) {
    return fail('TemplateProblem', `template ${row.place.template} ${fault ?? 'has no disk to boot from'}`)
  }
  try {
    if (protection) {
      // Alone, and first: until it is off, the VM could not be deleted again.
      await vms.configure(vm, { set: { protection: false }, digest })
      return wait('protection, inherited from the template, is turned off', 0)
    }
    const change = changes(current, row, {
      deployment: config.deployment,
      bridge: cluster.bridge,
      vlan: cluster.vlan,
    })
    if (change) await vms.configure(vm, { ...change, digest })
  } catch (error) {
    if (isProxmoxError(error, 'VolumeMissing') && error.volume === row.seed) return seededAgain(row, vm.node)
    if (isProxmoxError(error, 'DigestMismatch'))
      return wait('the configuration was changed by another meanwhile', 1)
    throw error
  }
  const bytes = row.spec.size.diskGiB * GIB
  if (bootDisk.sizeBytes === undefined || bootDisk.sizeBytes >= bytes) return next('start')
  const growing = `growing ${bootDisk.slot} to ${row.spec.size.diskGiB} GiB`
  const before = row.ended?.step === 'configure' ? `${growing}, which ended with ${row.ended.code}` : growing
  const pause = pauseBetweenTries(row)
  if (pause > 0) return wait(before, pause)
  const upid = await vms.resize(vm, { disk: bootDisk.slot, bytes })
  return upid === undefined ? next('start') : task(upid, before)
}
