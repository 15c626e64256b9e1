import type { Api } from './api.ts'
import { isProxmoxError } from './errors.ts'
import { readInterfaces } from './interfaces.ts'
import type { Provider } from './provider.ts'
import type { Vm, VmStatus } from './vm.ts'

type Machines = Pick<
  Provider,
  'clone' | 'configure' | 'resize' | 'status' | 'glance' | 'start' | 'stop' | 'destroy' | 'interfaces'
>

/** What is done to a VM, and what it says of itself. */
export function createMachines(api: Api): Machines {
  async function status(vm: Vm): Promise<VmStatus> {
    const { status, qmpstatus: qmp = status, lock } = await api.vmStatus(vm)
    const running = status === 'running' && qmp === 'running'
    return { running, qmp, ...(lock === undefined ? {} : { lock }) }
  }

  return {
    clone: ({ template, vmid, full, storage, format, ...rest }) =>
      api.clone(template, { newid: vmid, ...rest, full, ...(full ? { storage, format } : {}) }),

    configure: async (vm, { set = {}, delete: names = [], digest }) => {
      if (Object.keys(set).length + names.length === 0) return
      await api.configure(vm, { ...set, delete: names.length === 0 ? undefined : names.join(','), digest })
    },

    // Without a unit the size is in bytes, and being absolute it may be asked for again.
    resize: (vm, { disk, bytes, digest }) =>
      api.resize(vm, { disk, size: String(bytes), ...(digest === undefined ? {} : { digest }) }),

    status,

    glance: async (vm) => {
      try {
        return await status(vm)
      } catch (error) {
        if (isProxmoxError(error, 'VmMissing', 'Forbidden', 'Unreachable', 'NodeUnknown')) return undefined
        throw error
      }
    },

    start: (vm) => api.start(vm),
    stop: (vm) => api.stop(vm),

    // `purge` takes the VM out of backup jobs, replication and HA as well.
    destroy: (vm, { unreferencedDisks }) =>
      api.destroy(vm, { purge: true, 'destroy-unreferenced-disks': unreferencedDisks }),

    interfaces: async (vm) => readInterfaces(vm, await api.interfaces(vm)),
  }
}
