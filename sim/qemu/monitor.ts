import type { Socket } from 'node:net'
import { readLines } from './connection.ts'

/** QEMU's monitor. */
export type Monitor = {
  /** @throws {Error} what QEMU says, or that it ended. */
  ask(command: string, args?: object): Promise<unknown>
}

export type MonitorEvent = { event: string; data: Record<string, unknown> }

/** Speaks QMP over a socket. Source: QEMU, docs/interop/qmp-spec. */
export async function openMonitor(socket: Socket, onEvent: (event: MonitorEvent) => void): Promise<Monitor> {
  const waiting = new Map<string, { resolve(value: unknown): void; reject(error: Error): void }>()
  let count = 0
  let ended = false
  readLines(socket, (value) => {
    if (typeof value.event === 'string') onEvent({ event: value.event, data: { ...Object(value.data) } })
    const one = waiting.get(String(value.id))
    if (!one) return
    waiting.delete(String(value.id))
    if (value.error === undefined) one.resolve(value.return)
    else one.reject(new Error(`QEMU: ${Object(value.error).desc}`))
  })
  socket.on('error', () => {}) // The end of QEMU, which `close` tells of too.
  socket.on('close', () => {
    ended = true
    for (const { reject } of waiting.values()) reject(new Error('QEMU ended'))
    waiting.clear()
  })

  const ask: Monitor['ask'] = (command, args = {}) =>
    new Promise((resolve, reject) => {
      if (ended) return reject(new Error('QEMU ended'))
      const id = String(++count)
      waiting.set(id, { resolve, reject })
      socket.write(`${JSON.stringify({ execute: command, arguments: args, id })}\n`)
    })
  await ask('qmp_capabilities')
  return { ask }
}
