import { spawnSync } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { type Mutant, mutants } from './mutants.ts'

// `npm run mutants`, or for some of them `npm run mutants -- seed unsettled`. Each is planted in a copy of the project,
// where the harness searches until it finds something broken. Seconds are those of one processor.

const root = resolve(import.meta.dirname, '../..')
const copied = ['bench', 'cli', 'config', 'docs', 'functions', 'infra', 'lib', 'local', 'sim', 'test']
const LIMIT_SECONDS = Number(process.env.MUTANTS_SECONDS ?? 60)
const STORY_LINES = Number(process.env.MUTANTS_LINES ?? 24)

const wanted = process.argv.slice(2)
const chosen = mutants.filter(({ name }) => wanted.length === 0 || wanted.some((word) => name.includes(word)))

function copyProject(): string {
  const folder = mkdtempSync(join(tmpdir(), 'egress-mutants-'))
  for (const room of copied) cpSync(join(root, room), join(folder, room), { recursive: true })
  for (const file of ['package.json', 'tsconfig.json', 'vitest.config.ts'])
    cpSync(join(root, file), join(folder, file))
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  return folder
}

/** What vitest is told to run, and the search's own settings. */
function searchFor({ caughtBy }: Mutant): { words: string[]; env: Record<string, string> } {
  if ('orders' in caughtBy)
    return { words: ['test/faults/orders.test.ts'], env: { ORDERS_RUNS: String(caughtBy.orders) } }
  if ('plot' in caughtBy) {
    return {
      words: ['test/faults/crash', '-t', `in the plot ${caughtBy.plot} .*at any deed`],
      env: { CRASH_ENOUGH: '1', CRASH_SLEEP_EVERY: '1', CRASH_ALL: '1' },
    }
  }
  return { words: [caughtBy.file, '-t', caughtBy.title], env: {} }
}

type Verdict = { caught: boolean; seconds: number; cpuSeconds: number; story: string[]; why: string }

function tryOut(mutant: Mutant, folder: string): Verdict {
  const originals = new Map(mutant.edits.map(({ file }) => [file, readFileSync(join(folder, file), 'utf8')]))
  const misfit = mutant.edits.find(({ file, find }) => originals.get(file)?.split(find).length !== 2)
  if (misfit) {
    const why = `its text is not once in ${misfit.file}`
    return { caught: false, seconds: 0, cpuSeconds: 0, story: [], why }
  }
  for (const { file, find, replace } of mutant.edits) {
    const text = readFileSync(join(folder, file), 'utf8')
    writeFileSync(
      join(folder, file),
      text.replace(find, () => replace),
    )
  }
  const { words, env } = searchFor(mutant)
  const startedAt = performance.now()
  const script = 'TIMEFORMAT="cpu %U"; time "$0" "$@"'
  const ran = spawnSync('bash', ['-c', script, 'npx', 'vitest', 'run', ...words], {
    cwd: folder,
    encoding: 'utf8',
    env: { ...process.env, ...env, NO_COLOR: '1' },
    timeout: LIMIT_SECONDS * 1000,
    killSignal: 'SIGTERM',
    maxBuffer: 64 * 1024 * 1024,
  })
  for (const [file, text] of originals) writeFileSync(join(folder, file), text)
  const output = `${ran.stdout}\n${ran.stderr}`
  const failed = ran.status === 1 && /Tests .*failed/.test(output)
  const cpuSeconds = Number(/cpu ([\d.]+)/.exec(output)?.[1] ?? Number.NaN)
  const why = ran.error ? `not within ${LIMIT_SECONDS} s` : failed ? 'caught' : 'the harness found nothing'
  return {
    caught: failed,
    seconds: (performance.now() - startedAt) / 1000,
    cpuSeconds,
    story: storyIn(output),
    why,
  }
}

/** What the harness says of the first thing it found. */
function storyIn(output: string): string[] {
  const lines = output.split('\n')
  const from = lines.findIndex((line) => /^\s*(AssertionError|Error): /.test(line))
  if (from < 0) return lines.filter((line) => line.trim() !== '').slice(-8)
  const to = lines.findIndex((line, index) => index > from && /^ ❯ /.test(line))
  return lines.slice(from, to < 0 ? undefined : to)
}

/** The promise, and what somebody did to the functions: the rest of the story is for who repeats it. */
function inShort(story: string[]): string[] {
  const marked = /◀──|✗ BROKEN|carries out|awake|to repeat it/
  const [head = '', ...rest] = story
  return [head, ...rest.filter((line) => marked.test(line))].slice(0, STORY_LINES)
}

const folder = copyProject()
const survivors: string[] = []
try {
  for (const mutant of chosen) {
    const { caught, seconds, cpuSeconds, story, why } = tryOut(mutant, folder)
    if (!caught) survivors.push(`${mutant.name}: ${why}`)
    const by = searchFor(mutant).words.join(' ')
    console.log(`\n${caught ? 'caught  ' : 'SURVIVES'}  ${mutant.name}   (${mutant.breaks})`)
    console.log(`          ${seconds.toFixed(0)} s, ${cpuSeconds.toFixed(0)} s of a processor; ${by}`)
    for (const line of caught ? inShort(story) : [why, ...story]) console.log(`          │ ${line.trimEnd()}`)
  }
} finally {
  rmSync(folder, { recursive: true })
}
console.log(`\n${chosen.length - survivors.length} of ${chosen.length} caught`)
for (const one of survivors) console.log(`survives: ${one}`)
process.exitCode = survivors.length > 0 || chosen.length === 0 ? 1 : 0
