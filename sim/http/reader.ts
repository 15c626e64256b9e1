import type { Duplex } from 'node:stream'

/** Reads a connection piece by piece. Every read gives `undefined` once nothing more can come: closed, or idle for too long. */
export type Reader = {
  /** The next line without its end; `undefined` also for one that does not end within 64 KiB. */
  line(): Promise<string | undefined>
  /** Exactly so many bytes. */
  take(bytes: number): Promise<Buffer | undefined>
  /** What has arrived, at most so many bytes of it. */
  some(maxBytes: number): Promise<Buffer | undefined>
  /** Throws away what still comes until the connection is idle or closed. */
  drain(): Promise<void>
}

/** A client that sends without waiting is slowed down beyond this. */
const bufferBytes = 1024 * 1024
/** What pveproxy keeps of a connection: a line that does not end within this ends the connection. Source: AnyEvent.pm, rbuf_max. */
const lineBytes = 64 * 1024

export function createReader(stream: Duplex, idleMs: number): Reader {
  let buffered: Buffer = Buffer.alloc(0)
  let ended = false
  let wake: (() => void) | undefined

  stream.on('data', (chunk: Buffer) => {
    buffered = buffered.length === 0 ? chunk : Buffer.concat([buffered, chunk])
    if (buffered.length > bufferBytes) stream.pause()
    wake?.()
  })
  const end = () => {
    ended = true
    wake?.()
  }
  stream.on('end', end).on('close', end)

  /** True when something new has arrived. */
  async function more(): Promise<boolean> {
    if (ended) return false
    stream.resume()
    const before = buffered.length
    let timer: NodeJS.Timeout | undefined
    await new Promise<void>((resolve) => {
      wake = resolve
      timer = setTimeout(resolve, idleMs)
    })
    clearTimeout(timer)
    wake = undefined
    return buffered.length > before
  }

  function cut(length: number, skip = 0): Buffer {
    const piece = buffered.subarray(0, length)
    buffered = buffered.subarray(length + skip)
    return piece
  }

  return {
    async line() {
      let newline = buffered.indexOf(0x0a)
      while (newline < 0) {
        if (buffered.length > lineBytes || !(await more())) return undefined
        newline = buffered.indexOf(0x0a)
      }
      return cut(newline, 1).toString('utf8').replace(/\r$/, '')
    },
    async take(bytes) {
      while (buffered.length < bytes) if (!(await more())) return undefined
      return cut(bytes)
    },
    async some(maxBytes) {
      if (buffered.length === 0 && !(await more())) return undefined
      return cut(Math.min(maxBytes, buffered.length))
    },
    async drain() {
      do cut(buffered.length)
      while (await more())
    },
  }
}
