import { globSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { gzipSync } from 'node:zlib'
import { type BuildOptions, build, type Metafile } from 'esbuild'
import { parse } from 'yaml'
import * as z from 'zod'

const root = resolve(import.meta.dirname, '..')

export type Bundle = { name: string; url: string; bytes: number; gzipBytes: number; metafile: Metafile }

/** The part of serverless.yml that says how the functions are bundled; serverless-esbuild hands it on as it is. */
const Packaging = z.object({
  custom: z.object({
    esbuild: z.object({
      minify: z.boolean(),
      sourcemap: z.enum(['linked']),
      sourcesContent: z.boolean(),
      plugins: z.string(),
      keepNames: z.boolean().default(false),
      target: z.string(),
      mainFields: z.array(z.string()),
      banner: z.record(z.string(), z.string()),
    }),
  }),
})

/** Bundles sources as the deployment bundles its functions. */
export function createBundler(folder: string) {
  // Tags of CloudFormation and variables of the framework stand elsewhere in the file.
  const text = readFileSync(join(root, 'serverless.yml'), 'utf8')
  const { plugins, ...esbuild } = Packaging.parse(parse(text, { logLevel: 'silent' })).custom.esbuild
  const options: BuildOptions = { ...esbuild, bundle: true, format: 'esm', platform: 'node' }

  async function bundle(name: string, entry: BuildOptions): Promise<Bundle> {
    const outfile = join(folder, `${name.replaceAll(/\W/g, '-')}.mjs`)
    const named = await import(join(root, plugins))
    const { metafile } = await build({
      ...options,
      ...entry,
      plugins: named.default,
      outfile,
      metafile: true,
      logLevel: 'error',
    })
    const bytes = readFileSync(outfile)
    return {
      name,
      url: pathToFileURL(outfile).href,
      bytes: bytes.byteLength,
      gzipBytes: gzipSync(bytes).byteLength,
      metafile,
    }
  }

  return {
    handler: (path: string) =>
      bundle(path.split('/').at(-2) ?? path, { entryPoints: [join(root, path)], absWorkingDir: root }),
    source: (name: string, contents: string) => bundle(name, { stdin: { contents, resolveDir: root } }),
  }
}

/** The handlers there are, from the root. */
export const handlers = () => globSync('functions/*/handler.ts', { cwd: root }).sort()

/** Bytes that each package, and our own source, takes of a bundle. */
export function shares({ metafile }: Bundle): Map<string, number> {
  const found = new Map<string, number>()
  for (const { inputs } of Object.values(metafile.outputs)) {
    for (const [path, { bytesInOutput }] of Object.entries(inputs)) {
      const name = /.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1] ?? 'our own source'
      found.set(name, (found.get(name) ?? 0) + bytesInOutput)
    }
  }
  return found
}
