import { cidata } from './iso.ts'
import { metaData } from './meta-data.ts'
import { networkConfig } from './network-config.ts'
import type { Seed } from './seed.ts'
import { userData } from './user-data.ts'
import { vendorData } from './vendor-data.ts'

export { type Refusal, refusals } from './refusals.ts'
export type { Seed } from './seed.ts'
export { SeedError, type SeedErrorCode } from './seed-error.ts'
export { userDataMaxBytes } from './user-data.ts'

/** The four files of a NoCloud seed, by their exact names. */
export type Documents = Record<'meta-data' | 'user-data' | 'vendor-data' | 'network-config', string>

/**
 * The texts of a seed. A pure function of its argument.
 *
 * @throws {SeedError} naming the field that cannot be put into a seed
 */
export function documents(seed: Seed): Documents {
  return {
    'meta-data': metaData(seed),
    'user-data': userData(seed),
    'vendor-data': vendorData(seed),
    'network-config': networkConfig(seed),
  }
}

/**
 * The seed as an ISO 9660 image labelled `cidata`, about 60 KiB. The same seed gives the same bytes.
 *
 * @throws {SeedError} naming the field that cannot be put into a seed
 */
export function makeSeed(seed: Seed): Uint8Array {
  return cidata(documents(seed))
}
