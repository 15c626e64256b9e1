import { fitsLimits, type RequestHead } from './head.ts'
import type { Reader } from './reader.ts'
import { type Reply, refused } from './reply.ts'

export type HeadRead =
  | { kind: 'head'; head: RequestHead }
  /** An empty line before a request: skipped, though it counts as a request. */
  | { kind: 'blank' }
  | { kind: 'refused'; reply: Reply }
  | { kind: 'silence' }
  | { kind: 'gone' }

/** Reads a request line and its headers the way pveproxy does, which is not what an RFC says. */
export async function readHead(reader: Reader): Promise<HeadRead> {
  const requestLine = await reader.line()
  if (requestLine === undefined) return { kind: 'gone' }
  if (requestLine === '') return { kind: 'blank' }
  const [, method, target, major, minor] = /(\S+) (\S+) HTTP\/(\d+)\.(\d+)/.exec(requestLine) ?? []
  if (!method || !target) return { kind: 'refused', reply: refused(400, 'bad request') }
  if (major !== '1') {
    return { kind: 'refused', reply: refused(506, `http protocol version ${major}.${minor} not supported`) }
  }
  if (/^[^/]*@/.test(target)) return { kind: 'refused', reply: refused(400, 'invalid url') }

  const lines: string[] = []
  // Names are the caller's: `constructor` is one like any other.
  const headers: Record<string, string> = Object.create(null)
  let name: string | undefined
  for (;;) {
    const line = await reader.line()
    if (line === undefined) return { kind: 'gone' }
    if (!fitsLimits([...lines, line].slice(0, line === '' ? -1 : undefined))) return { kind: 'silence' }
    if (line === '') break
    lines.push(line)
    const [, field, value = ''] = /^([^:\s]+)\s*:\s*(.*)/.exec(line) ?? []
    if (field) {
      name = field.toLowerCase()
      headers[name] = name in headers ? `${headers[name]}, ${value}` : value
    } else if (/^\s/.test(line) && name) {
      headers[name] += ` ${line.trim()}`
    } else {
      return { kind: 'refused', reply: refused(506, 'unable to parse request header') }
    }
  }
  return {
    kind: 'head',
    head: { method, target, protocol: minor === '0' ? 'HTTP/1.0' : 'HTTP/1.1', headers },
  }
}
