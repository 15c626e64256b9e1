import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { breaches, isThere, namedPaths, pages, readImports, sources } from './walls.ts'

describe('the walls of the house', () => {
  it('hold', () => {
    const imports = readImports(sources())
    expect(imports.length).toBeGreaterThan(sources().length)
    expect(breaches(imports)).toEqual([])
  })

  // A file, what it says, whether that is allowed. `x` stands for a name of its own.
  const planted = [
    ['lib/proxmox/x.ts', `import '../mark.ts'`, false],
    ['lib/proxmox/x.ts', `import type { Row } from '../record.ts'`, false],
    ['lib/proxmox/x.ts', `import '../nocloud/index.ts'`, false],
    ['lib/proxmox/x.ts', `import './api.ts'`, true],
    ['lib/x.ts', `import './proxmox/index.ts'`, false],
    ['lib/x.ts', `type P = import('./proxmox/index.ts').Provider`, false],
    ['lib/x.ts', `export * from '../functions/create/event.ts'`, false],
    ['lib/x.ts', `import './mark.ts'`, true],
    ['lib/x.ts', `import fc from 'fast-check'`, true],
    ['functions/create/x.ts', `import '../../lib/proxmox/provider.ts'`, false],
    ['functions/create/x.ts', `import '../../lib/proxmox/index.ts'`, true],
    ['functions/create/x.ts', `import '../delete/event.ts'`, true],
    ['functions/create/x.ts', `import '../delete/judge.ts'`, false],
    ['functions/create/x.ts', `import '../../sim/index.ts'`, false],
    ['functions/create/x.ts', `import '../../local/account.ts'`, false],
    ['functions/x/event.ts', `import '../create/event.ts'`, false],
    ['functions/x/event.ts', `import '../../lib/nocloud/index.ts'`, false],
    ['cli/x.ts', `import '../local/up.ts'`, true],
    ['cli/x.ts', `import '../functions/create/judge.ts'`, false],
    ['cli/x.ts', `import '../sim/engine/engine.ts'`, false],
    ['cli/x.js', `const x = await import('../test/walls.ts')`, false],
    ['local/x.ts', `import '../cli/main.ts'`, false],
    ['local/x.ts', `import '../functions/create/handler.ts'`, true],
    ['sim/x.ts', `import '../lib/mark.ts'`, false],
    ['sim/guest/x.ts', `import '../../lib/nocloud/index.ts'`, false],
    ['sim/guest/x.ts', `import '../types.ts'`, true],
    ['infra/x.ts', `import '../functions/create/event.ts'`, false],
    ['infra/x.ts', `import '../lib/config.ts'`, true],
    ['test/x.ts', `import '../sim/engine/engine.ts'`, true],
    ['bench/x.ts', `import '../test/lab/lab.ts'`, true],
    ['bench/x.ts', `import '../functions/create/steps.ts'`, true],
    ['bench/x.ts', `import '../test/sim/harness.ts'`, false],
    ['lib/x.ts', `import '../bench/prices.ts'`, false],
  ] as const
  const plants = planted.map(([path, text, allowed], index) => {
    return { path: path.replace(/\bx\b/, `x${index}`), text, allowed }
  })
  const found = breaches(
    readImports(
      plants.map(({ path }) => path),
      Object.fromEntries(plants.map(({ path, text }) => [path, text])),
    ),
  )

  it.each(plants)('are tested themselves: $path with $text', ({ path, allowed }) => {
    expect(found.filter(({ from }) => from === path)).toHaveLength(allowed ? 0 : 1)
  })
})

describe('pages for people', () => {
  it.each(pages())('%s names no path of ours that is not there', (page) => {
    const text = readFileSync(new URL(`../${page}`, import.meta.url), 'utf8')
    expect(namedPaths(page, text).filter((path) => !isThere(path))).toEqual([])
  })

  it('are read by code spans and links', () => {
    const text =
      'See `lib/turn.ts`, `functions/{create,nowhere}/judge.ts`, `npm test`, [this](../lib/gone.ts#x) and [that](https://a/b.md).'
    expect(namedPaths('docs/page.md', text)).toEqual([
      'lib/turn.ts',
      'functions/{create,nowhere}/judge.ts',
      'lib/gone.ts',
    ])
    expect(['lib/turn.ts', 'lib/*.ts', 'lib/', 'lib/gone.ts'].map(isThere)).toEqual([true, true, true, false])
  })
})
