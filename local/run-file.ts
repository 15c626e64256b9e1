import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import * as z from 'zod'
import { writeAtomically } from './write-atomically.ts'

const Queue = z.object({ url: z.string(), arn: z.string() })

/** Where everything of a running `egress up` is, for the command line. No secret in it. */
export const Run = z.object({
  pid: z.int(),
  region: z.string(),
  config: z.string(),
  endpoints: z.object({ dynamodb: z.string(), sqs: z.string(), sns: z.string() }),
  tables: z.object({ proxies: z.string(), claims: z.string() }),
  queues: z.object({
    create: Queue.extend({ deadLetters: Queue }),
    delete: Queue.extend({ deadLetters: Queue }),
  }),
  topicArn: z.string(),
  events: Queue,
  /** The page that the demonstration fetches through its proxy. */
  page: z.string().optional(),
  /** The simulated cluster, when there is one. */
  sim: z
    .object({ admin: z.string(), endpoints: z.array(z.object({ node: z.string(), url: z.string() })) })
    .optional(),
})
export type Run = z.infer<typeof Run>

const pathIn = (folder: string) => join(folder, 'run.json')

export function writeRun(folder: string, run: Run): void {
  writeAtomically(pathIn(folder), `${JSON.stringify(run, null, 2)}\n`)
}

/** What runs on this data folder. A file that a killed process left behind counts for nothing. @throws {Error} for a file that is no such one */
export function readRun(folder: string): Run | undefined {
  let text: string
  try {
    text = readFileSync(pathIn(folder), 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
  const run = read(text)
  if (!run)
    throw new Error(`${pathIn(folder)} was not written by egress up: remove it, or name another folder`)
  return isAlive(run.pid) ? run : undefined
}

function read(text: string): Run | undefined {
  try {
    return Run.safeParse(JSON.parse(text)).data
  } catch {
    return undefined // What is no JSON is none either: its reader says so.
  }
}

export function removeRun(folder: string): void {
  rmSync(pathIn(folder), { force: true })
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
