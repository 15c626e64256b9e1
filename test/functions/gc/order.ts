import { expect } from 'vitest'
import { readSeed } from '../../../functions/gc/sight.ts'
import type { SimVm, SimVolume } from '../../../sim/index.ts'
import { type GcLab, GRACE_MS } from '../../lab/gc-lab.ts'

export type Foreign = { vms: Map<number, SimVm>; volumes: Map<string, SimVolume> }

const isOurSeed = (volid: string) => readSeed(volid, 'test') !== undefined
const keyOf = ({ volid, node }: SimVolume) => `${volid} on ${node}`

/** What there is before anything of ours, or a VM that a person made by hand: none of it may ever change. */
export function foreignIn(lab: GcLab, known?: Foreign, vmid?: number): Foreign {
  const isNew = (one: { vmid?: number }) => vmid === undefined || one.vmid === vmid
  return {
    vms: new Map([
      ...(known?.vms ?? []),
      ...lab.sim
        .vms()
        .filter(isNew)
        .map((vm) => [vm.vmid, vm] as const),
    ]),
    volumes: new Map([
      ...(known?.volumes ?? []),
      ...lab.sim
        .volumes()
        .filter(isNew)
        .map((volume) => [keyOf(volume), volume] as const),
    ]),
  }
}

/** Everything of ours is accounted for, everything accounted for is there, and all rows are at rest. */
export function expectOrder(lab: GcLab, foreign: Foreign): void {
  const rows = lab.ledger.rows()
  const live = rows.filter(({ phase }) => phase !== 'Deleted')
  expect(live.map(({ uid, phase }) => [uid, phase])).toEqual(live.map(({ uid }) => [uid, 'Ready']))
  expect(lab.queues.size()).toBe(0)

  const ourVms = lab.sim.vms().filter(({ vmid }) => !foreign.vms.has(vmid))
  const placed = live.map(({ place }) => `${place?.vmid} on ${place?.node}`).sort()
  expect(ourVms.map(({ vmid, node }) => `${vmid} on ${node}`).sort()).toEqual(placed)

  const seeds = lab.sim.volumes().filter(({ volid }) => isOurSeed(volid))
  expect(seeds.map(({ volid, node }) => `${volid} on ${node}`).sort()).toEqual(
    live.map(({ seed, place }) => `${seed} on ${place?.node}`).sort(),
  )
  expect(
    lab.claims
      .all()
      .map(({ partition, sort, owner }) => `${partition} ${sort} ${owner}`)
      .sort(),
  ).toEqual(
    live
      .flatMap(({ uid, place, address }) => [
        `vmid#lab ${place?.vmid} ${uid}`,
        `address#lab#${address} 0 ${uid}`,
      ])
      .sort(),
  )

  expect(lab.sim.vms().filter(({ vmid }) => foreign.vms.has(vmid))).toEqual(
    [...foreign.vms.values()].sort((a, b) => a.vmid - b.vmid),
  )
  const volumes = Map.groupBy(lab.sim.volumes(), (volume) => foreign.volumes.has(keyOf(volume)))
  expect(new Set(volumes.get(true))).toEqual(new Set(foreign.volumes.values()))
  const ourNumbers = new Set<number | undefined>(ourVms.map(({ vmid }) => vmid))
  const others = (volumes.get(false) ?? []).filter(
    ({ volid, vmid }) => !isOurSeed(volid) && !ourNumbers.has(vmid),
  )
  expect(others).toEqual([])
}

/** Lets the functions work for so long. */
export async function workFor(lab: GcLab, ms: number): Promise<void> {
  const until = lab.clock.now() + ms
  await lab.run(() => lab.clock.now() >= until || (lab.queues.nextAt() ?? until) >= until)
  await lab.clock.advance(Math.max(0, until - lab.clock.now()))
}

/** So many runs, with work and the time of grace after each; then all work that is left. */
export async function runs(lab: GcLab, count: number): Promise<void> {
  for (let run = 0; run < count; run++) {
    await lab.gc()
    await workFor(lab, GRACE_MS)
  }
  await lab.run()
}
