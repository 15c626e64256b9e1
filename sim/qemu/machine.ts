import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Agent, openAgent } from './agent.ts'
import { awaitConnection } from './connection.ts'
import type { GuestImage } from './image.ts'
import { type MonitorEvent, openMonitor } from './monitor.ts'

export type MachineOptions = {
  image: Pick<GuestImage, 'kernel' | 'initrd'>
  /** Paths of qcow2 disks: scsi0 and so on, the first one to boot from. */
  disks: string[]
  /** Discs in its IDE drives: the first is ide2, where Proxmox has it. */
  discs: Uint8Array[]
  mac: string
  memoryMiB: number
  cores: number
  /** Cut off from host and internet; what is forwarded to it still gets in. */
  isolated?: boolean
  /** Told each line of the serial console as it comes. */
  onLine?: (line: string) => void
}

/** A machine of QEMU that was switched on. */
export type Machine = {
  pid: number
  agent: Agent
  /** Resolves once the agent has opened its port. */
  agentUp: Promise<void>
  /** QEMU's name for the state: `running`, `paused`, `io-error`, … Source: QEMU, qapi/run-state.json. */
  state(): Promise<string>
  /** Lets in what comes to a port of an address of this host. The guest sees it come from 10.0.2.2. */
  forward(address: string, port: number): Promise<void>
  /** Grows a disk under a running guest. */
  resize(disk: string, bytes: number): Promise<void>
  /** Puts another disc into ide2. */
  insert(disc: Uint8Array): Promise<void>
  console(): string
  /** Asks the guest to shut down: the agent, or the power button without one. */
  shutDown(): Promise<void>
  /** Resolves once QEMU has ended, for whatever reason. */
  ended: Promise<void>
  /** Pulls the plug, and waits for the end. */
  close(): Promise<void>
}

const keptConsole = 256 * 1024

/**
 * Switches a machine on, emulated in software on any processor. It has what docs/proxmox-setup.md gives a template: i440fx, a SCSI
 * disk, an IDE CD-ROM, a virtio card, the agent's port, a serial console. When this process dies, in whatever way, QEMU dies too;
 * to be called from its main thread, whose end the kernel takes for that of the process. @throws {Error} what QEMU said
 */
export async function startMachine(options: MachineOptions): Promise<Machine> {
  const folder = mkdtempSync(join(tmpdir(), 'egress-vm-'))
  const monitorDoor = await awaitConnection(join(folder, 'monitor'))
  const agentDoor = await awaitConnection(join(folder, 'agent'))
  const discs = options.discs.map((bytes, index) => written(folder, `disc-${index}.iso`, bytes))
  const qemu = [
    'qemu-system-x86_64',
    ...argumentsOf(options, discs, { monitor: monitorDoor.path, agent: agentDoor.path }),
  ]
  const child = spawn('setpriv', ['--pdeathsig', 'KILL', '--', ...qemu], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })

  let printed = ''
  let line = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    printed = (printed + text).slice(-keptConsole)
    const lines = (line + text).split('\n')
    line = lines.pop() ?? ''
    for (const one of lines) options.onLine?.(plain(one))
  })
  let complaint = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    complaint = (complaint + text).slice(-4096)
  })
  const ended = new Promise<void>((resolve) => {
    const end = () => {
      monitorDoor.close()
      agentDoor.close()
      rmSync(folder, { recursive: true, force: true })
      resolve()
    }
    child.once('close', end)
    child.once('error', (error) => {
      complaint ||= error.message
      end()
    })
  })

  const failed = ended.then(() =>
    Promise.reject(new Error(`QEMU exited with code ${child.exitCode}: ${complaint.trim()}`)),
  )
  failed.catch(() => {}) // An end later on is no failure of the start.
  const [monitorSocket, agentSocket] = await Promise.race([
    Promise.all([monitorDoor.connected, agentDoor.connected]),
    failed,
  ])
  let agentIsUp = () => {}
  const agentUp = new Promise<void>((resolve) => {
    agentIsUp = resolve
  })
  const monitor = await openMonitor(monitorSocket, ({ event, data }: MonitorEvent) => {
    if (event === 'VSERPORT_CHANGE' && data.id === 'qga' && data.open === true) agentIsUp()
  })
  const agent = openAgent(agentSocket)

  return {
    pid: child.pid ?? 0,
    agent,
    agentUp,
    ended,
    console: () => plain(printed),
    async state() {
      return String(Object(await monitor.ask('query-status')).status)
    },
    async forward(address, port) {
      const line = `hostfwd_add net0 tcp:${address}:${port}-:${port}`
      // The human monitor answers in words, and with none when all is well.
      const words = String(await monitor.ask('human-monitor-command', { 'command-line': line })).trim()
      if (words !== '') throw new Error(`QEMU: ${words}`)
    },
    async resize(disk, bytes) {
      await monitor.ask('block_resize', { 'node-name': `disk-${options.disks.indexOf(disk)}`, size: bytes })
    },
    async insert(disc) {
      const filename = written(folder, `disc-${Date.now()}.iso`, disc)
      await monitor.ask('blockdev-change-medium', { id: 'ide2', filename, format: 'raw', force: true })
    },
    async shutDown() {
      const isAnswered = await agent.ask('guest-ping', {}, 3000)
      // Done as asked, it answers nothing.
      if (isAnswered) void agent.ask('guest-shutdown', { mode: 'powerdown' })
      else await monitor.ask('system_powerdown')
    },
    async close() {
      if (child.exitCode !== null || child.signalCode !== null) return ended
      const timer = setTimeout(() => child.kill('SIGKILL'), 10_000)
      // It may end before it answers.
      monitor.ask('quit').catch(() => child.kill('SIGKILL'))
      await ended
      clearTimeout(timer)
    },
  }
}

function written(folder: string, name: string, bytes: Uint8Array): string {
  const path = join(folder, name)
  writeFileSync(path, bytes)
  return path
}

/** Without the colours and cursor movements of a terminal. */
function plain(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: those are what is taken out
  return text.replace(/\x1b(?:\[[0-9;?]*[A-Za-z]|[()][A-Z0-9]|[=>c])|\r/g, '')
}

/** A comma within a value is written twice. */
const value = (text: string) => text.replaceAll(',', ',,')

function argumentsOf(
  { image, disks, mac, memoryMiB, cores, isolated = false }: MachineOptions,
  discs: string[],
  doors: { monitor: string; agent: string },
): string[] {
  // Where Proxmox puts ide2, ide3, ide0, ide1.
  const drives = discs.map((path, index) => [
    '-device',
    `ide-cd,id=ide${(index + 2) % 4},bus=ide.${index < 2 ? 1 : 0},unit=${index % 2},drive=disc-${index}`,
    '-drive',
    `if=none,id=disc-${index},media=cdrom,readonly=on,format=raw,file=${value(path)}`,
  ])
  return [
    ...['-nodefaults', '-no-user-config', '-display', 'none'],
    ...['-machine', 'pc', '-accel', 'tcg', '-cpu', 'qemu64', '-smp', String(cores), '-m', String(memoryMiB)],
    ...['-kernel', image.kernel, '-initrd', image.initrd],
    ...['-append', 'root=/dev/sda ro console=ttyS0 mitigations=off apparmor=0 audit=0'],
    ...['-device', 'virtio-scsi-pci,id=scsihw0'],
    ...disks.flatMap((path, index) => [
      ...[
        '-blockdev',
        `driver=qcow2,node-name=disk-${index},discard=unmap,cache.no-flush=on,file.driver=file,file.filename=${value(path)}`,
      ],
      ...['-device', `scsi-hd,bus=scsihw0.0,scsi-id=${index},drive=disk-${index}`],
    ]),
    ...drives.flat(),
    ...['-netdev', `user,id=net0,ipv6=off,restrict=${isolated ? 'on' : 'off'}`],
    ...['-device', `virtio-net-pci,netdev=net0,mac=${mac}`],
    ...['-device', 'virtio-rng-pci', '-device', 'virtio-serial'],
    ...['-chardev', `socket,id=agent,path=${value(doors.agent)}`],
    ...['-device', 'virtserialport,id=qga,chardev=agent,name=org.qemu.guest_agent.0'],
    ...['-chardev', `socket,id=monitor,path=${value(doors.monitor)}`, '-mon', 'chardev=monitor,mode=control'],
    ...['-serial', 'stdio'],
  ]
}
