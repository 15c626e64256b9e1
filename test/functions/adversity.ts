import { expect } from 'vitest'
import type { Lab } from '../lab/lab.ts'

/** Nothing of anyone's proxies is left but the VMs and volumes named: no claim, no message. */
export function expectNothingLeft(lab: Lab, but: { vms?: number[]; volumes?: string[] } = {}): void {
  expect(lab.leftOvers()).toEqual({ vms: but.vms ?? [], volumes: but.volumes ?? [] })
  expect(lab.claims.all()).toEqual([])
  expect(lab.queues.size()).toBe(0)
}

/** Deletes a proxy; an hour later as well there is nothing left of it. */
export async function expectDeletable(
  lab: Lab,
  uid: string,
  but: { vms?: number[]; volumes?: string[] } = {},
): Promise<void> {
  lab.remove(uid)
  await lab.run()
  expect(lab.row(uid)).toMatchObject({ phase: 'Deleted' })
  expectNothingLeft(lab, but)
  await lab.clock.advance(3600_000)
  await lab.run()
  expectNothingLeft(lab, but)
}

/** The VM as it stands, to be compared with later. */
export const portrait = (lab: Lab, vmid: number) => lab.sim.vms().find((vm) => vm.vmid === vmid)

export const deadLetterCodes = (lab: Lab) => lab.queues.deadLetters.map(({ obituary }) => obituary.code)

export const eventTypes = (lab: Lab) => lab.outcomes.map(({ type }) => type)
