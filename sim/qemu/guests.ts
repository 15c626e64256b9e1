import { loopbackAddress } from '../guest/address.ts'
import type { AgentInterface, Guest, GuestFactory, GuestSpec } from '../types.ts'
import type { Qcow2Disks } from './disks.ts'
import type { GuestImage } from './image.ts'
import { reachable } from './interfaces.ts'
import { listeningPorts } from './listening.ts'
import { type Machine, startMachine } from './machine.ts'

export type QemuOptions = {
  image: GuestImage
  disks: Qcow2Disks
  /** Guests of different clusters have different addresses. */
  cluster: string
  onLine?: (line: { vmid: number; node: string; text: string }) => void
}

const lookEveryMs = 1000

/**
 * Guests that are real machines: kernel, cloud-init, agent and proxy are Debian's own. Their network is QEMU's user network, so each
 * is told to be at a loopback address of its own, where every TCP port is let through that somebody in it listens on.
 */
export function qemuGuests(options: QemuOptions): GuestFactory {
  // A machine that is on its way out still holds its disk.
  const leaving = new Map<number, Promise<void>>()
  return async (spec) => {
    await leaving.get(spec.vmid)
    const guest = await powerOn(spec, options)
    return {
      ...guest,
      close() {
        const closed = guest.close()
        leaving.set(spec.vmid, closed)
        return closed
      },
    }
  }
}

async function powerOn(spec: GuestSpec, { image, disks, cluster, onLine }: QemuOptions): Promise<Guest> {
  const { vmid, node, mac, memoryMiB, cores, cdroms } = spec
  const address = loopbackAddress(cluster, vmid)
  const paths = spec.disks.map((disk) => disks.pathOf(disk))
  const machine = await startMachine({
    image,
    disks: paths,
    discs: cdroms,
    mac,
    memoryMiB,
    cores,
    ...(onLine && { onLine: (text: string) => onLine({ vmid, node, text }) }),
  })
  const sight = watch(machine, address)
  return {
    interfaces: () => (spec.agentEnabled ? sight.interfaces() : undefined),
    qmpstatus: () => sight.state(),
    ended: machine.ended,
    async ask(command) {
      if (!spec.agentEnabled) return undefined
      const answer = await machine.agent.ask(command, {}, 3000)
      if (!answer) return undefined
      if ('error' in answer) return { error: answer.error }
      // The agent's own types: a list of interfaces is one.
      if (command === 'guest-network-get-interfaces')
        return reachable(answer.return as AgentInterface[], address)
      return answer.return
    },
    shutDown: () => machine.shutDown(),
    resize: (disk, bytes) => machine.resize(disks.pathOf(disk), bytes),
    async close() {
      sight.stop()
      await machine.close()
    },
  }
}

/** Looks at a machine once a second: its state, and once its agent is up, its addresses and what it listens on. */
function watch(machine: Machine, address: string) {
  let state = 'running'
  let interfaces: AgentInterface[] | undefined
  let isUp = false
  let isOver = false
  const forwarded = new Set<number>()
  machine.agentUp.then(() => {
    isUp = true
  })
  machine.ended.then(() => {
    isOver = true
  })

  const look = async (): Promise<void> => {
    state = await machine.state()
    if (!isUp) return
    const answer = await machine.agent.ask('guest-network-get-interfaces')
    interfaces =
      answer && 'return' in answer ? reachable(answer.return as AgentInterface[], address) : undefined
    for (const port of await listeningPorts(machine.agent)) {
      if (forwarded.has(port)) continue
      await machine.forward(address, port)
      forwarded.add(port)
    }
  }
  const rounds = async (): Promise<void> => {
    while (!isOver) {
      // Its end in the middle of a look shows in `ended`; anything else at the next look.
      await look().catch(() => {})
      await new Promise((resolve) => setTimeout(resolve, lookEveryMs).unref())
    }
  }
  void rounds()
  return {
    state: () => state,
    interfaces: () => interfaces,
    stop: () => {
      isOver = true
    },
  }
}
