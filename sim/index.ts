import { createCluster } from './engine/create.ts'
import { qm } from './engine/qm.ts'
import { root } from './engine/root.ts'
import { simTasks, simVms, simVolumes } from './engine/shown.ts'
import { createFront } from './http/front.ts'
import type { Sim, SimOptions } from './types.ts'

export { type Admin, listenAdmin } from './admin.ts'
export { createVirtualClock, realClock } from './clock.ts'
export { type DefaultWorld, defaultWorld } from './default-world.ts'
export { silentGuests } from './engine/guests.ts'
export {
  type GuestOptions,
  type Guests,
  type InProcessGuests,
  inProcessGuests,
  loopbackGuests,
} from './guest/guests.ts'
export { type Qcow2Disks, qcow2Disks } from './qemu/disks.ts'
export { type QemuOptions, qemuGuests } from './qemu/guests.ts'
export { type GuestImage, guestImage, isImageBuilt, NoGuestImage } from './qemu/image.ts'
export * from './types.ts'

/** A simulated Proxmox VE cluster. It runs until it is closed; with `stateDir` it goes on where it was left. */
export function createSim(options: SimOptions): Sim {
  const { cluster, engine, log, hosts, close } = createCluster(options)
  const front = createFront(engine, options.stateDir === undefined ? {} : { stateDir: options.stateDir })
  return {
    version: cluster.state.version,
    clock: cluster.clock,
    request: (node, request) => front.handle(node, request),
    listen: (where) => front.listen(where),
    faults: cluster.faults,
    nodes: () => cluster.state.nodes.map(({ name, state }) => ({ name, state })),
    setNode: hosts.setState,
    setDaemon: hosts.setDaemon,
    setStorage(id, { offline, on }) {
      const storage = cluster.state.storages.find(({ storage }) => storage === id)
      if (!storage) throw new Error(`no such storage: ${id}`)
      delete storage.offline
      delete storage.offlineOn
      if (offline !== undefined) storage.offline = offline
      if (offline !== undefined && on) storage.offlineOn = on
      cluster.commit()
    },
    hostReset: hosts.reset,
    killTask: cluster.tasks.kill,
    setQemu(vmid, qmpstatus) {
      cluster.catchUp()
      const run = cluster.state.vms[vmid]?.run
      if (!run) throw new Error(`VM ${vmid} is not running`)
      run.qmpstatus = qmpstatus
      cluster.commit()
    },
    qm: (node, argv) => qm(cluster, node, argv),
    root: (node, argv) => root(cluster, node, argv),
    vms: () => simVms(cluster),
    volumes: () => simVolumes(cluster),
    tasks: () => simTasks(cluster),
    calls: () => [...log],
    async close() {
      await front.close()
      await close()
    },
  }
}
