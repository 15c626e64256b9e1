import * as z from 'zod'
import { macOf, tagsOf, vmName } from './names.ts'
import type { Row } from './record.ts'

/** Our JSON in a VM's description: proves that the VM is ours. */
export const Mark = z.object({
  deployment: z.string(),
  uid: z.string(),
  generation: z.int(),
  vmid: z.int(),
  specHash: z.string(),
  seed: z.string(),
})
export type Mark = z.infer<typeof Mark>

/** What a configuration must tell for ownership to be judged; lib/proxmox's VmConfig is one. */
export type Bearing = {
  name?: string
  description?: string
  lock?: string
  template: boolean
  cdroms: readonly { slot: string; volume?: string }[]
}

/** The drive that our seed is put into. */
export const SEED_SLOT = 'ide2'

/** A description: a line for people, then the mark. */
export function describe(mark: Mark, name: string): string {
  const person = `Forward proxy ${name}, made by egress-proxies (deployment ${mark.deployment}). Do not edit the next line.`
  return `${person}\n\n${markLine(mark)}`
}

export const markLine = (mark: Mark) => JSON.stringify({ egress: mark })

/** The mark in a description, if any line of it is one. People may write around it. */
export function readMark(description: string | undefined): Mark | undefined {
  for (const line of (description ?? '').split('\n')) {
    if (!line.includes('"egress"')) continue
    const parsed = Envelope.safeParse(line)
    if (parsed.success) return parsed.data.egress
  }
  return undefined
}

const Envelope = z
  .string()
  .transform((line, context) => {
    try {
      return JSON.parse(line.trim())
    } catch {
      context.addIssue('not JSON')
      return z.NEVER
    }
  })
  .pipe(z.object({ egress: Mark }))

/** The uid a VM of this row bears in its mark. */
export const markUid = (row: Pick<Row, 'uid' | 'orphanOf'>) => row.orphanOf ?? row.uid

/** The mark that this row's VM is to bear. */
export function markOf(row: Partial<Row> & Pick<Row, 'uid'>, deployment: string): Mark | undefined {
  const { place, seed, specHash, generation } = row
  if (!place || seed === undefined || specHash === undefined || generation === undefined) return undefined
  return { deployment, uid: markUid(row), generation, vmid: place.vmid, specHash, seed }
}

/** What a person can tell the row's VM by, in words; the mark only where the row knows enough to write it. */
export function evidenceOf(
  row: Partial<Row> & Pick<Row, 'uid'>,
  deployment: string,
): { name: string; mac: string; tags: string; seed?: string; mark?: string } {
  const { name = '…', seed } = row
  const uid = markUid(row)
  const mark = markOf(row, deployment)
  return {
    name: vmName({ uid, name }),
    mac: row.mac ?? macOf(deployment, uid),
    tags: [...tagsOf(deployment)].join(';'),
    ...(seed === undefined ? {} : { seed }),
    ...(mark && { mark: markLine(mark) }),
  }
}

export type Ownership =
  | { kind: 'ours'; mark: Mark }
  /** A person edited the mark away; name and seed are still ours, so it may be written again. */
  | { kind: 'unmarked' }
  /** The name is ours, or the seed, and nothing else proves it: a person must say. */
  | { kind: 'doubtful' }
  /** A placeholder without a name: a clone is being made here, ours or another's. */
  | { kind: 'nameless' }
  | { kind: 'foreign' }

/** Whose VM stands at the row's VMID. A hand-made copy of ours names another VMID in its mark, and so is foreign. */
export function ownership(config: Bearing, row: Row, deployment: string): Ownership {
  const mark = readMark(config.description)
  if (mark) {
    const ours = mark.deployment === deployment && mark.uid === markUid(row) && mark.vmid === row.place?.vmid
    return ours && !config.template ? { kind: 'ours', mark } : { kind: 'foreign' }
  }
  if (config.lock !== undefined && config.name === undefined) return { kind: 'nameless' }
  const nameIsOurs = row.name !== undefined && config.name === vmName({ uid: row.uid, name: row.name })
  const seedIsOurs = config.cdroms.some(
    ({ slot, volume }) => slot === SEED_SLOT && volume !== undefined && volume === row.seed,
  )
  if (nameIsOurs && seedIsOurs) return { kind: 'unmarked' }
  return nameIsOurs || seedIsOurs ? { kind: 'doubtful' } : { kind: 'foreign' }
}
