import { mkdtempSync, rmSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { type Agent, openAgent } from '../../../sim/qemu/agent.ts'
import { awaitConnection, readLines } from '../../../sim/qemu/connection.ts'
import { listeningPorts } from '../../../sim/qemu/listening.ts'

// The other end of the port, where in a machine the agent sits.
let folder: string
let guest: Socket
let agent: Agent
let answer: (question: { execute: string; arguments: Record<string, unknown> }) => unknown

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'egress-agent-'))
  const door = await awaitConnection(join(folder, 'agent'))
  guest = connect(door.path)
  agent = openAgent(await door.connected)
  readLines(guest, (question) => {
    const { execute, arguments: args } = question as { execute: string; arguments: Record<string, unknown> }
    const said =
      execute === 'guest-sync-delimited' ? { return: args.id } : answer({ execute, arguments: args })
    if (said === undefined) return
    const mark = execute === 'guest-sync-delimited' ? [Buffer.from([0xff])] : []
    guest.write(Buffer.concat([...mark, Buffer.from(`${JSON.stringify(said)}\n`)]))
  })
})
afterEach(() => {
  guest.destroy()
  rmSync(folder, { recursive: true })
})

it('an agent answers one question after another', async () => {
  answer = ({ execute }) => ({ return: execute })
  expect(await Promise.all(['a', 'b', 'c'].map((command) => agent.ask(command)))).toEqual([
    { return: 'a' },
    { return: 'b' },
    { return: 'c' },
  ])
})

it('an error of the agent is an answer', async () => {
  answer = () => ({ error: { class: 'CommandNotFound', desc: 'not found' } })
  expect(await agent.ask('guest-nothing')).toEqual({ error: { class: 'CommandNotFound', desc: 'not found' } })
})

it('the answer to a question that was given up is not taken for one to the next', async () => {
  answer = () => undefined
  expect(await agent.ask('guest-slow', {}, 30)).toBeUndefined()
  answer = () => ({ return: 'quick' })
  guest.write('{"return": "slow"}\n')
  expect(await agent.ask('guest-quick')).toEqual({ return: 'quick' })
})

it('ports are found where somebody listens for others than the guest itself', async () => {
  const head = '  sl  local_address rem_address   st tx_queue\n'
  const row = (address: string, state: string) =>
    `   0: ${address} 00000000:0000 ${state} 00000000:00000000\n`
  const files: Record<string, string> = {
    '/proc/net/tcp': [
      head,
      row('00000000:0C38', '0A'), // 3128
      row('0100007F:0019', '0A'), // loopback
      row('0F02000A:1F90', '0A'), // 8080 on its own address
      row('0F02000A:0C38', '01'), // a connection
    ].join(''),
    '/proc/net/tcp6': [
      head,
      row(`${'0'.repeat(32)}:0C38`, '0A'),
      row(`${'0'.repeat(24)}01000000:0277`, '0A'), // loopback
    ].join(''),
  }
  const paths = Object.keys(files)
  answer = ({ execute, arguments: args }) => {
    if (execute === 'guest-file-open') return { return: paths.indexOf(String(args.path)) + 1 }
    if (execute !== 'guest-file-read') return { return: {} }
    const text = files[paths[Number(args.handle) - 1] ?? ''] ?? ''
    return { return: { count: text.length, 'buf-b64': Buffer.from(text).toString('base64') } }
  }
  expect(await listeningPorts(agent)).toEqual([3128, 8080])
})
