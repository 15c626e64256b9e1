import { SSMClient } from '@aws-sdk/client-ssm'
import { momentOf } from '../lib/attempt.ts'
import type { Cluster, Config } from '../lib/config.ts'
import { connection } from '../lib/connection.ts'
import type { View } from '../lib/foresight.ts'
import { HOLD_TAG } from '../lib/names.ts'
import {
  createProxmox,
  type Look,
  type Provider,
  type RunningTask,
  type VmConfig,
  type VmStatus,
} from '../lib/proxmox/index.ts'
import type { Row } from '../lib/record.ts'
import { createSecrets } from '../lib/secrets.ts'
import { judge, see } from '../lib/sighting.ts'

/** What there is of a proxy on its cluster, as it is now. A part that could not be seen is a sentence in `unseen`. */
export type CloseLook = {
  found?: Look
  status?: VmStatus
  running: RunningTask[]
  /** Nodes on which the seed lies, and those looked at. */
  seed?: { on: string[]; looked: string[] }
  view: View
  unseen: string[]
}

const PATIENCE_MS = 30_000

/** Looks at a row's VM, tasks and seed with the stage's own configuration and token. Changes nothing: it could not. */
export async function lookClosely(row: Row, config: Config): Promise<CloseLook> {
  // Of what is gone nothing is left to be looked at, be its cluster configured or not.
  if (row.phase === 'Deleted') return { running: [], unseen: [], view: {} }
  if (!row.place && !row.spec) return nothingSeen('it never was on any cluster: no request of it ever came')
  const cluster = clusterOf(row, config)
  if (!cluster) return nothingSeen('its cluster is not in the configuration')
  const ssm = () => new SSMClient({})
  const secrets = createSecrets({ ssm, parameters: config.parameters })
  const proxmox = createProxmox(connection(cluster, secrets))
  try {
    // A client whose time for changes is over from the start.
    const vms = proxmox.with({ signal: AbortSignal.timeout(PATIENCE_MS), mutateUntilMs: 0 })
    return await closely(row, vms, cluster, config.deployment, Date.now())
  } finally {
    await proxmox.close()
  }
}

/** The same with a provider at hand. */
export async function closely(
  row: Row,
  vms: Provider,
  cluster: Cluster,
  deployment: string,
  now: number,
): Promise<CloseLook> {
  const unseen: string[] = []
  const tryTo = async <T>(what: string, read: () => Promise<T>): Promise<T | undefined> => {
    try {
      return await read()
    } catch (error) {
      unseen.push(`${what}: ${error instanceof Error ? error.message : String(error)}`)
      return undefined
    }
  }
  const { place } = row
  const moment = { ...row, ...momentOf(row, now) }
  // A mark that was edited away is written again by the life cycle, not by one who looks.
  const eyes = { look: vms.look, runningTasks: vms.runningTasks, configure: async () => undefined }
  const isPlaced = place !== undefined && place.node !== ''
  const found = isPlaced ? await tryTo('the VM', () => vms.look(place)) : undefined
  const sight = await tryTo('whose VM it is', async () => {
    if (found && place) return judge(found, moment, place, eyes, deployment)
    return isPlaced ? undefined : see<VmConfig>({ ...moment, place: undefined }, eyes, deployment)
  })
  const vm = found?.kind === 'vm' && place ? { node: found.node, vmid: place.vmid } : undefined
  const status = vm && (await tryTo('the state of the VM', () => vms.status(vm)))
  const { upid } = row.task ?? {}
  const task = upid === undefined ? undefined : await tryTo('its task', () => vms.task(upid))
  // What comes after this decides nothing.
  const blind = unseen[0]
  const node = vm?.node ?? place?.node
  const tasks = node ? ((await tryTo(`tasks on ${node}`, () => vms.runningTasks({ node }))) ?? []) : []
  const seed = await seedOf(row, vms, cluster, tryTo)
  return {
    running: tasks.filter(({ id }) => id === String(place?.vmid) || id === String(place?.template)),
    unseen,
    view: {
      ...(sight && {
        sight: sight.kind === 'ours' ? { ...sight, ...keepers(sight.config) } : sight,
      }),
      ...(status && { status }),
      ...(task && { task }),
      ...(blind === undefined ? {} : { blind }),
    },
    ...(found && { found }),
    ...(status && { status }),
    ...(seed && { seed }),
  }
}

/** What keeps a VM from being deleted. */
const keepers = ({ protection, tags }: VmConfig) => ({ protection, held: tags.has(HOLD_TAG) })

async function seedOf(
  { seed, seededOn = [], place }: Row,
  vms: Provider,
  cluster: Cluster,
  tryTo: <T>(what: string, read: () => Promise<T>) => Promise<T | undefined>,
): Promise<CloseLook['seed']> {
  if (seed === undefined) return undefined
  const nodes = [...new Set([...seededOn, ...(place?.node ? [place.node] : [])])]
  const asked = cluster.isoStorageShared ? nodes.slice(0, 1) : nodes
  const storage = seed.split(':')[0] ?? cluster.isoStorage
  const on: string[] = []
  const looked: string[] = []
  for (const node of asked) {
    const isos = await tryTo(`ISO images on ${node}`, () => vms.isos({ node, storage }))
    if (isos) looked.push(node)
    if (isos?.some(({ volid }) => volid === seed)) on.push(node)
  }
  return { on, looked }
}

export const nothingSeen = (why: string): CloseLook => ({ running: [], unseen: [why], view: { blind: why } })

const clusterOf = ({ place, spec }: Row, { clusters, zones }: Config) =>
  clusters[place?.cluster ?? zones[spec?.zone ?? '']?.cluster ?? '']
