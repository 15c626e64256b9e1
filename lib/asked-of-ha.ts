import type { Moment, Row, StepName } from './record.ts'

/** Several of the manager's rounds of 10 s. Source: pve-ha-manager CRM.pm, LRM.pm. */
const ROUNDS_SECONDS = 60

/**
 * Whether the step has just asked HA to start or stop the VM. Such a task ends well once the wish is noted; the VM moves in
 * a later round of the manager, and to ask again meanwhile would only add tasks. Source: qemu-server API2/Qemu.pm vm_start, vm_stop.
 */
export function askedOfHa({ ended, endedSecondsAgo }: Row & Moment, step: StepName): boolean {
  if (ended?.step !== step || !ended.ok || endedSecondsAgo > ROUNDS_SECONDS) return false
  return /^UPID:(?:[^:]*:){4}ha(?:start|stop):/.test(ended.upid)
}
