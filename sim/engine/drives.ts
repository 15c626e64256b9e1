import type { Conf } from './state.ts'

/** A drive option taken apart: the volume and the rest of its keys. */
export type Drive = { slot: string; file: string; options: Record<string, string> }

/** Slots in the order PVE falls back on when no boot order is given. Source: qemu-server Drive.pm valid_drive_names. */
const driveSlots: string[] = [
  ...numbered('ide', 4),
  ...numbered('scsi', 31),
  ...numbered('virtio', 16),
  ...numbered('sata', 6),
  'efidisk0',
  'tpmstate0',
]

function numbered(stem: string, count: number): string[] {
  return Array.from({ length: count }, (_, index) => `${stem}${index}`)
}

const slotSet = new Set(driveSlots)
export const isDriveSlot = (key: string): boolean => slotSet.has(key)

export function parseDrive(slot: string, text: string | number): Drive {
  const options: Record<string, string> = {}
  let file = ''
  for (const part of String(text).split(',')) {
    const at = part.indexOf('=')
    const key = at < 0 ? 'file' : part.slice(0, at)
    const value = at < 0 ? part : part.slice(at + 1)
    if (key === 'file' || key === 'volume') file = value
    else options[key] = value
  }
  return { slot, file, options }
}

/** The volume first, then the other keys in order of the alphabet. */
export function printDrive(drive: Drive): string {
  const rest = Object.entries(drive.options).sort(([a], [b]) => (a < b ? -1 : 1))
  return [drive.file, ...rest.map(([key, value]) => `${key}=${value}`)].join(',')
}

export const isCdrom = (drive: Drive): boolean => drive.options.media === 'cdrom'

/** A drive that PVE itself fills with cloud-init data. Source: qemu-server Drive.pm drive_is_cloudinit. */
export const isCloudInit = (drive: Drive): boolean =>
  /[:/](?:vm-\d+-)?cloudinit(?:\.[a-z0-9]+)?$/.test(drive.file)

export const hasVolume = (drive: Drive): boolean => drive.file.includes(':') && !drive.file.startsWith('/')

export function drivesOf(conf: Conf): Drive[] {
  return driveSlots.flatMap((slot) => {
    const text = conf[slot]
    return text === undefined ? [] : [parseDrive(slot, text)]
  })
}

/** The disk a VM boots from: the first disk of its boot order, else of PVE's own order. */
export function bootDisk(conf: Conf): Drive | undefined {
  const disks = drivesOf(conf).filter((drive) => !isCdrom(drive) && !/^(?:efidisk|tpmstate)/.test(drive.slot))
  for (const slot of bootOrder(conf) ?? []) {
    const disk = disks.find((candidate) => candidate.slot === slot)
    if (disk) return disk
  }
  return disks[0]
}

/** The devices of `boot: order=a;b`, or undefined when the option is missing or of the old kind. */
export function bootOrder(conf: Conf): string[] | undefined {
  const text = /^order=(.*)$/.exec(String(conf.boot ?? ''))?.[1]
  return text?.split(';').filter((device) => device !== '')
}

/** `2G`, `1120M`, `2200000000`: the largest unit that divides evenly. Source: pve-common JSONSchema.pm format_size. */
export function formatSize(bytes: number): string {
  const units = ['', 'K', 'M', 'G', 'T']
  let unit = 0
  let size = bytes
  while (unit < units.length - 1 && size > 0 && size % 1024 === 0) {
    size /= 1024
    unit += 1
  }
  return `${size}${units[unit]}`
}

export function parseSize(text: string): number {
  const [, digits = '0', unit = ''] = /^(\d+(?:\.\d+)?)([KMGT]?)$/.exec(text) ?? []
  return Math.floor(Number(digits) * 1024 ** ['', 'K', 'M', 'G', 'T'].indexOf(unit))
}
