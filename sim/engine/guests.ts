import type { AgentInterface, Guest, GuestFactory, GuestSpec } from '../types.ts'
import type { Cluster } from './cluster.ts'
import { drivesOf, hasVolume, isCdrom } from './drives.ts'
import { parseNet } from './net.ts'
import type { Vm } from './state.ts'
import { findVolume, parseVolumeId } from './storage.ts'

export type GuestHouse = ReturnType<typeof createGuestHouse>

/** A guest without an agent and without a proxy. */
export const silentGuests: GuestFactory = async () => ({ interfaces: () => undefined, close: async () => {} })

/** The guests of the running VMs. */
export function createGuestHouse(cluster: () => Cluster) {
  const guests = new Map<number, { guest?: Guest; gone: boolean; failure?: unknown }>()
  const leaving = new Set<Promise<void>>()

  const leave = (guest: Guest): void => {
    const closing = guest.close().finally(() => leaving.delete(closing))
    leaving.add(closing)
  }

  return {
    boot(vm: Vm, firstBoot: boolean): void {
      const room: { guest?: Guest; gone: boolean; failure?: unknown } = { gone: false }
      guests.set(vm.vmid, room)
      cluster()
        .guestFactory(specOf(cluster(), vm, firstBoot))
        .then(
          (guest) => {
            if (room.gone) leave(guest)
            else room.guest = guest
          },
          (failure: unknown) => {
            room.failure = failure
          },
        )
    },

    powerOff(vmid: number): void {
      const room = guests.get(vmid)
      if (!room) return
      room.gone = true
      guests.delete(vmid)
      if (room.guest) leave(room.guest)
    },

    /** @throws what the factory rejected with: a simulator that cannot boot its guests should say so. */
    interfaces(vmid: number): AgentInterface[] | undefined {
      const room = guests.get(vmid)
      if (room?.failure !== undefined) throw room.failure
      return room?.guest?.interfaces()
    },

    async closeAll(): Promise<void> {
      for (const vmid of [...guests.keys()]) this.powerOff(vmid)
      await Promise.all(leaving)
    },
  }
}

function specOf(cluster: Cluster, vm: Vm, firstBoot: boolean): GuestSpec {
  const net = parseNet(vm.config.net0 ?? '')
  return {
    vmid: vm.vmid,
    node: vm.node,
    name: String(vm.config.name ?? `VM ${vm.vmid}`),
    mac: net.macaddr ?? '',
    bridge: net.options.bridge ?? '',
    cdroms: cdromsOf(cluster, vm),
    memoryMiB: Number(/\d+/.exec(String(vm.config.memory ?? 512))?.[0]),
    firstBoot,
    agentEnabled: isAgentEnabled(vm),
  }
}

function cdromsOf(cluster: Cluster, vm: Vm): Uint8Array[] {
  return drivesOf(vm.config)
    .filter((drive) => isCdrom(drive) && hasVolume(drive))
    .flatMap((drive) => {
      const volume = findVolume(cluster, vm.node, parseVolumeId(drive.file))
      return volume?.blob === undefined ? [] : [cluster.blobs.get(volume.blob)]
    })
}

export function isAgentEnabled(vm: Vm): boolean {
  return /^(?:enabled=)?1/.test(String(vm.config.agent ?? ''))
}
