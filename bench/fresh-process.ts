import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

const run = promisify(execFile)

const SCRIPT = `
const [before, started] = [process.cpuUsage(), performance.now()]
await import(process.argv[1])
const [ms, { user, system }] = [performance.now() - started, process.cpuUsage(before)]
process.stdout.write('\\n' + JSON.stringify({ ms, cpuMs: (user + system) / 1000 }))
process.exit(0)`

/**
 * What it takes a fresh process to import a module, by the clock and in CPU time; starting Node itself is left out. On a
 * crowded machine the clock tells of the others too, and the CPU time hardly.
 */
export async function importTimes(
  url: string,
  env: Readonly<Record<string, string>>,
): Promise<{ ms: number; cpuMs: number }> {
  const args = ['--input-type=module', '-e', SCRIPT, url]
  const { stdout } = await run(process.execPath, args, { env: { ...env } })
  return JSON.parse(stdout.split('\n').at(-1) ?? '')
}
