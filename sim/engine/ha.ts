import { type Cluster, isQuorate } from './cluster.ts'
import { die } from './errors.ts'
import { end, type Program } from './program.ts'

/** The state that a VM under HA is to be in. */
export type HaState = 'started' | 'stopped'

type HaData = { vmid: number }

/** How long until the manager has taken note, and the node's own part acts. Source: pve-ha-manager CRM.pm, LRM.pm: rounds of 10 s. */
const roundMs = 10_000

export const haState = ({ state }: Cluster, vmid: number): HaState | undefined => state.ha?.[vmid]

/** The task that a wish to start or stop becomes where HA has the VM. Source: qemu-server API2/Qemu.pm vm_start, vm_stop, vm_shutdown. */
export function haTask(cluster: Cluster, vmid: number, type: string): string {
  return haState(cluster, vmid) === undefined ? type : type.replace(/^qm(?=start|stop|shutdown)/, 'ha')
}

/** Puts a VM under HA, or changes what it is to be. */
export function setHa(cluster: Cluster, vmid: number, wanted: HaState): void {
  cluster.state.ha = { ...cluster.state.ha, [vmid]: wanted }
  roundSoon(cluster, vmid)
}

export function removeHa({ state }: Cluster, vmid: number): void {
  const { [vmid]: _, ...rest } = state.ha ?? {}
  state.ha = rest
}

/** @throws {PveError} before a destroy without purge. */
export function checkHa(cluster: Cluster, vmid: number): void {
  if (haState(cluster, vmid) !== undefined)
    die(`unable to remove VM ${vmid} - used in HA resources and purge parameter not set.`)
}

/** The manager's next round: it starts what is to be started and stands still, and the other way round. */
export function roundSoon(cluster: Cluster, vmid: number): void {
  cluster.clock.after(roundMs, () => {
    const vm = cluster.state.vms[vmid]
    const wanted = haState(cluster, vmid)
    if (cluster.closed() || !vm || wanted === undefined || !isQuorate(cluster, vm.node)) return
    const isThere = (vm.run !== undefined) === (wanted === 'started')
    if (!isThere)
      cluster.tasks.fork(vm.node, vm.run ? 'qmstop' : 'qmstart', String(vmid), 'root@pam', { vmid })
  })
}

/** Only says what is wanted, and ends: the VM has not moved yet. */
const asks = (wanted: HaState, what: string): Program<HaData> => ({
  stages: {
    begin({ cluster, data, log }) {
      log(`Requesting HA ${what} for VM ${data.vmid}`)
      setHa(cluster, data.vmid, wanted)
      return end
    },
  },
})

export const haStartProgram = asks('started', 'start')
export const haStopProgram = asks('stopped', 'stop')
