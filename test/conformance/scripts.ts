import { powerOff, powerOn } from '../../sim/engine/vm-power.ts'
import type { Recorded } from './recording.ts'
import type { Scenario, Stage } from './replay.ts'

/** What the scripts that made the recordings did between the requests, as root on the host. */

const vmidIn = (recorded: Recorded): number => Number(/\/qemu\/(\d+)/.exec(recorded.request?.path ?? '')?.[1])

/** The lock a label speaks of is on the VM of the request, and off again when none is spoken of. */
export function lockByLabel({ cluster }: Stage, recorded: Recorded): void {
  const lock = /locked: ([a-z-]+)/.exec(recorded.label ?? '')?.[1]
  const config = cluster.state.vms[vmidIn(recorded)]?.config
  if (!config) return
  if (lock !== undefined) config.lock = lock
  else if (config.name !== undefined) delete config.lock
}

/** A VM is thrown away before the same number is cloned onto again. */
export async function throwAway({ cluster, clock }: Stage, recorded: Recorded): Promise<number> {
  if (recorded.request?.method !== 'POST' || !/\/clone$/.test(recorded.request.path)) return 0
  if (recorded.response?.status !== 200 || recorded.label?.startsWith('race')) return 0
  const isLong = recorded.label === 'description 8193 long'
  const vmid = isLong ? '121' : /newid=(\d+)/.exec(String(recorded.request.body))?.[1]
  const vm = vmid === undefined ? undefined : cluster.state.vms[vmid]
  if (!vm) return 0
  delete vm.config.lock
  delete vm.config.protection
  cluster.tasks.fork('pve1', 'qmdestroy', String(vm.vmid), 'root@pam!adm', {
    vmid: vm.vmid,
    purge: false,
    unreferenced: true,
  })
  await clock.advance(300)
  return 300
}

export const all =
  (...steps: Act[]): Act & NonNullable<Scenario['settle']> =>
  async (stage, recorded) => {
    let ms = 0
    for (const step of steps) {
      const took = await step(stage, recorded)
      if (typeof took === 'number') ms += took
    }
    return ms
  }

type Act = (stage: Stage, recorded: Recorded) => unknown

/** Does something where a label or an event begins with that text. */
export const at =
  (text: string, act: Act) =>
  async (stage: Stage, recorded: Recorded): Promise<number> => {
    if (!(recorded.label ?? recorded.event ?? '').startsWith(text)) return 0
    const ms = await act(stage, recorded)
    return typeof ms === 'number' ? ms : 0
  }

/** The task forked last of that type. */
export function lastTask({ cluster }: Stage, type: string): string {
  const task = Object.values(cluster.state.tasks)
    .filter((candidate) => candidate.type === type)
    .at(-1)
  if (!task) throw new Error(`no task of type ${type} yet`)
  return task.upid
}

/** How long the next full clones copy. */
export const copyFor =
  (ms: number): Act =>
  ({ cluster }) => {
    cluster.durations.cloneMs = ms
  }

/** Power as root would switch it, at once. */
export function power({ cluster }: Stage, vmid: number, on: boolean): void {
  cluster.catchUp()
  const vm = cluster.state.vms[vmid]
  if (!vm) throw new Error(`no VM ${vmid}`)
  if (on && !vm.run) powerOn(cluster, vm)
  if (!on && vm.run) powerOff(cluster, vm)
}

export function configure(
  { cluster }: Stage,
  vmid: number,
  set: Record<string, string | number | undefined>,
): void {
  cluster.catchUp()
  const vm = cluster.state.vms[vmid]
  if (!vm) throw new Error(`no VM ${vmid}`)
  for (const [key, value] of Object.entries(set)) {
    if (value === undefined) delete vm.config[key]
    else vm.config[key] = value
  }
}
