import type { Config } from './config.ts'
import { evidenceOf } from './mark.ts'
import type { Row } from './record.ts'
import { type Clues, placeholders, symptoms, type Trouble } from './symptoms.ts'

/** The row that failed, or of a message without a row nothing but its uid, if that. */
export type Subject = Partial<Row>

/** What a person can type about a failure, with the names of the row's own place filled in. */
export const hintFor = (trouble: Trouble, subject: Subject, config: Config): string =>
  symptoms[trouble.code].hint(cluesOf(trouble, subject, config))

function cluesOf(trouble: Trouble, subject: Subject, config: Config): Clues {
  const { uid, place, spec, task, ended } = subject
  const zone = spec?.zone
  const name = place?.cluster ?? config.zones[zone ?? '']?.cluster
  const cluster = config.clusters[name ?? '']
  const { parameters } = config
  const endpoints = cluster?.endpoints ?? []
  // What went wrong on the way to a node names the endpoint, not the node.
  const named = endpoints.find(({ url }) => trouble.message.includes(new URL(url).host))
  const node = trouble.node ?? place?.node ?? named?.node
  const known: { [K in keyof Clues]?: Clues[K] | undefined } = {
    uid,
    // A clone's error is about the template, which is not what a hint is to change.
    vmid: place?.vmid ?? trouble.vmid,
    node,
    upid: task?.upid ?? ended?.upid,
    template: place?.template,
    templates: cluster && Object.values(cluster.images).flatMap((byNode) => Object.values(byNode)),
    cluster: name,
    zone,
    image: spec?.image,
    // An orphan's is empty until it was looked up.
    storage: place?.storage || cluster?.storage,
    isoStorage: cluster?.isoStorage,
    pool: cluster?.pool,
    bridge: cluster?.bridge,
    parameter: spec?.proxy.auth?.passwordParameter,
    parameterFile: 'file' in parameters ? parameters.file : undefined,
    tokenSource: cluster && sourcesText([cluster.token].flat()),
    endpoint: (named ?? endpoints.find((one) => one.node === node) ?? endpoints[0])?.url,
    port: spec?.proxy.port,
    volume: trouble.volume,
    ...(uid !== undefined && evidenceOf({ ...subject, uid }, config.deployment)),
    // Proxmox itself refuses for protection alone.
    release: '--protection 0',
    trouble,
  }
  const told = Object.entries(known).filter(([, value]) => value !== undefined && value !== '')
  // The placeholders have every field there must be, and what is known stands over them by the same names.
  return { ...placeholders, ...Object.fromEntries(told) } as Clues
}

const sourcesText = (sources: ({ ssm: string } | { file: string })[]) =>
  sources.map((one) => ('file' in one ? one.file : one.ssm)).join(' or ')
