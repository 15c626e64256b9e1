import { createInterface } from 'node:readline'
import { Worker } from 'node:worker_threads'

/** What a thread is made with; plain data, it crosses into the thread. */
export type Setup = { handler: string; functionName: string; functionArn: string }
export type ToThread = { event: unknown; deadlineMs: number }
export type FromThread =
  | { kind: 'ready' }
  | { kind: 'answer'; answer: unknown }
  | { kind: 'threw'; error: { name: string; message: string; stack: string | undefined } }

/** The function gave no answer: it threw, ran out of time, or its environment died. */
class InvocationError extends Error {
  override readonly name = 'InvocationError'
  readonly code: 'Threw' | 'TimedOut' | 'Died'
  constructor(code: InvocationError['code'], message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.code = code
  }
}

/** One execution environment of a function: a fresh set of modules and variables, serving one event at a time. */
export type Sandbox = {
  /** @throws {InvocationError} after TimedOut and Died it is of no more use */
  invoke(event: unknown): Promise<unknown>
  readonly alive: boolean
  close(): Promise<void>
}

export type SandboxOptions = Setup & {
  /** All that the function sees of the environment. */
  env: Readonly<Record<string, string>>
  timeoutMs: number
  /** Each line that it writes to its standard output or error. */
  onLine(line: string): void
}

/** Loading a handler and its SDKs takes a fraction of a second; on a machine out of breath, some. */
const LOAD_TIMEOUT_MS = 60_000

export function createSandbox(options: SandboxOptions): Sandbox {
  const { handler, functionName, functionArn, env, timeoutMs, onLine } = options
  const setup: Setup = { handler, functionName, functionArn }
  const thread = new Worker(new URL('./sandbox-thread.ts', import.meta.url), {
    workerData: setup,
    env: { ...env },
    execArgv: [],
    stdout: true,
    stderr: true,
  })
  for (const stream of [thread.stdout, thread.stderr]) createInterface(stream).on('line', onLine)

  let dead: InvocationError | undefined
  let awaited: { resolve(message: FromThread): void; reject(error: Error): void } | undefined
  const die = (error: InvocationError) => {
    dead ??= error
    awaited?.reject(dead)
  }
  thread.on('message', (message: FromThread) => awaited?.resolve(message))
  thread.on('error', (error) => die(new InvocationError('Died', `${functionName}: ${error.message}`, error)))
  thread.on('exit', (code) => die(new InvocationError('Died', `${functionName} ended with code ${code}`)))

  /** The thread's next word, or its end when none comes in time. */
  function nextMessage(limitMs: number, doing: string): Promise<FromThread> {
    const timer = setTimeout(() => {
      die(new InvocationError('TimedOut', `${functionName} timed out ${doing} after ${limitMs} ms`))
      void thread.terminate()
    }, limitMs)
    return new Promise<FromThread>((resolve, reject) => {
      if (dead) return reject(dead)
      awaited = { resolve, reject }
    }).finally(() => clearTimeout(timer))
  }

  const ready = nextMessage(LOAD_TIMEOUT_MS, 'loading')
  // Whoever invokes learns of it; until then it is nobody's unhandled rejection.
  ready.catch(() => undefined)

  return {
    async invoke(event) {
      await ready
      const answer = nextMessage(timeoutMs, 'running')
      thread.postMessage({ event, deadlineMs: Date.now() + timeoutMs } satisfies ToThread)
      const message = await answer
      if (message.kind === 'answer') return message.answer
      const error = message.kind === 'threw' ? message.error : undefined
      throw new InvocationError('Threw', `${functionName} threw ${error?.name}: ${error?.message}`, error)
    },
    get alive() {
      return dead === undefined
    },
    async close() {
      die(new InvocationError('Died', `${functionName} was closed`))
      await thread.terminate()
    },
  }
}
