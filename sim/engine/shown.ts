import type { SimTask, SimVm, SimVolume } from '../types.ts'
import { type Cluster, poolOfVm } from './cluster.ts'
import { volumeIdOf } from './storage.ts'

/** The VMs as a test or an operator of the simulator looks at them: past all permissions and delays. */
export function simVms(cluster: Cluster): SimVm[] {
  return Object.values(cluster.state.vms).map((vm) => {
    const pool = poolOfVm(cluster, vm.vmid)
    const { name, lock, template } = vm.config
    return {
      vmid: vm.vmid,
      node: vm.node,
      ...(name === undefined ? {} : { name: String(name) }),
      config: { ...vm.config },
      running: vm.run !== undefined,
      qmpstatus: (vm.run && cluster.guests.qmpstatus(vm.vmid)) ?? vm.run?.qmpstatus ?? 'stopped',
      ...(pool === undefined ? {} : { pool }),
      ...(lock === undefined ? {} : { lock: String(lock) }),
      template: template !== undefined,
    }
  })
}

export function simVolumes(cluster: Cluster): SimVolume[] {
  return Object.values(cluster.state.volumes).map((volume) => ({
    volid: volumeIdOf(volume),
    storage: volume.storage,
    ...(volume.node === undefined ? {} : { node: volume.node }),
    name: volume.name,
    sizeBytes: volume.sizeBytes,
    ...(volume.vmid === undefined ? {} : { vmid: volume.vmid }),
    content: volume.content,
    format: volume.format,
  }))
}

export function simTasks(cluster: Cluster): SimTask[] {
  return Object.values(cluster.state.tasks).map((task) => ({
    upid: task.upid,
    node: task.node,
    type: task.type,
    id: task.id,
    user: task.user,
    status: task.endMs === undefined ? 'running' : 'stopped',
    ...(task.endMs === undefined
      ? {}
      : { exitstatus: task.exitstatus ?? 'unexpected status', endMs: task.endMs }),
    startMs: task.startMs,
    log: [...task.log],
  }))
}
