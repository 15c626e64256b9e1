import { readMark, SEED_SLOT } from '../../lib/mark.ts'
import type { VmConfig } from '../../lib/proxmox/index.ts'
import { Uid } from '../../lib/spec.ts'
import type { Sight } from './world.ts'

/** Judges a configuration. A mark of another deployment, or one that names another number (a hand-made copy), is foreign. */
export function sightOf(config: VmConfig, vmid: number, deployment: string): Sight {
  const mark = readMark(config.description)
  if (mark) {
    const isOurs =
      mark.deployment === deployment &&
      mark.vmid === vmid &&
      !config.template &&
      Uid.safeParse(mark.uid).success
    return isOurs
      ? { kind: 'ours', mark, ...(config.lock === undefined ? {} : { lock: config.lock }) }
      : { kind: 'foreign' }
  }
  const isTagged = config.tags.has(`egress-${deployment}`)
  const seed = config.cdroms.find(({ slot }) => slot === SEED_SLOT)?.volume
  const bearsSeed = seed !== undefined && readSeed(seed, deployment) !== undefined
  return { kind: (isTagged || bearsSeed) && !config.template ? 'doubtful' : 'foreign' }
}

/** Takes the name of a seed of ours apart; undefined for any other ISO. A deployment's name has no hyphen, so no other's fits. */
export function readSeed(volid: string, deployment: string): { uid: string; generation: number } | undefined {
  const file = volid.split(':iso/')[1] ?? ''
  const prefix = `egress-${deployment}-`
  if (!file.startsWith(prefix)) return undefined
  const [, uid = '', generation] = /^(.+)-g([1-9]\d{0,8})\.iso$/.exec(file.slice(prefix.length)) ?? []
  return Uid.safeParse(uid).success ? { uid, generation: Number(generation) } : undefined
}
