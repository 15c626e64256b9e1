import { writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { calls } from './calls.ts'
import { money } from './money.ts'
import { overhead } from './overhead.ts'
import { type Figure, type Part, render } from './report.ts'
import { throughput } from './throughput.ts'

const parts: Part[] = [overhead, calls, money, throughput]

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: { json: { type: 'string' }, help: { type: 'boolean', short: 'h' } },
})
const unknown = positionals.filter((name) => !parts.some((part) => part.name === name))
if (values.help || unknown.length > 0) {
  const list = parts.map(({ name, about }) => `  ${name.padEnd(12)} ${about}`)
  process.stderr.write(
    [
      ...unknown.map((name) => `no such part: ${name}`),
      'npm run bench -- [part …] [--json FILE]',
      ...list,
      '',
    ].join('\n'),
  )
  process.exit(unknown.length > 0 ? 2 : 0)
}

const chosen = parts.filter(({ name }) => positionals.length === 0 || positionals.includes(name))
const results: Record<string, { figures: Figure[] }> = {}
for (const part of chosen) {
  const startedMs = performance.now()
  const report = await part.run((line) => process.stderr.write(`${part.name}: ${line}\n`))
  results[part.name] = { figures: report.figures }
  const took = ((performance.now() - startedMs) / 1000).toFixed(1)
  process.stdout.write(`\n== ${part.name}: ${part.about} (${took} s)\n${render(report)}\n`)
}
if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify(results, null, 2)}\n`)
