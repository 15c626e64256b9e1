import { readDisc } from './iso9660.ts'

/** What a NoCloud disc holds. The first two must be there, or it is none. */
export type Seed = {
  metaData: Uint8Array
  userData: Uint8Array
  vendorData?: Uint8Array
  networkConfig?: Uint8Array
}

/**
 * Finds the NoCloud seed among the discs, in cloud-init's order: label in lower or upper case, last drive first, both
 * required files present. Source: cloud-init 22.4, DataSourceNoCloud.py.
 */
export function findSeed(discs: Uint8Array[], log: (line: string) => void): Seed | undefined {
  const drives = discs.map((image, index) => ({ device: `/dev/sr${index}`, disc: readDisc(image) })).reverse()
  for (const { device, disc } of drives) {
    if (!disc || !/^cidata$/i.test(disc.label)) continue
    const [metaData, userData, vendorData, networkConfig] = [
      'meta-data',
      'user-data',
      'vendor-data',
      'network-config',
    ].map((name) => disc.files.get(name))
    if (!metaData || !userData) {
      log(`cloud-init: device ${device} with label=cidata not a valid seed.`)
      continue
    }
    log(`cloud-init: using NoCloud data from ${device}`)
    return { metaData, userData, ...(vendorData && { vendorData }), ...(networkConfig && { networkConfig }) }
  }
  log('cloud-init: no NoCloud seed found')
  return undefined
}
