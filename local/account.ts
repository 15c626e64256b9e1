/** The account that the emulators pretend to be. */
export const ACCOUNT = '000000000000'
export const REGION = 'us-east-1'
/** The emulators check no signature; the SDK only needs something to sign with. */
export const credentials = { accessKeyId: 'local', secretAccessKey: 'local' }
