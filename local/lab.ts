import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Document, parseDocument } from 'yaml'
import { HOST_SEEN_BY_GUESTS } from './host-seen-by-guests.ts'
import type { Ports } from './ports.ts'
import { type ClusterOptions, openCluster } from './simulated-cluster.ts'
import { writeAtomically } from './write-atomically.ts'

export type LabOptions = Pick<ClusterOptions, 'version' | 'nodes' | 'hostReset' | 'guests' | 'onNotice'>

/** The simulated cluster of `egress up`, and a configuration that fits it. */
export type Lab = {
  /** config/local.yml with everything filled in that only this run knows. */
  config: string
  admin: string
  endpoints: { node: string; url: string }[]
  close(): Promise<void>
}

const template = new URL('../config/local.yml', import.meta.url)

/** Opens the simulated cluster in the data folder and writes the configuration for it. */
export async function startLab(
  options: LabOptions & Pick<ClusterOptions, 'onConsole'> & { folder: string; ports: Ports; pageUrl: string },
): Promise<Lab> {
  const { folder, pageUrl } = options
  const cluster = await openCluster({ ...options, folder: join(folder, 'sim') })
  const { endpoints, admin, tokenFiles, close } = cluster

  const nodes = endpoints.map(({ node }) => node)
  const images = Object.fromEntries(nodes.map((node, index) => [node, FIRST_TEMPLATE + index]))
  const document = parseDocument(readFileSync(template, 'utf8'))
  document.commentBefore = ' Written by `egress up` at each start, from config/local.yml: change that one.'
  document.setIn(['clusters', 'lab', 'endpoints'], endpoints)
  document.setIn(
    ['clusters', 'lab', 'token'],
    tokenFiles.map((file) => ({ file })),
  )
  document.setIn(['clusters', 'lab', 'images'], { 'debian-12': images })
  document.setIn(['zones', 'lab-1', 'nodes'], nodes)
  document.setIn(['verify', 'probeUrl'], pageUrl)
  if (options.guests === 'qemu') forRealGuests(document)
  const config = join(folder, 'config.yml')
  writeAtomically(config, String(document))
  return { config, admin, endpoints: endpoints.map(({ node, url }) => ({ node, url })), close }
}

/** What real guests need otherwise: they see this host, and all who come by a forwarded port, at one address, and take their time. */
function forRealGuests(document: Document): void {
  const seen = [`${HOST_SEEN_BY_GUESTS}/32`]
  document.setIn(['defaults', 'proxy', 'allow'], seen)
  document.setIn(['verify', 'probeFrom'], seen)
  document.setIn(['timings', 'bootSeconds'], 20)
}

/** The simulated world has a template a node, numbered on from here. */
const FIRST_TEMPLATE = 9000
