import {
  isMap,
  keepKeys,
  type MergeHow,
  merge,
  readMergeHow,
  replaceKeys,
  type Yaml,
  type YamlMap,
} from './merge.ts'
import type { Seed } from './seed.ts'
import { type Part, readParts } from './user-data.ts'
import { readYaml } from './yaml.ts'

/** What a seed asks of the machine, all documents read and layered. */
export type Instance = {
  id: string
  hostname: string
  /** user-data over vendor-data. */
  config: YamlMap
  boothooks: Part[]
  /** Run before those of the user, in a folder of their own. */
  vendorScripts: Part[]
  userScripts: Part[]
  /** `undefined`: nothing was said, the first card asks DHCP. */
  network?: Yaml
}

/** Reads a seed as cloud-init does. A document that cannot be read is left out, the others count. */
export function readInstance(seed: Seed, log: (line: string) => void): Instance {
  const metaData = readMap(seed.metaData, 'meta-data', log)
  const userParts = readParts(seed.userData, 'user-data', log)
  const userConfig = mergeParts(userParts, 'user-data', log)
  const vendorParts = wantsVendorData(userConfig)
    ? readParts(seed.vendorData ?? new Uint8Array(), 'vendor-data', log)
    : []
  const vendorConfig = mergeParts(vendorParts, 'vendor-data', log)
  const merged = merge(userConfig, vendorConfig, keepKeys)
  const config = isMap(merged) ? merged : {}
  const hostname =
    config.preserve_hostname === true ? 'localhost' : (config.hostname ?? metaData['local-hostname'])
  return {
    id: String(metaData['instance-id'] ?? 'nocloud'),
    hostname: String(hostname ?? 'localhost').split('.')[0] ?? '',
    config,
    boothooks: [...vendorParts, ...userParts].filter(({ kind }) => kind === 'boothook'),
    vendorScripts: vendorParts.filter(({ kind }) => kind === 'script'),
    userScripts: userParts.filter(({ kind }) => kind === 'script'),
    ...(seed.networkConfig && { network: readYaml(seed.networkConfig, 'network-config', log) ?? {} }),
  }
}

/** `vendor_data: {enabled: false}` turns it off. */
function wantsVendorData(config: YamlMap): boolean {
  const { vendor_data: setting } = config
  return !(isMap(setting) && /^(?:false|no|off|0)$/i.test(String(setting.enabled)))
}

/** A `merge_how` rules how its own part joins those before it, and is used up by that. */
function mergeParts(parts: Part[], source: string, log: (line: string) => void): YamlMap {
  let result: YamlMap = {}
  for (const part of parts.filter(({ kind }) => kind === 'cloud-config')) {
    const document = readYaml(Buffer.from(part.text), `${source} (${part.name})`, log)
    if (!isMap(document)) {
      log(`cloud-init: failed at merging in cloud config part from ${part.name} of ${source}`)
      continue
    }
    const { merge_how: asked, merge_type: alias, ...config } = document
    const how: MergeHow = readMergeHow(asked ?? alias) ?? readMergeHow(part.mergeType) ?? replaceKeys
    const merged = merge(result, config, how)
    if (isMap(merged)) result = merged
  }
  return result
}

function readMap(bytes: Uint8Array, name: string, log: (line: string) => void): YamlMap {
  const value = readYaml(bytes, name, log)
  return isMap(value) ? value : {}
}
