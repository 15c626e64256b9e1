import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { root } from './egress.ts'

/** What came of a command line; `code` is null for one that the process did not live through, or that never ended. */
export type RanOne = { line: string[]; code: number | null; out: string; err: string; ms: number }

const program = fileURLToPath(new URL('run-several.ts', import.meta.url))

/** So long a command that ends by itself may take, on a machine that has much else to do. */
const TIMEOUT_MS = 120_000

/** Runs command lines by the real parser, one after the other in one process, with nothing of this environment but PATH. */
export function egressSeveral(
  lines: string[][],
  { env = {}, cwd = root }: { env?: NodeJS.ProcessEnv; cwd?: string } = {},
): Promise<{ ran: RanOne[]; rssMiB: number }> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [program], { cwd, env: { PATH: process.env.PATH, ...env } })
    const timer = setTimeout(() => child.kill('SIGKILL'), TIMEOUT_MS)
    let told = ''
    let crashed = ''
    child.stdout.on('data', (chunk) => {
      told += chunk
    })
    child.stderr.on('data', (chunk) => {
      crashed += chunk
    })
    child.on('error', reject)
    child.on('close', () => {
      clearTimeout(timer)
      const results = told
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line))
      const ran = results.filter(({ code }) => code !== undefined)
      const next = lines[ran.length]
      if (next) ran.push({ code: null, out: '', err: crashed, ms: 0 })
      resolve({
        ran: ran.map((one, index) => ({ line: lines[index] ?? [], ...one })),
        rssMiB: results.at(-1)?.rssMiB ?? 0,
      })
    })
    child.stdin.end(JSON.stringify({ lines, env: { PATH: process.env.PATH, ...env } }))
  })
}
