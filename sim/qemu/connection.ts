import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'

/** A socket that QEMU is to connect to when it starts: so nobody has to ask again and again whether it is there yet. */
export type Awaited = { path: string; connected: Promise<Socket>; close(): void }

/** Listens at a path for the one connection that comes. */
export async function awaitConnection(path: string): Promise<Awaited> {
  const server = createServer()
  const connected = once(server, 'connection').then(([socket]: Socket[]) => {
    server.close()
    if (!socket) throw new Error(`no connection at ${path}`)
    return socket
  })
  server.listen(path)
  await once(server, 'listening')
  return { path, connected, close: () => void server.close() }
}

/** Hands on what comes, a JSON value a line; what is no JSON is left out. A byte 0xff begins anew. Source: QEMU, qmp-spec and qga. */
export function readLines(socket: Socket, onValue: (value: Record<string, unknown>) => void): void {
  let rest = Buffer.alloc(0)
  socket.on('data', (bytes: Buffer) => {
    rest = Buffer.concat([rest, bytes])
    for (let end = rest.indexOf(10); end >= 0; end = rest.indexOf(10)) {
      const line = rest.subarray(rest.lastIndexOf(0xff, end) + 1, end).toString('utf8')
      rest = rest.subarray(end + 1)
      const value = parse(line)
      if (value) onValue(value)
    }
  })
}

function parse(line: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(line)
    return typeof value === 'object' && value !== null ? { ...value } : undefined
  } catch {
    return undefined
  }
}
