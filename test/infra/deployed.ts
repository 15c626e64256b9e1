import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync } from 'node:fs'
import { unzipInto } from './unzip.ts'

/** A function as it is deployed, in a clean process. */
export type Deployed = {
  invoke(event: unknown): Promise<unknown>
  /** What it printed, line by line. */
  lines: string[]
  close(): Promise<void>
}

/** Unpacks the function's zip into the folder and loads it there, with nothing in its environment but `env`. */
export async function deploy(options: {
  folder: string
  zip: Buffer
  handler: string
  functionName: string
  timeoutSeconds: number
  env: Record<string, string>
}): Promise<Deployed> {
  const { folder, zip, handler, functionName, timeoutSeconds, env } = options
  mkdirSync(folder, { recursive: true })
  unzipInto(folder, zip)
  const file = `${folder}/${handler.replace(/\.handler$/, '.mjs')}`
  const runtime = new URL('./fixtures/runtime.mjs', import.meta.url).pathname
  const child = fork(runtime, [file, functionName], { cwd: folder, env, execArgv: [], silent: true })
  const lines: string[] = []
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding('utf8').on('data', (text: string) => lines.push(...text.split('\n').filter(Boolean)))
  const died = once(child, 'exit').then(([code]) => {
    throw new Error(`${functionName} ended with code ${code}:\n${lines.join('\n')}`)
  })
  // Whoever waits for a message learns of it.
  died.catch(() => undefined)
  const message = () => Promise.race([once(child, 'message').then(([one]) => one), died])
  await message()

  let last: Promise<unknown> = Promise.resolve()
  return {
    lines,
    /** One event at a time, as in an execution environment. */
    invoke(event) {
      const answer = last.then(async () => {
        child.send({ event, timeoutMs: timeoutSeconds * 1000 })
        const { answer, threw } = await message()
        if (threw) throw new Error(threw)
        return answer
      })
      last = answer.catch(() => undefined)
      return answer
    },
    async close() {
      if (child.exitCode !== null || child.signalCode !== null) return
      child.kill('SIGKILL')
      await once(child, 'exit')
    },
  }
}
