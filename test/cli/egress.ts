import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'

export const binary = fileURLToPath(new URL('../../cli/egress.js', import.meta.url))
export const root = fileURLToPath(new URL('../../', import.meta.url))

export type Ran = { code: number; out: string; err: string }

/** Runs the real command, as a shell would, with nothing of this process's environment but PATH. */
export function egress(
  args: string[],
  {
    env = {},
    input,
    node = process.execPath,
    cwd = root,
  }: { env?: NodeJS.ProcessEnv; input?: string; node?: string; cwd?: string } = {},
): Promise<Ran> {
  return new Promise((resolve, reject) => {
    const child = execFile(
      node,
      [binary, ...args],
      { cwd, env: { PATH: process.env.PATH, ...env }, timeout: 200_000 },
      (error, out, err) => {
        const code = error ? error.code : 0
        if (typeof code === 'number') resolve({ code, out, err })
        else reject(error)
      },
    )
    child.stdin?.end(input ?? '')
  })
}
