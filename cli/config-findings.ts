import { X509Certificate } from 'node:crypto'
import { accessSync, constants, existsSync, readFileSync, statSync } from 'node:fs'
import type { Cluster, Config } from '../lib/config.ts'

/** What is wrong with a configuration that its schema accepts; told by the file itself and the files that it names. */
export type ConfigFinding = { level: 'warning' | 'failure'; path: string; text: string }

export function configFindings(config: Config): ConfigFinding[] {
  const { parameters, clusters } = config
  return [
    ...('file' in parameters ? secretFile('parameters.file', parameters.file, 'warning') : []),
    ...Object.entries(clusters).flatMap(([name, cluster]) => clusterFindings(`clusters.${name}`, cluster)),
    ...rangeFindings(config),
  ]
}

function clusterFindings(path: string, { caFile, token, images, vmids }: Cluster): ConfigFinding[] {
  const templates = Object.entries(images).flatMap(([image, byNode]) =>
    Object.entries(byNode).flatMap(([node, vmid]): ConfigFinding[] =>
      vmid < vmids.from || vmid > vmids.to
        ? []
        : [
            {
              level: 'warning',
              path: `${path}.images.${image}.${node}`,
              text: `template ${vmid} lies in the range that VMIDs are given out from`,
            },
          ],
    ),
  )
  const secrets = [token]
    .flat()
    // The second is there for a rotation only.
    .filter((source, index) => !('file' in source) || index === 0 || existsSync(source.file))
    .flatMap((source) => ('file' in source ? secretFile(`${path}.token`, source.file) : []))
  return [...(caFile === undefined ? [] : authorityFile(`${path}.caFile`, caFile)), ...secrets, ...templates]
}

function authorityFile(path: string, file: string): ConfigFinding[] {
  try {
    const { ca, validTo } = new X509Certificate(readFileSync(file))
    if (!ca) return [{ level: 'failure', path, text: `${file} is a certificate, and not an authority’s` }]
    return Date.parse(validTo) < Date.now()
      ? [{ level: 'failure', path, text: `${file} ended ${validTo}` }]
      : []
  } catch (error) {
    return [{ level: 'failure', path, text: `${file} is not a readable PEM certificate: ${wordsOf(error)}` }]
  }
}

/** Never read here: that it can be, and by nobody else, is what counts. Passwords are not asked for by every proxy. */
function secretFile(
  path: string,
  file: string,
  missing: ConfigFinding['level'] = 'failure',
): ConfigFinding[] {
  try {
    accessSync(file, constants.R_OK)
    const mode = statSync(file).mode & 0o077
    if (mode === 0) return []
    return [{ level: 'warning', path, text: `${file} can be read by others: chmod 600 ${file}` }]
  } catch (error) {
    return [{ level: missing, path, text: `${file} cannot be read: ${wordsOf(error)}` }]
  }
}

/** Zones of one cluster that give out the same numbers are in each other's way, though never at one VM. */
function rangeFindings({ zones, clusters }: Config): ConfigFinding[] {
  const own = Object.entries(zones).flatMap(([name, { cluster, vmids }]) =>
    vmids ? [{ name, cluster, ...vmids }] : [],
  )
  return own.flatMap((zone, index) => {
    const outside = clusters[zone.cluster]?.vmids
    const twin = own
      .slice(index + 1)
      .find((other) => other.cluster === zone.cluster && other.from <= zone.to && zone.from <= other.to)
    const path = `zones.${zone.name}.vmids`
    return [
      ...(twin ? [{ level: 'warning' as const, path, text: `shares numbers with zone ${twin.name}` }] : []),
      ...(outside && (zone.from < outside.from || zone.to > outside.to)
        ? [{ level: 'warning' as const, path, text: `reaches beyond clusters.${zone.cluster}.vmids` }]
        : []),
    ]
  })
}

const wordsOf = (error: unknown) => (error instanceof Error ? error.message : String(error))
