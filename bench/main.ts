import { writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { calls } from './calls.ts'
import { coldStart } from './cold-start.ts'
import { compared, type Results, readRecorded, recordedPath } from './compare.ts'
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
for (const part of parts) {
  if (positionals.length > 0 && !positionals.includes(part.name)) continue
  const startedMs = performance.now()
  const report = await part.run((line) => process.stderr.write(`${part.name}: ${line}\n`))
  results[part.name] = report.figures
  const seconds = ((performance.now() - startedMs) / 1000).toFixed(1)
  process.stdout.write(`\n== ${part.name}: ${part.about} (${seconds} s)\n${render(report)}\n`)
}

const json = (taken: Results) =>
  `${JSON.stringify({ takenAt: new Date().toISOString().slice(0, 10), node: process.version, parts: taken }, null, 2)}\n`
if (values.json !== undefined) writeFileSync(values.json, json(results))
if (values.compare) {
  const { sheet, worse } = compared(results, readRecorded())
  process.stdout.write(`${render({ sheets: [sheet], figures: [] })}\n`)
  if (worse > 0) process.exitCode = 1
}
if (values.record) writeFileSync(recordedPath, json({ ...(recordedSoFar() ?? {}), ...results }))

/** Parts that are not taken anew keep what was recorded of them; at the first time there is nothing. */
function recordedSoFar(): Results | undefined {
  try {
    // Read by the schema; absent aims are left out rather than undefined.
    return readRecorded().parts as Results
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
}
