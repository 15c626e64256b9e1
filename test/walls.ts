import { globSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { API } from 'typescript/unstable/sync'

/** One import of our own: types count, `import()` counts, packages do not. Paths are from the root. */
export type Import = { from: string; to: string }

const root = resolve(import.meta.dirname, '..')
const SOURCES = '{bench,cli,functions,infra,lib,local,sim,test}/**/*.{ts,js}'

/** Files of ours, from the root. */
export const sources = () => globSync(SOURCES, { cwd: root }).sort()

/** Every import of ours in the files, read by TypeScript's own parser; what is `planted` is read as if it were there. */
export function readImports(
  files: readonly string[],
  planted: Readonly<Record<string, string>> = {},
): Import[] {
  const project = join(root, 'tsconfig.walls.json')
  const compilerOptions = {
    noEmit: true,
    noResolve: true,
    noLib: true,
    types: [],
    allowJs: true,
    module: 'nodenext',
  }
  const texts = new Map(Object.entries(planted).map(([path, text]) => [join(root, path), text]))
  texts.set(project, JSON.stringify({ compilerOptions, files }))
  const api = new API({
    cwd: root,
    fs: { readFile: (path) => texts.get(path), fileExists: (path) => texts.has(path) || undefined },
  })
  try {
    const [opened] = api.updateSnapshot({ openProjects: [project] }).getProjects()
    if (!opened) throw new Error('TypeScript opened no project')
    return files.flatMap((from) => {
      const file = opened.program.getSourceFile(join(root, from))
      if (!file) throw new Error(`${from} was not read`)
      const specifiers = file.imports.map((node) => ('text' in node ? String(node.text) : ''))
      return specifiers
        .filter((specifier) => /^\.|^\/|^file:/.test(specifier))
        .map((specifier) => ({ from, to: relative(root, resolve(root, dirname(from), specifier)) }))
    })
  } finally {
    api.close()
  }
}

type Rule = { room: RegExp; may: (path: string) => RegExp[] }

const library = /^lib\/[^/]+\.ts$/
const doors = /^lib\/[^/]+\/index\.ts$/
const events = /^functions\/[^/]+\/event\.ts$/
const handlers = /^functions\/[^/]+\/handler\.ts$/
const own = (path: string, depth: number) => new RegExp(`^${path.split('/').slice(0, depth).join('/')}/`)

/** Who may import whom, most particular first. A file of none of these rooms may import nothing of ours. */
const rules: Rule[] = [
  { room: /^lib\/[^/]+\//, may: (path) => [own(path, 2)] },
  { room: /^lib\//, may: () => [library] },
  { room: events, may: () => [library] },
  { room: /^functions\/[^/]+\//, may: (path) => [library, doors, own(path, 2), events] },
  { room: /^cli\//, may: () => [/^cli\//, /^local\//, library, doors, events, handlers, /^sim\/index\.ts$/] },
  { room: /^local\//, may: () => [/^local\//, library, doors, events, handlers, /^sim\/index\.ts$/] },
  { room: /^infra\//, may: () => [/^infra\//, library] },
  { room: /^sim\//, may: () => [/^sim\//] },
  { room: /^test\//, may: () => [/^/] },
  // Measures everything, with the lab and the fakes of the tests, but none of the tests themselves.
  { room: /^bench\//, may: () => [/^(?!test\/)/, /^test\/(lab|fakes)\//] },
]

/** The imports that go through a wall. */
export function breaches(imports: readonly Import[]): Import[] {
  return imports.filter(({ from, to }) => {
    const allowed = rules.find(({ room }) => room.test(from))?.may(from) ?? []
    return !allowed.some((room) => room.test(to))
  })
}

const NAMED = /^(bench|cli|config|docs|functions|infra|lib|local|sim|test)\/[\w.{},*/@-]*$|^[A-Z]+\.md$/

/** The paths of ours that a page names, in code spans and as targets of links, from the root. */
export function namedPaths(page: string, text: string): string[] {
  const spans = [...text.matchAll(/`([^`\n]+)`/g)]
    .map(([, span = '']) => span)
    .filter((span) => NAMED.test(span))
  const links = [...text.matchAll(/\]\(([^)#\s]+)(?:#[^)\s]*)?\)/g)]
    .map(([, target = '']) => target)
    .filter((target) => !/^[a-z]+:/.test(target))
    .map((target) => join(dirname(page), target))
  return [...spans, ...links]
}

/** Pages for people, from the root. */
export const pages = () => globSync(['*.md', 'docs/**/*.md'], { cwd: root }).sort()

export const isThere = (path: string) => globSync(path.replace(/\/$/, ''), { cwd: root }).length > 0
