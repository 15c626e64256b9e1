import { DaemonRefusal } from './daemon-refusal.ts'
import type { ProxyPolicy } from './policy.ts'
import { parseSquidConf, squidConf, squidPackaged } from './squid.ts'
import { parseTinyproxyConf, tinyproxyConf, tinyproxyPackaged } from './tinyproxy.ts'

type GuestFile = { text: string; mode: number }

/** The inside of a guest as far as it matters: its files, what is installed, and what runs. Survives reboots. */
export type Machine = {
  files: Map<string, GuestFile>
  packages: Set<string>
  enabled: Set<string>
  /** The instance-id it was last set up for. */
  instanceId?: string
}

/** What runs in a booted machine, with the configuration it was started with. */
export type Running = Map<Unit, ProxyPolicy | 'agent'>

export type Unit = 'tinyproxy' | 'squid' | 'qemu-guest-agent'

type Program = {
  binary: string
  packaged?: [path: string, text: string]
  /** Debian starts it when it is installed, and at each boot. */
  startsItself: boolean
}

/**
 * The agent has an empty [Install] section: installing it does not start it, udev does, at the next boot. Source: Debian's
 * qemu-guest-agent 7.2, its unit and udev rule.
 */
const programs: Record<Unit, Program> = {
  tinyproxy: { binary: 'tinyproxy', packaged: [tinyproxyConf, tinyproxyPackaged], startsItself: true },
  squid: { binary: 'squid', packaged: [squidConf, squidPackaged], startsItself: true },
  'qemu-guest-agent': { binary: 'qemu-ga', startsItself: false },
}

export const isUnit = (name: string): name is Unit => Object.hasOwn(programs, name)

/** A machine as its template left it: packages with the configuration they come with, none of them running yet. */
export function createMachine(preinstalled: string[] = []): Machine {
  const machine: Machine = { files: new Map(), packages: new Set(), enabled: new Set() }
  for (const name of preinstalled) unpack(machine, name)
  return machine
}

/** dpkg's part: a configuration that is already there stays. */
function unpack(machine: Machine, name: string): void {
  machine.packages.add(name)
  if (!isUnit(name)) return
  const { packaged, startsItself } = programs[name]
  if (packaged && !machine.files.has(packaged[0]))
    machine.files.set(packaged[0], { text: packaged[1], mode: 0o644 })
  if (startsItself) machine.enabled.add(name)
}

export type System = ReturnType<typeof bootSystem>

/** systemd and dpkg of one boot of a machine. `hasAgentPort`: the VM has the device the agent speaks through. */
export function bootSystem(
  machine: Machine,
  options: { hasAgentPort: boolean; hasMirror?: boolean; log: (line: string) => void },
) {
  const { log } = options
  const running: Running = new Map()

  function start(unit: Unit): boolean {
    if (running.has(unit)) return true
    try {
      const config = unit === 'qemu-guest-agent' ? agent() : load(unit)
      const clash =
        config !== 'agent' &&
        [...running.values()].find((other) => other !== 'agent' && other.port === config.port)
      if (clash) throw new DaemonRefusal(`bind: Address already in use (port ${config.port})`)
      running.set(unit, config)
      log(`systemd: Started ${unit}.service`)
      return true
    } catch (cause) {
      if (!(cause instanceof DaemonRefusal)) throw cause
      for (const line of cause.message.split('\n')) log(`${unit}: ${line}`)
      log(`systemd: Failed to start ${unit}.service`)
      return false
    }
  }

  function agent(): 'agent' {
    if (options.hasAgentPort) return 'agent'
    throw new DaemonRefusal('Dependency failed: there is no /dev/virtio-ports/org.qemu.guest_agent.0')
  }

  function load(unit: 'tinyproxy' | 'squid'): ProxyPolicy {
    const path = programs[unit].packaged?.[0] ?? ''
    const file = machine.files.get(path)
    if (!file) throw new DaemonRefusal(`cannot open ${path}: No such file or directory`)
    return unit === 'squid'
      ? parseSquidConf(file.text)
      : parseTinyproxyConf(file.text, (name) => machine.files.has(name))
  }

  return {
    running,
    start,
    hasMirror: options.hasMirror ?? true,
    stop: (unit: Unit) => void running.delete(unit),
    restart(unit: Unit): boolean {
      running.delete(unit)
      return start(unit)
    },
    isInstalled: (unit: Unit) => machine.packages.has(unit),
    binaryExists: (name: string) =>
      Object.entries(programs).some(([unit, { binary }]) => binary === name && machine.packages.has(unit)),

    install(name: string): void {
      if (machine.packages.has(name)) return
      unpack(machine, name)
      log(`apt: installed ${name}`)
      if (!isUnit(name)) return
      if (programs[name].startsItself) start(name)
      else log(`systemd: ${name}.service is a disabled or a static unit, not starting it.`)
    },

    /** What starts by itself when a machine comes up that was set up before. */
    startEnabled(): void {
      for (const name of machine.packages) {
        if (!isUnit(name)) continue
        const isWoken = name === 'qemu-guest-agent' && options.hasAgentPort
        if (isWoken || machine.enabled.has(name)) start(name)
      }
    },
  }
}
