import type { Socket } from 'node:net'
import { readLines } from './connection.ts'

/** What the agent answers: a value, or an error of its own. */
export type AgentAnswer = { return: unknown } | { error: { class: string; desc: string } }

/** The guest's agent, through the serial port of its machine. */
export type Agent = {
  /** `undefined`: no answer in that time. */
  ask(command: string, args?: object, timeoutMs?: number): Promise<AgentAnswer | undefined>
}

/** One question after another, as the agent takes them. Source: QEMU, qga/qapi-schema.json, guest-sync-delimited. */
export function openAgent(socket: Socket): Agent {
  let onValue: (value: Record<string, unknown>) => void = () => {}
  let sync = 0
  let turn: Promise<unknown> = Promise.resolve()
  readLines(socket, (value) => onValue(value))
  socket.on('error', () => {}) // QEMU ended; the questions run into their time-outs.

  const exchange = (
    line: string | Uint8Array,
    isAnswer: (value: Record<string, unknown>) => boolean,
    timeoutMs: number,
  ) =>
    new Promise<Record<string, unknown> | undefined>((resolve) => {
      const timer = setTimeout(() => resolve(undefined), timeoutMs)
      onValue = (value) => {
        if (!isAnswer(value)) return
        clearTimeout(timer)
        resolve(value)
      }
      socket.write(line)
    })

  const inTurn = async (
    command: string,
    args: object,
    timeoutMs: number,
  ): Promise<AgentAnswer | undefined> => {
    // Answers to questions that were given up come late; what follows the number of this one is to this one.
    const id = ++sync
    const hello = JSON.stringify({ execute: 'guest-sync-delimited', arguments: { id } })
    const isThere = await exchange(
      Buffer.concat([Buffer.from([0xff]), Buffer.from(`${hello}\n`)]),
      (value) => value.return === id,
      timeoutMs,
    )
    if (!isThere) return undefined
    const question = JSON.stringify({ execute: command, arguments: args })
    const answer = await exchange(
      `${question}\n`,
      (value) => 'return' in value || 'error' in value,
      timeoutMs,
    )
    if (!answer) return undefined
    if (!('error' in answer)) return { return: answer.return }
    const { class: kind, desc } = Object(answer.error)
    return { error: { class: String(kind), desc: String(desc) } }
  }

  return {
    ask(command, args = {}, timeoutMs = 5000) {
      const asked = turn.then(() => inTurn(command, args, timeoutMs))
      turn = asked
      return asked
    },
  }
}
