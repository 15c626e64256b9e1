import { readFileSync } from 'node:fs'
import { gunzipSync } from 'node:zlib'

/** An image of test/fixtures/iso, made by the script there. */
export function fixture(name: string): Buffer {
  return gunzipSync(readFileSync(new URL(`../../fixtures/iso/${name}.iso.gz`, import.meta.url)))
}
