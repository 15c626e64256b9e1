import { readFileSync } from 'node:fs'
import type { Plugin } from 'esbuild'

/** Maps the whole of a module to one place. */
const NOWHERE = Buffer.from(
  JSON.stringify({ version: 3, sources: ['x'], names: [], mappings: 'AAAA' }),
).toString('base64')

/**
 * Leaves what comes from packages out of the source maps, so that stacks name the lines of our own source alone. Node reads
 * a map whole as soon as its bundle is loaded, and with the packages in it that took as long as all the rest of a cold start.
 * Source: esbuild issue 1685.
 */
const ownSourceMaps: Plugin = {
  name: 'own-source-maps',
  setup(build) {
    build.onLoad({ filter: /node_modules.*\.[cm]?js$/ }, ({ path }) => ({
      contents: `${readFileSync(path, 'utf8')}\n//# sourceMappingURL=data:application/json;base64,${NOWHERE}`,
      loader: 'js',
    }))
  },
}

export default [ownSourceMaps]
