import type { AgentInterface, Guest, GuestFactory, GuestSpec } from '../types.ts'
import type { Cluster } from './cluster.ts'
import { drivesOf, hasVolume, isCdrom } from './drives.ts'
import { parseNet } from './net.ts'
import { diskOf, type Vm } from './state.ts'
import { findVolume, parseVolumeId } from './storage.ts'

export type GuestHouse = ReturnType<typeof createGuestHouse>

/** A guest without an agent and without a proxy. */
export const silentGuests: GuestFactory = async () => ({ interfaces: () => undefined, close: async () => {} })

type Room = { guest?: Guest; gone: boolean; failure?: unknown }

/** How far the start of a machine is. */
type Start = { kind: 'under way' } | { kind: 'done' } | { kind: 'failed'; words: string }

/** The guests of the running VMs. */
export function createGuestHouse(cluster: () => Cluster) {
  const rooms = new Map<number, Room>()
  const leaving = new Set<Promise<void>>()

  const leave = (guest: Guest): void => {
    const closing = guest.close().finally(() => leaving.delete(closing))
    leaving.add(closing)
  }

  const moveIn = (vmid: number, room: Room, guest: Guest): void => {
    if (room.gone) {
      leave(guest)
      return
    }
    room.guest = guest
    guest.ended?.then(() => {
      if (!room.gone && !cluster().closed()) wentOff(vmid, room)
    })
  }

  /** A machine that was shut down from inside, or whose QEMU died, stands still. */
  const wentOff = (vmid: number, room: Room): void => {
    room.gone = true
    rooms.delete(vmid)
    cluster().catchUp()
    delete cluster().state.vms[vmid]?.run
    cluster().commit()
  }

  return {
    boot(vm: Vm, firstBoot: boolean): void {
      const room: Room = { gone: false }
      rooms.set(vm.vmid, room)
      cluster()
        .guestFactory(specOf(cluster(), vm, firstBoot))
        .then(
          (guest) => moveIn(vm.vmid, room, guest),
          (failure: unknown) => {
            room.failure = failure
          },
        )
    },

    powerOff(vmid: number): void {
      const room = rooms.get(vmid)
      if (!room) return
      room.gone = true
      rooms.delete(vmid)
      if (room.guest) leave(room.guest)
    },

    startOf(vmid: number): Start {
      const room = rooms.get(vmid)
      if (room?.failure !== undefined) return { kind: 'failed', words: String(room.failure) }
      // One that has ended again by now had started.
      return room && !room.guest ? { kind: 'under way' } : { kind: 'done' }
    },

    /** @throws what the factory rejected with: a simulator that cannot boot its guests should say so. */
    interfaces(vmid: number): AgentInterface[] | undefined {
      const room = rooms.get(vmid)
      if (room?.failure !== undefined) throw room.failure
      return room?.guest?.interfaces()
    },

    /** What a real agent answers, as Proxmox passes it on; `undefined`: the guest has none that could be asked. */
    async ask(vmid: number, command: string): Promise<{ result: unknown } | undefined> {
      const guest = rooms.get(vmid)?.guest
      const result = await guest?.ask?.(command)
      return result === undefined ? undefined : { result }
    },

    qmpstatus: (vmid: number): string | undefined => rooms.get(vmid)?.guest?.qmpstatus?.(),

    /** Whether there is a guest that can shut down by itself; it was asked to. */
    shutDown(vmid: number): boolean {
      const room = rooms.get(vmid)
      if (!room?.guest?.shutDown) return false
      room.guest.shutDown().catch((failure: unknown) => {
        room.failure = failure
      })
      return true
    },

    resize(vmid: number, disk: string, bytes: number): void {
      const room = rooms.get(vmid)
      room?.guest?.resize?.(disk, bytes).catch((failure: unknown) => {
        room.failure = failure
      })
    },

    async closeAll(): Promise<void> {
      for (const vmid of [...rooms.keys()]) this.powerOff(vmid)
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
    cores: Number(vm.config.cores ?? 1),
    disks: disksOf(cluster, vm),
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

function disksOf(cluster: Cluster, vm: Vm): string[] {
  const first = /order=(\w+)/.exec(String(vm.config.boot ?? ''))?.[1]
  return drivesOf(vm.config)
    .filter((drive) => !isCdrom(drive) && hasVolume(drive))
    .sort((a, b) => Number(b.slot === first) - Number(a.slot === first))
    .flatMap((drive) => {
      const volume = findVolume(cluster, vm.node, parseVolumeId(drive.file))
      return volume ? [diskOf(volume)] : []
    })
}

export function isAgentEnabled(vm: Vm): boolean {
  return /^(?:enabled=)?1/.test(String(vm.config.agent ?? ''))
}
