import { existsSync, writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { calls } from './calls.ts'
import { coldStart } from './cold-start.ts'
import { compared, crowding, type Results, readRecorded, recordedPath } from './compare.ts'
import { iso } from './iso.ts'
import { money } from './money.ts'
import { overhead } from './overhead.ts'
import { type Part, render } from './report.ts'
import { scale } from './scale.ts'
import { throughput } from './throughput.ts'

const parts: Part[] = [overhead, calls, money, throughput, scale, coldStart, iso]

const USAGE = `npm run bench -- [part …] [--json FILE] [--compare] [--record]

  --json FILE   writes the figures there
  --compare     prints what changed beyond its noise since bench/recorded.json was taken; exit code 1 when anything got worse
  --record      takes the figures of these parts into bench/recorded.json

${parts.map(({ name, about }) => `  ${name.padEnd(12)} ${about}`).join('\n')}
`

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: {
    json: { type: 'string' },
    compare: { type: 'boolean' },
    record: { type: 'boolean' },
    help: { type: 'boolean', short: 'h' },
  },
})
const unknown = positionals.filter((name) => !parts.some((part) => part.name === name))
if (values.help || unknown.length > 0) {
  process.stderr.write([...unknown.map((name) => `no such part: ${name}\n`), USAGE].join('\n'))
  process.exit(unknown.length > 0 ? 2 : 0)
}

const results: Results = {}
const crowdedAtStart = crowding()
for (const part of parts) {
  if (positionals.length > 0 && !positionals.includes(part.name)) continue
  const startedMs = performance.now()
  const report = await part.run((line) => process.stderr.write(`${part.name}: ${line}\n`))
  results[part.name] = report.figures
  const seconds = ((performance.now() - startedMs) / 1000).toFixed(1)
  process.stdout.write(`\n== ${part.name}: ${part.about} (${seconds} s)\n${render(report)}\n`)
}

const crowded = Math.max(crowdedAtStart, crowding())
const json = (taken: Results, before = 0) => {
  const takenAt = new Date().toISOString().slice(0, 10)
  const head = { takenAt, node: process.version, crowding: Math.max(crowded, before) }
  return `${JSON.stringify({ ...head, parts: taken }, null, 2)}\n`
}
if (values.json !== undefined) writeFileSync(values.json, json(results))
if (values.compare) {
  const { sheet, worse, leftOut } = compared(results, readRecorded(), crowded)
  const notes =
    leftOut === 0 ? [] : [`${leftOut} figures of the machine's clock were left out: it was, or is, crowded.`]
  process.stdout.write(`${render({ sheets: [sheet], figures: [], notes })}\n`)
  if (worse > 0) process.exitCode = 1
}
if (values.record) {
  // Parts that are not taken anew keep what was recorded of them.
  const before = existsSync(recordedPath) ? readRecorded() : undefined
  // Read by the schema; absent aims are left out rather than undefined.
  const parts = { ...before?.parts, ...results } as Results
  writeFileSync(recordedPath, json(parts, before?.crowding))
}
