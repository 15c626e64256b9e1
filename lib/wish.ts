import type { Cluster, Config, Zone } from './config.ts'
import type { FullSpec, Spec } from './spec.ts'
import { type Complaint, shown } from './wanted.ts'

/** What the schema cannot know: whether this installation has the zone, the image and such a password. Empty when the wish can be met. */
export function checkRequest({ spec }: { spec: Spec }, config: Config): Complaint[] {
  return [...checkPlace(spec, config), ...checkPassword(spec, config)]
}

/**
 * Where a request may name passwords in Systems Manager. Elsewhere there are other secrets that `create` may read, the
 * cluster's token among them, and whoever may name one finds it in a VM that is the publisher's own.
 */
export const passwordPrefix = (deployment: string) => `/egress/${deployment}/passwords/`

function checkPassword({ proxy }: Spec, { parameters, deployment }: Config): Complaint[] {
  const name = proxy?.auth?.passwordParameter
  const prefix = passwordPrefix(deployment)
  if (name === undefined || 'file' in parameters || name.startsWith(prefix)) return []
  const path = 'spec.proxy.auth.passwordParameter'
  return [{ path, got: shown(name), wanted: `a parameter below ${prefix}` }]
}

function checkPlace({ zone: zoneName, image }: Spec, config: Config): Complaint[] {
  const zone = config.zones[zoneName]
  if (!zone) return [unknown('spec.zone', zoneName, Object.keys(config.zones))]
  const images = imagesOf(zone, config)
  return images.includes(image) ? [] : [unknown('spec.image', image, images)]
}

/** The spec with every default of the configuration filled in. */
export function fullSpec(spec: Spec, { defaults }: Config): FullSpec {
  const ttlSeconds = spec.ttlSeconds ?? defaults.ttlSeconds
  const auth = spec.proxy?.auth ?? defaults.proxy.auth
  const labels = { ...defaults.labels, ...spec.labels }
  return {
    zone: spec.zone,
    image: spec.image,
    size: {
      cores: spec.size?.cores ?? defaults.size.cores,
      memoryMiB: spec.size?.memoryMiB ?? defaults.size.memoryMiB,
      diskGiB: spec.size?.diskGiB ?? defaults.size.diskGiB,
    },
    proxy: {
      protocol: spec.proxy?.protocol ?? defaults.proxy.protocol,
      port: spec.proxy?.port ?? defaults.proxy.port,
      allow: spec.proxy?.allow ?? defaults.proxy.allow,
      ...(auth === undefined ? {} : { auth }),
    },
    hasUserData: spec.userData !== undefined,
    ...(ttlSeconds === undefined ? {} : { ttlSeconds }),
    ...(Object.keys(labels).length === 0 ? {} : { labels }),
  }
}

/** The zone's cluster, which the configuration's own check has seen to be there. */
export function clusterOf(zone: Zone, config: Config): Cluster {
  const cluster = config.clusters[zone.cluster]
  if (!cluster) throw new Error(`zone names the unknown cluster ${zone.cluster}`)
  return cluster
}

/** The nodes of the zone that have a template of the image, with its VMID. */
export function templatesOf(zone: Zone, image: string, config: Config): { node: string; vmid: number }[] {
  const byNode = clusterOf(zone, config).images[image] ?? {}
  return zone.nodes.flatMap((node) => (byNode[node] === undefined ? [] : [{ node, vmid: byNode[node] }]))
}

function imagesOf(zone: Zone, config: Config): string[] {
  const names = Object.keys(clusterOf(zone, config).images)
  return names.filter((image) => templatesOf(zone, image, config).length > 0)
}

function unknown(path: string, got: string, known: string[]): Complaint {
  return { path, got: shown(got), wanted: `one of: ${known.join(', ') || '(none is configured)'}` }
}
