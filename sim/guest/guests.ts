import type { Guest, GuestFactory, GuestSpec, SimClock } from '../types.ts'
import { loopbackAddress } from './address.ts'
import { listInterfaces } from './agent.ts'
import { type Booted, boot } from './boot.ts'
import { createMachine, type Machine } from './machine.ts'
import { judgeProxyRequest, type ProxyPolicy, type ProxyRequest } from './policy.ts'
import { openProxy, type ProxyServer } from './proxy-server.ts'

export type GuestOptions = {
  clock: SimClock
  /** From power on until the agent answers and the proxy serves. */
  bootMs?: number
  /** Guests of different clusters have different addresses. */
  cluster?: string
  /** Packages the templates bring. */
  preinstalled?: string[]
  /** Whether packages can be fetched at that moment; they can where nothing is said. */
  hasMirror?: () => boolean
  /** Adds a docker0 before the real card, as an image with Docker has it. */
  hasDocker?: boolean
  /** Told each line of each console as it comes. */
  onLine?: (line: { vmid: number; node: string; text: string }) => void
}

export type Guests = GuestFactory & {
  /** What a VM printed since it was first started: for the operator, who wonders why there is no proxy. */
  console(vmid: number): string[]
}

export type InProcessGuests = Guests & {
  /** What a client gets that connects there: a proxy's verdict, or nobody listens. */
  probe(
    address: string,
    port: number,
    request: ProxyRequest,
  ): ReturnType<typeof judgeProxyRequest> | 'ECONNREFUSED'
}

/** Guests whose proxies are real: they listen on loopback addresses of their own and serve requests. */
export function loopbackGuests(options: GuestOptions): Guests {
  return createGuests(options, openProxy)
}

/** The same guests without sockets, for lives by the thousand on a virtual clock. */
export function inProcessGuests(options: GuestOptions): InProcessGuests {
  const listening = new Map<string, ProxyPolicy>()
  const guests = createGuests(options, async (policy, address) => {
    const place = `${address}:${policy.port}`
    if (listening.has(place))
      throw Object.assign(new Error(`listen EADDRINUSE ${place}`), { code: 'EADDRINUSE' })
    listening.set(place, policy)
    return { close: async () => void listening.delete(place) }
  })
  return Object.assign(guests, {
    probe(address: string, port: number, request: ProxyRequest) {
      const policy = listening.get(`${address}:${port}`)
      return policy ? judgeProxyRequest(policy, request) : ('ECONNREFUSED' as const)
    },
  })
}

type Open = (policy: ProxyPolicy, address: string) => Promise<ProxyServer>

const consoleLines = 500

function createGuests(options: GuestOptions, open: Open): Guests {
  // A machine's disk, and its console, are there from boot to boot; a first boot has new ones.
  const machines = new Map<number, { machine: Machine; lines: string[] }>()

  const guestOf: GuestFactory = async (spec) => {
    const known = spec.firstBoot ? undefined : machines.get(spec.vmid)
    const { machine, lines } = known ?? { machine: createMachine(options.preinstalled), lines: [] }
    machines.set(spec.vmid, { machine, lines })
    const log = (text: string) => {
      lines.push(text)
      if (lines.length > consoleLines) lines.shift()
      options.onLine?.({ vmid: spec.vmid, node: spec.node, text })
    }
    return powerOn(spec, machine, { options, open, log })
  }
  return Object.assign(guestOf, { console: (vmid: number) => [...(machines.get(vmid)?.lines ?? [])] })
}

function powerOn(
  spec: GuestSpec,
  machine: Machine,
  { options, open, log }: { options: GuestOptions; open: Open; log: (text: string) => void },
): Guest {
  const address = loopbackAddress(options.cluster ?? 'lab', spec.vmid)
  let booted: Booted | undefined
  let proxies: Promise<ProxyServer[]> = Promise.resolve([])
  log(`power on: ${spec.name}, ${spec.memoryMiB} MiB, card ${spec.mac} on ${spec.bridge}`)

  const callOff = options.clock.after(options.bootMs ?? 0, () => {
    const hasMirror = options.hasMirror?.() ?? true
    booted = boot(machine, {
      discs: spec.cdroms,
      mac: spec.mac,
      hasAgentPort: spec.agentEnabled,
      hasMirror,
      log,
    })
    log(`${booted.hostname} login: `)
    proxies = openAll(booted, { address, open, log })
  })

  return {
    interfaces() {
      if (booted?.running.get('qemu-guest-agent') !== 'agent') return undefined
      return listInterfaces({
        card: booted.card,
        mac: spec.mac,
        address,
        hasDocker: options.hasDocker ?? false,
      })
    },
    async close() {
      callOff()
      booted = undefined
      for (const proxy of await proxies) await proxy.close()
    },
  }
}

/** Opens what can be reached from outside. A port that is taken is the guest's bad luck, and stands on its console. */
async function openAll(
  { running, card }: Booted,
  { address, open, log }: { address: string; open: Open; log: (text: string) => void },
): Promise<ProxyServer[]> {
  const opened: ProxyServer[] = []
  for (const policy of running.values()) {
    if (policy === 'agent') continue
    const refusal = card.isUp ? unreachable(policy, address) : 'the card is down'
    if (refusal) {
      log(`${policy.program}: cannot be reached: ${refusal}`)
      continue
    }
    try {
      opened.push(await open(policy, address))
      log(`${policy.program}: listening on ${address}:${policy.port}`)
    } catch (cause) {
      if (!isBindFailure(cause)) throw cause
      log(`${policy.program}: not started: ${cause.message}`)
    }
  }
  return opened
}

const everywhere = ['0.0.0.0', '::']

function unreachable({ listens }: ProxyPolicy, address: string): string | undefined {
  const foreign = listens.find(
    (listen) => ![...everywhere, address, '::1'].includes(listen) && !listen.startsWith('127.'),
  )
  if (foreign) return `could not create listening sockets: this machine has no address ${foreign}`
  const isOpen =
    listens.length === 0 || listens.some((listen) => everywhere.includes(listen) || listen === address)
  return isOpen ? undefined : `it listens on ${listens.join(', ')} only`
}

function isBindFailure(cause: unknown): cause is NodeJS.ErrnoException {
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : ''
  return ['EADDRINUSE', 'EADDRNOTAVAIL', 'EACCES'].includes(code)
}
