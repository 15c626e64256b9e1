import { die } from './errors.ts'
import type { Vm } from './state.ts'

/** @throws {PveError} when the config carries a lock. Source: pve-guest-common AbstractConfig.pm check_lock. */
export function checkLock(vm: Vm, except?: string): void {
  const { lock } = vm.config
  if (lock !== undefined && lock !== except) die(`VM is locked (${lock})`)
}

/** @throws {PveError} in protection mode. */
export function checkProtection(vm: Vm, what: string): void {
  if (Number(vm.config.protection ?? 0) === 1) die(`${what} - protection mode enabled`)
}
