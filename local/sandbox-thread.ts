import { randomUUID } from 'node:crypto'
import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { parentPort, workerData } from 'node:worker_threads'
import type { Context } from 'aws-lambda'
import type { FromThread, Setup, ToThread } from './sandbox.ts'

// Runs in a thread of its own and plays Lambda's runtime: loads the handler once, then serves one event after the other.

/** A thread shares the process's file descriptors: what a logger writes straight to 1 or 2 must still come out as this thread's. */
function captureDescriptors(): void {
  const { writeSync, write } = fs
  const capture = (fd: number, data: unknown): number | undefined => {
    const stream = fd === 1 ? process.stdout : fd === 2 ? process.stderr : undefined
    if (!stream || (typeof data !== 'string' && !(data instanceof Uint8Array))) return undefined
    stream.write(data)
    return typeof data === 'string' ? Buffer.byteLength(data) : data.byteLength
  }
  // Both keep the original's many forms for every other descriptor.
  fs.writeSync = ((fd: number, data: never, ...rest: never[]) =>
    capture(fd, data) ?? writeSync(fd, data, ...rest)) as typeof fs.writeSync
  fs.write = ((fd: number, data: never, ...rest: never[]) => {
    const written = capture(fd, data)
    const done: unknown = rest.at(-1)
    if (written === undefined) return write(fd, data, ...(rest as unknown as [never]))
    if (typeof done === 'function') setImmediate(() => done(null, written, data))
  }) as unknown as typeof fs.write
  syncBuiltinESMExports()
}

captureDescriptors()
const port = parentPort
if (!port) throw new Error('to be run as a worker thread')
// Given by sandbox.ts, in this shape.
const setup = workerData as Setup
const say = (message: FromThread) => port.postMessage(message)

const { handler } = await import(setup.handler)
if (typeof handler !== 'function') throw new Error(`${setup.handler} exports no function named handler`)

port.on('message', async ({ event, deadlineMs }: ToThread) => {
  try {
    const answer: unknown = await handler(event, contextOf(setup, deadlineMs))
    // Over JSON, as between a real runtime and its service.
    say({ kind: 'answer', answer: JSON.parse(JSON.stringify(answer ?? null)) })
  } catch (error) {
    const { name, message, stack } = error instanceof Error ? error : new Error(String(error))
    say({ kind: 'threw', error: { name, message, stack } })
  }
})
say({ kind: 'ready' })

function contextOf({ functionName, functionArn }: Setup, deadlineMs: number): Context {
  const gone = () => {
    throw new Error('callbacks are gone from the runtime: return or throw')
  }
  return {
    functionName,
    functionVersion: '$LATEST',
    invokedFunctionArn: functionArn,
    memoryLimitInMB: '512',
    awsRequestId: randomUUID(),
    logGroupName: `/aws/lambda/${functionName}`,
    logStreamName: 'local',
    callbackWaitsForEmptyEventLoop: false,
    getRemainingTimeInMillis: () => Math.max(0, deadlineMs - Date.now()),
    done: gone,
    fail: gone,
    succeed: gone,
  }
}
