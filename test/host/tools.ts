import { execFileSync, spawnSync } from 'node:child_process'
import { accessSync, constants } from 'node:fs'
import { join } from 'node:path'
import { describe } from 'vitest'

/** Where Debian keeps the tools; not every user's PATH has the last two. */
const folders = [...(process.env.PATH ?? '').split(':'), '/usr/sbin', '/sbin']

/**
 * Tests that need programs of the host. Without one of them they are skipped, and the reason is printed;
 * with EGRESS_HOST_TOOLS=required, as in CI after the tools were installed, they fail instead.
 */
export function describeWith(tools: string[], title: string, body: () => void) {
  const missing = tools.filter((tool) => pathOf(tool) === undefined)
  if (missing.length === 0) return describe(title, body)
  const reason = `${missing.join(', ')} not installed`
  if (process.env.EGRESS_HOST_TOOLS === 'required') throw new Error(`${title}: ${reason}`)
  console.info(`skipped: ${title}: ${reason}`)
  return describe.skip(`${title} (skipped: ${reason})`, body)
}

/** Runs a tool to its end and gives what it printed. @throws when it fails, with what it said */
export function run(tool: string, ...args: string[]): string {
  return execFileSync(pathOf(tool) ?? tool, args, { encoding: 'utf8', stdio: 'pipe' })
}

/** Runs a tool that may fail. */
export function tryRun(tool: string, ...args: string[]): { status: number | null; output: string } {
  const { status, stdout, stderr } = spawnSync(pathOf(tool) ?? tool, args, { encoding: 'utf8' })
  return { status, output: stdout + stderr }
}

export function pathOf(tool: string): string | undefined {
  return folders.map((folder) => join(folder, tool)).find(isExecutable)
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}
