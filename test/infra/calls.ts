import { build } from 'esbuild'

/** One kind of call that a bundle of ours can make: what it calls, and the file that does. */
export type Call = { file: string; command: string }

const project = new URL('../..', import.meta.url).pathname

/**
 * The SDK commands that are left in a function's bundle once everything unused is shaken out, by the file of ours that
 * constructs them. Bundled as for AWS, but readable: each module stands under a comment with its name.
 */
export function callsOf(room: string): Promise<Calls> {
  const known = bundled.get(room) ?? bundleCalls(room)
  bundled.set(room, known)
  return known
}

type Calls = { calls: Call[]; indexes: { file: string; index: string }[] }
/** A query for whoever calls `pagesWhere`: on what, only they know. */
const LENT = 'lib/pages-where.ts'

/** The sources do not change while tests run. */
const bundled = new Map<string, Promise<Calls>>()

async function bundleCalls(room: string): Promise<Calls> {
  const { outputFiles } = await build({
    absWorkingDir: project,
    entryPoints: [`functions/${room}/handler.ts`],
    bundle: true,
    write: false,
    platform: 'node',
    format: 'esm',
    target: 'node24',
    treeShaking: true,
    mainFields: ['module', 'main'],
    logLevel: 'silent',
  })
  const calls: Call[] = []
  const indexes: { file: string; index: string }[] = []
  for (const { file, text } of sections(outputFiles[0]?.text ?? '')) {
    if (file === LENT) continue
    for (const [, command = ''] of text.matchAll(/\bnew (\w+Command)\d*\(/g)) calls.push({ file, command })
    if (/\bpagesWhere\d*\(/.test(text)) calls.push({ file, command: 'QueryCommand' })
    for (const [, name = ''] of text.matchAll(/\bpaginate(\w+?)\d*\(/g))
      calls.push({ file, command: `${name}Command` })
    for (const [, index = ''] of text.matchAll(/\b(?:IndexName|index): "(\w+)"/g))
      indexes.push({ file, index })
  }
  return { calls: unique(calls), indexes: unique(indexes) }
}

/** The modules of ours in a bundle. */
function sections(bundle: string): { file: string; text: string }[] {
  const parts = bundle.split(/^\/\/ ((?:\.\.\/)*[\w@./-]+\.\w+)$/m)
  const found: { file: string; text: string }[] = []
  for (let index = 1; index < parts.length; index += 2) {
    const file = parts[index] ?? ''
    if (!file.includes('node_modules/')) found.push({ file, text: parts[index + 1] ?? '' })
  }
  return found
}

const unique = <T>(all: T[]): T[] => [...new Map(all.map((one) => [JSON.stringify(one), one])).values()]
