import { performance } from 'node:perf_hooks'
import { text } from 'node:stream/consumers'
import { main } from '../../cli/main.ts'

// Runs command lines one after the other in one process, as JSON on standard input tells them, and tells what came of each: a
// process of its own for each would take a second.

const { lines, env } = JSON.parse(await text(process.stdin)) as { lines: string[][]; env: NodeJS.ProcessEnv }
const write = process.stdout.write.bind(process.stdout)
const said = { out: '', err: '' }
const into = (where: keyof typeof said) => (chunk: unknown) => {
  said[where] += String(chunk)
  return true
}
process.stdout.write = into('out')
process.stderr.write = into('err')
// Each command line adds one, and a process runs but one.
process.stdout.setMaxListeners(0)

for (const line of lines) {
  Object.assign(said, { out: '', err: '' })
  const startedAt = performance.now()
  const code = await main(line, env)
  write(`${JSON.stringify({ code, ...said, ms: Math.round(performance.now() - startedAt) })}\n`)
}
write(`${JSON.stringify({ rssMiB: Math.round(process.resourceUsage().maxRSS / 1024) })}\n`)
process.exit(0)
