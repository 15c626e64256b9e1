import { SEED_SLOT } from '../../lib/mark.ts'
import { tagsOf } from '../../lib/names.ts'
import type { VmConfig } from '../../lib/proxmox/index.ts'
import type { RowOf } from '../../lib/record.ts'

type Wanted = { deployment: string; bridge: string; vlan?: number | undefined }
type Options = Record<string, string | number | boolean>

/** What a clone of this template could not be made into a proxy for; undefined when nothing stands in the way. */
export function templateFault({ bootDisk, disks }: VmConfig): string | undefined {
  if (!bootDisk) return 'has no disk to boot from'
  return disks.some(({ slot }) => slot === SEED_SLOT)
    ? `has a disk on ${SEED_SLOT}, where the seed goes`
    : undefined
}

/** The one change that makes the VM what its row asks for; undefined when it is so already. Keys that are not ours are left alone. */
export function changes(
  config: VmConfig,
  row: Pick<RowOf['configure'], 'spec' | 'mac' | 'seed'>,
  wanted: Wanted,
): { set: Options; delete: string[] } | undefined {
  const { cores, memoryMiB } = row.spec.size
  const set: Options = {}
  if (config.cores !== cores) set.cores = cores
  if (Number(config.raw.sockets ?? 1) !== 1) set.sockets = 1
  if (config.memoryMiB !== memoryMiB) set.memory = memoryMiB
  // Proxmox refuses a balloon above the memory, and a template may bring one.
  if (Number(config.raw.balloon ?? 0) > memoryMiB) set.balloon = 0
  if (!sameNic(config, row.mac, wanted)) set.net0 = nic(config, row.mac, wanted)
  if (!config.cdroms.some(({ slot, volume }) => slot === SEED_SLOT && volume === row.seed)) {
    set[SEED_SLOT] = `${row.seed},media=cdrom`
  }
  // Sent with the drive, or else Proxmox appends the drive to the order.
  const boot = `order=${config.bootDisk?.slot}`
  if (config.raw.boot !== boot || set[SEED_SLOT] !== undefined) set.boot = boot
  const tags = tagsOf(wanted.deployment)
  if (tags.symmetricDifference(config.tags).size > 0) set.tags = [...tags].join(';')
  if (!config.agent) set.agent = 'enabled=1'
  if (!config.onboot) set.onboot = true
  const remove = config.cdroms
    .filter(({ slot, cloudInit }) => cloudInit && slot !== SEED_SLOT)
    .map(({ slot }) => slot)
  return Object.keys(set).length + remove.length === 0 ? undefined : { set, delete: remove }
}

function sameNic({ net0 }: VmConfig, mac: string, { bridge, vlan }: Wanted): boolean {
  return (
    net0?.mac.toLowerCase() === mac &&
    net0.bridge === bridge &&
    net0.options.tag === (vlan === undefined ? undefined : String(vlan))
  )
}

/** The whole NIC, MAC and all: written without its MAC, Proxmox would give it a new one each time. */
function nic({ net0 }: VmConfig, mac: string, { bridge, vlan }: Wanted): string {
  const { tag: _, ...kept } = net0?.options ?? {}
  const options = Object.entries({ bridge, ...(vlan === undefined ? {} : { tag: String(vlan) }), ...kept })
  return [
    `${net0?.model ?? 'virtio'}=${mac.toUpperCase()}`,
    ...options.map(([key, value]) => `${key}=${value}`),
  ].join(',')
}
