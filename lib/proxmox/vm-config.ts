import type { Cdrom, Disk, Nic, VmConfig } from './vm.ts'

// Defaults of options that a configuration need not name. Source: qemu-server QemuServer.pm.
const defaultCores = 1
const defaultMemoryMiB = 512

/** Reads a configuration as `GET …/config` shows it. */
export function readConfig(raw: Readonly<Record<string, string>> & { digest: string }): VmConfig {
  const drives = driveSlots.flatMap((slot) => {
    const value = raw[slot]
    return value === undefined ? [] : [readDrive(slot, value)]
  })
  const disks = drives.flatMap((drive) => (drive.media === 'disk' ? [drive.disk] : []))
  const cdroms = drives.flatMap((drive) => (drive.media === 'cdrom' ? [drive.cdrom] : []))
  const bootDisk = findBootDisk(raw, disks)
  const net0 = raw.net0 === undefined ? undefined : readNic(raw.net0)
  return {
    digest: raw.digest,
    protection: isOn(raw.protection),
    template: isOn(raw.template),
    onboot: isOn(raw.onboot),
    agent: isOn(readOptions(raw.agent ?? '', 'enabled').enabled),
    tags: new Set(words(raw.tags).map((tag) => tag.toLowerCase())),
    cores: Number(raw.cores ?? defaultCores),
    memoryMiB: readMemory(raw.memory),
    disks,
    cdroms,
    raw,
    ...(raw.name === undefined ? {} : { name: raw.name }),
    ...(raw.description === undefined ? {} : { description: raw.description }),
    ...(raw.lock === undefined ? {} : { lock: raw.lock }),
    ...(raw.boot === undefined ? {} : { boot: raw.boot }),
    ...(net0 === undefined ? {} : { net0 }),
    ...(bootDisk === undefined ? {} : { bootDisk }),
  }
}

// In the order in which Proxmox itself looks for a boot disk. Source: qemu-server Drive.pm.
const driveSlots = [...slots('ide', 4), ...slots('scsi', 31), ...slots('virtio', 16), ...slots('sata', 6)]

function slots(bus: string, count: number): string[] {
  return Array.from({ length: count }, (_, index) => `${bus}${index}`)
}

type Drive = { media: 'disk'; disk: Disk } | { media: 'cdrom'; cdrom: Cdrom }

function readDrive(slot: string, value: string): Drive {
  const { file: volume = '', ...options } = readOptions(value, 'file')
  if (options.media === 'cdrom') {
    // Proxmox knows its own cloud-init drive by the volume's name alone.
    const cloudInit = /[:/](?:vm-\d+-)?cloudinit(?:\.\w+)?$/.test(volume)
    return { media: 'cdrom', cdrom: { slot, cloudInit, ...(volume === 'none' ? {} : { volume }) } }
  }
  const sizeBytes = readSize(options.size)
  return { media: 'disk', disk: { slot, volume, options, ...(sizeBytes === undefined ? {} : { sizeBytes }) } }
}

function findBootDisk(raw: Readonly<Record<string, string>>, disks: readonly Disk[]): Disk | undefined {
  const order = /(?:^|,)order=([^,]*)/.exec(raw.boot ?? '')?.[1]?.split(';') ?? []
  const named = [...order, raw.bootdisk].flatMap((slot) => disks.filter((disk) => disk.slot === slot))
  return named[0] ?? disks[0]
}

/** Takes `virtio=AA:BB:CC:DD:EE:FF,bridge=vmbr0,tag=5` apart, or `model=virtio,macaddr=…`, which means the same. */
function readNic(value: string): Nic | undefined {
  const options = readOptions(value, 'model')
  const short = Object.entries(options).find(([, part]) => macPattern.test(part))
  const { model = short?.[0], macaddr = short?.[1], bridge } = options
  if (model === undefined || macaddr === undefined) return undefined
  for (const name of ['model', 'macaddr', 'bridge', model]) delete options[name]
  return { model, mac: macaddr, options, ...(bridge === undefined ? {} : { bridge }) }
}

const macPattern = /^[0-9a-f]{2}(?::[0-9a-f]{2}){5}$/i

// `value,key=value,…`: the first part may stand without its key.
function readOptions(value: string, firstKey: string): Record<string, string> {
  const parts = value.split(',').map((part, index) => {
    const at = part.indexOf('=')
    return at < 0 && index === 0 ? [firstKey, part] : [part.slice(0, at), part.slice(at + 1)]
  })
  return Object.fromEntries(parts)
}

// Up to PVE 7 a number, later `current=2048` or just `2048`.
function readMemory(value: string | undefined): number {
  const current = /^(?:current=)?(\d+)/.exec(value ?? '')?.[1]
  return current === undefined ? defaultMemoryMiB : Number(current)
}

function isOn(value: string | undefined): boolean {
  return /^(?:1|on|yes|true)$/i.test(value ?? '')
}

function words(value: string | undefined): string[] {
  return (value ?? '').split(/[,;\s]+/).filter((word) => word !== '')
}

const units: Readonly<Record<string, number>> = { K: 1024, M: 1024 ** 2, G: 1024 ** 3, T: 1024 ** 4 }

// `2G`, `3584M`, `372K`. Source: pve-common JSONSchema.pm parse_size.
function readSize(value: string | undefined): number | undefined {
  const match = /^(\d+(?:\.\d+)?)([KMGT]?)$/.exec(value ?? '')
  return match ? Math.round(Number(match[1]) * (units[match[2] ?? ''] ?? 1)) : undefined
}
