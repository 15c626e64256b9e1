import type { Agent } from './agent.ts'

/** The TCP ports on which somebody in the guest listens for others than the guest itself, as its kernel lists them. */
export async function listeningPorts(agent: Agent): Promise<number[]> {
  const tables = await Promise.all(['tcp', 'tcp6'].map((name) => read(agent, `/proc/net/${name}`)))
  const ports = tables.flatMap((table) => table.split('\n').flatMap(portOf))
  return [...new Set(ports)].sort((a, b) => a - b)
}

/** Source: Linux, Documentation/networking/proc_net_tcp: 0A is LISTEN; an address of 127.0.0.0/8 ends in 7F. */
function portOf(line: string): number[] {
  const [, address = '', port = '', state] =
    /^\s*\d+: ([0-9A-F]+):([0-9A-F]{4}) \S+ ([0-9A-F]{2}) /.exec(line) ?? []
  const isLocal = /^[0-9A-F]{6}7F$/.test(address) || address === `${'0'.repeat(24)}01000000`
  return state === '0A' && !isLocal ? [Number.parseInt(port, 16)] : []
}

/** Reads a file of the guest, empty when the agent does not let us. */
async function read(agent: Agent, path: string): Promise<string> {
  const opened = await agent.ask('guest-file-open', { path, mode: 'r' })
  if (!opened || 'error' in opened) return ''
  const handle = opened.return
  const answer = await agent.ask('guest-file-read', { handle, count: 65_536 })
  await agent.ask('guest-file-close', { handle })
  return answer && 'return' in answer
    ? Buffer.from(String(Object(answer.return)['buf-b64']), 'base64').toString()
    : ''
}
