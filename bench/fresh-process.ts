import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

const run = promisify(execFile)

const SCRIPT = `
const started = performance.now()
await import(process.argv[1])
process.stdout.write('\\n' + String(performance.now() - started))
process.exit(0)`

/** Milliseconds that a fresh process takes to import a module; starting Node itself is left out. */
export async function importMs(url: string, env: Readonly<Record<string, string>>): Promise<number> {
  const args = ['--input-type=module', '-e', SCRIPT, url]
  const { stdout } = await run(process.execPath, args, { env: { ...env } })
  return Number(stdout.split('\n').at(-1))
}
